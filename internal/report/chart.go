package report

import "math"

// Sizes of a chart, in units of the page. Positions along its width are percentages, so that texts keep their size.
const (
	axisWidth  = 52
	plotTop    = 16.0
	plotHeight = 200.0
	maxTicks   = 8 // labels on the axis; half of them if it is narrow
)

func (p *Page) writeDays(w *writer) {
	if len(p.Days) == 0 {
		return
	}
	w.html(`<section aria-labelledby="days">
<h2 id="days">Status by day</h2>
<p class="note">Each tracking is counted on the day on which its first run created it, by the status that it has now.`)
	if n := p.Before.Total(); n > 0 {
		days := p.Number(int64(len(p.Days)))
		w.put(" The chart has the last %s days; created before them: %s.", days, p.Number(n))
	}
	if p.NoDay > 0 {
		w.put(" Not shown, because no run of this store created them or it was pruned: %s.", p.Number(p.NoDay))
	}
	w.html("</p>\n<ul class=\"legend\">\n")
	for _, c := range classes {
		w.put(`<li><svg aria-hidden="true"><rect width="12" height="12" class="%s"/></svg>%s</li>`+"\n", c.letter, c.name)
	}
	w.html(`</ul>
<p class="note">Not reported: not sent, not checked yet, in processing, or set aside (superseded, dismissed).</p>
`)
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
	w.put(`<figure>
<figcaption>%s</figcaption>
<div class="chart"><svg class="axis" aria-hidden="true">
`, title)
	for tick := range ticks {
		value := p.Number(top * int64(tick) / (ticks - 1))
		w.put(`<text x="%d" y="%s">%s</text>`+"\n", axisWidth-8, tickAt(tick)+4, value)
	}
	w.put(`</svg><svg class="plot" role="img" aria-labelledby="chartt chartd">
<title id="chartt">%s</title>
<desc id="chartd">Trackings: %s; at most %s in a day. The table below has all values.</desc>
`, title, p.Number(all), p.Number(most))
	for tick := range ticks {
		w.put(`<line x2="100%%" y1="%[1]s" y2="%[1]s"/>`+"\n", tickAt(tick))
	}
	step := 100 / float64(max(len(p.Days), 8))
	every := (len(p.Days) + maxTicks - 1) / maxTicks
	for n, b := range p.Days {
		p.writeBar(w, &b, step*float64(n), step, top)
		if n%every == 0 {
			w.html("<text")
			if n/every%2 == 1 {
				w.html(` class="second"`)
			}
			w.put(` x="%s%%" y="236">%s</text>`+"\n", step*(float64(n)+0.5), b.Axis)
		}
	}
	w.html("</svg></div>\n</figure>\n")
}

func (p *Page) writeValues(w *writer) {
	w.html(`<details><summary>Values by day</summary>` +
		`<div class="scroll" tabindex="0" role="region" aria-label="Values by day"><table class="values">
<thead><tr><th scope="col">Created</th>`)
	for _, c := range classes {
		w.put(`<th scope="col">%s</th>`, c.name)
	}
	w.html("<th scope=\"col\">Trackings</th></tr></thead>\n<tbody>\n")
	for _, b := range append([]Bar{p.Before}, p.Days...) {
		if b.Total() == 0 {
			continue
		}
		w.put(`<tr><th scope="row">%s</th>`, b.Name)
		for _, n := range b.Split {
			w.put("<td>%s</td>", p.Number(n))
		}
		w.put("<td>%s</td></tr>\n", p.Number(b.Total()))
	}
	w.html("</tbody>\n</table></div></details>\n")
}

// writeBar writes a bar that begins at x. x and width are percentages.
func (p *Page) writeBar(w *writer, b *Bar, x, width float64, top int64) {
	y := plotTop + plotHeight
	for c, n := range b.Split {
		if n == 0 {
			continue
		}
		height := max(plotHeight*float64(n)/float64(top), 2)
		y -= height
		w.put(`<rect class="%s" x="%s%%" y="%s" width="%s%%" height="%s"><title>%s: %s %s</title></rect>`+"\n",
			classes[c].letter, x+width*0.1, y, width*0.8, height, b.Name, p.Number(n), classes[c].name)
	}
}

const ticks = 5

func tickAt(tick int) float64 {
	return plotTop + plotHeight - plotHeight*float64(tick)/(ticks-1)
}

// niceTop returns the value at the top of an axis: the next value with four equal parts that are easy to read.
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
	w.put("<section>\n<h2>%s</h2>\n", t.Title)
	if t.Note != "" {
		w.put(`<p class="note">%s</p>`+"\n", t.Note)
	}
	if len(t.Lines) == 0 {
		w.html("<p>None.</p>\n</section>\n")
		return
	}
	w.html("<table class=\"sums\">\n<thead><tr>")
	for _, name := range t.Columns {
		w.put(`<th scope="col">%s</th>`, name)
	}
	w.html("<td aria-hidden=\"true\"></td></tr></thead>\n<tbody>\n")
	var most int64 = 1
	for _, line := range t.Lines {
		most = max(most, line.Total())
	}
	for _, line := range t.Lines {
		w.put(`<tr><th scope="row">%s</th>`, line.Name)
		for _, cell := range line.Cells {
			w.put("<td>%s</td>", cell)
		}
		w.html(`<td aria-hidden="true"><svg>`)
		x := 0.0
		for c, n := range line.Split {
			if width := 100 * float64(n) / float64(most); n > 0 {
				w.put(`<rect class="%s" x="%s%%" width="%s%%" height="100%%"/>`, classes[c].letter, x, max(width, 0.5))
				x += width
			}
		}
		w.html("</svg></td></tr>\n")
	}
	w.html("</tbody>\n</table>\n</section>\n")
}
