package report

import "math"

// Sizes of a chart, in units of the page. Places along its width are shares of it, so that texts keep their size.
const (
	axisWidth  = 52
	plotTop    = 16.0
	plotHeight = 200.0
	maxTicks   = 8 // names along the axis; half of them where it is narrow
)

func (p *Page) writeDays(w *writer) {
	if len(p.Days) == 0 {
		return
	}
	w.html("<section aria-labelledby=\"days\">\n<h2 id=\"days\">Status by day</h2>\n<p class=\"note\">Each tracking is counted on the day on which its first run created it, by the status that it has now.")
	if n := p.Before.Total(); n > 0 {
		w.html(" The chart has the last ").text(p.Number(int64(len(p.Days)))).html(" days; created before them: ").text(p.Number(n)).html(".")
	}
	if p.NoDay > 0 {
		w.html(" Not shown, because no run of this store created them or it was pruned: ").text(p.Number(p.NoDay)).html(".")
	}
	w.html("</p>\n<ul class=\"legend\">\n")
	for _, c := range classes {
		w.html("<li><svg aria-hidden=\"true\"><rect width=\"12\" height=\"12\" class=\"").html(c.letter).html("\"/></svg>").text(c.name).html("</li>\n")
	}
	w.html("</ul>\n<p class=\"note\">Not reported: not sent, not checked yet, in processing, or set aside (superseded, dismissed).</p>\n")
	p.writeChart(w)
	p.writeValues(w)
	w.html("</section>\n")
}

func (p *Page) writeChart(w *writer) {
	var most, all int64
	for _, b := range p.Days {
		most, all = max(most, b.Total()), all+b.Total()
	}
	top := niceTop(most)
	title := p.Days[0].Name
	if last := p.Days[len(p.Days)-1].Name; last != title {
		title += " to " + last
	}
	w.html("<figure>\n<figcaption>").text(title).html("</figcaption>\n<div class=\"chart\"><svg class=\"axis\" aria-hidden=\"true\">\n")
	for tick := range ticks {
		w.html("<text x=\"").num(axisWidth - 8).html("\" y=\"").num(tickAt(tick) + 4).html("\">").text(p.Number(top * int64(tick) / (ticks - 1))).html("</text>\n")
	}
	w.html("</svg><svg class=\"plot\" role=\"img\" aria-labelledby=\"chartt chartd\">\n<title id=\"chartt\">").text(title).
		html("</title>\n<desc id=\"chartd\">Trackings: ").text(p.Number(all)).html("; at most ").text(p.Number(most)).
		html(" in a day. The table below has all values.</desc>\n")
	for tick := range ticks {
		w.html("<line x2=\"100%\" y1=\"").num(tickAt(tick)).html("\" y2=\"").num(tickAt(tick)).html("\"/>\n")
	}
	step := 100 / float64(max(len(p.Days), 8))
	every := (len(p.Days) + maxTicks - 1) / maxTicks
	for n, b := range p.Days {
		p.writeBar(w, &b, step*float64(n), step, top)
		if n%every == 0 {
			w.html("<text")
			if n/every%2 == 1 {
				w.html(" class=\"second\"")
			}
			w.html(" x=\"").num(step * (float64(n) + 0.5)).html("%\" y=\"236\">").text(b.Axis).html("</text>\n")
		}
	}
	w.html("</svg></div>\n</figure>\n")
}

func (p *Page) writeValues(w *writer) {
	w.html("<details><summary>Values by day</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Values by day\"><table class=\"values\">\n<thead><tr><th scope=\"col\">Created</th>")
	for _, c := range classes {
		w.html("<th scope=\"col\">").text(c.name).html("</th>")
	}
	w.html("<th scope=\"col\">Trackings</th></tr></thead>\n<tbody>\n")
	for _, b := range append([]Bar{p.Before}, p.Days...) {
		if b.Total() == 0 {
			continue
		}
		w.html("<tr><th scope=\"row\">").text(b.Name).html("</th>")
		for _, n := range b.Split {
			w.html("<td>").text(p.Number(n)).html("</td>")
		}
		w.html("<td>").text(p.Number(b.Total())).html("</td></tr>\n")
	}
	w.html("</tbody>\n</table></div></details>\n")
}

// writeBar writes a bar that begins at x, both it and the width in percent.
func (p *Page) writeBar(w *writer, b *Bar, x, width float64, top int64) {
	y := plotTop + plotHeight
	for c, n := range b.Split {
		if n == 0 {
			continue
		}
		height := max(plotHeight*float64(n)/float64(top), 2)
		y -= height
		w.html("<rect class=\"").html(classes[c].letter).html("\" x=\"").num(x + width*0.1).html("%\" y=\"").num(y).html("\" width=\"").num(width * 0.8).
			html("%\" height=\"").num(height).html("\"><title>").text(b.Name).html(": ").text(p.Number(n)).html(" ").text(classes[c].name).html("</title></rect>\n")
	}
}

const ticks = 5

func tickAt(tick int) float64 {
	return plotTop + plotHeight - plotHeight*float64(tick)/(ticks-1)
}

// niceTop returns the value at the top of an axis: the next one with four equal parts that are easy to read.
func niceTop(most int64) int64 {
	unit := math.Pow(10, math.Floor(math.Log10(math.Max(float64(most), 4)/4)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		part := factor * unit
		if part == math.Trunc(part) && 4*part >= float64(most) {
			return int64(4 * part)
		}
	}
	return most
}

func (p *Page) writeTable(w *writer, t *Table) {
	w.html("<section>\n<h2>").text(t.Title).html("</h2>\n")
	if t.Note != "" {
		w.html("<p class=\"note\">").text(t.Note).html("</p>\n")
	}
	if len(t.Lines) == 0 {
		w.html("<p>None.</p>\n</section>\n")
		return
	}
	w.html("<table class=\"sums\">\n<thead><tr>")
	for _, name := range t.Columns {
		w.html("<th scope=\"col\">").text(name).html("</th>")
	}
	w.html("<td aria-hidden=\"true\"></td></tr></thead>\n<tbody>\n")
	var most int64 = 1
	for _, line := range t.Lines {
		most = max(most, line.Total())
	}
	for _, line := range t.Lines {
		w.html("<tr><th scope=\"row\">").text(line.Name).html("</th>")
		for _, cell := range line.Cells {
			w.html("<td>").text(cell).html("</td>")
		}
		w.html("<td aria-hidden=\"true\"><svg>")
		x := 0.0
		for c, n := range line.Split {
			if width := 100 * float64(n) / float64(most); n > 0 {
				w.html("<rect class=\"").html(classes[c].letter).html("\" x=\"").num(x).html("%\" width=\"").num(max(width, 0.5)).html("%\" height=\"100%\"/>")
				x += width
			}
		}
		w.html("</svg></td></tr>\n")
	}
	w.html("</tbody>\n</table>\n</section>\n")
}
