package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
)

//go:embed report.css
var style markup

//go:embed report.js
var script markup

// filter is the form that the script shows above the table.
//
//go:embed filter.html
var filter markup

// policy allows the page its style and its script, by their hashes, and nothing else.
func policy() string {
	return "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
		"; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func hashOf(text markup) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *Page) writeHead(w *writer) {
	w.html(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="`).text(policy()).html(`">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>`).text(p.Title).html("</title>\n<style>").html(style).html("</style>\n</head>\n<body>\n<header>\n<h1>").
		text(p.Title).html("</h1>\n<dl class=\"facts\">\n")
	for _, f := range p.Facts {
		w.html("<div><dt>").text(f.Name).html("</dt><dd>").text(f.Value).html("</dd></div>\n")
	}
	w.html("</dl>\n</header>\n<main>\n")
	if p.Counts.Total() == 0 {
		w.html("<p>No tracking matches.</p>\n")
		return
	}
	p.writeAttention(w)
	p.writeCounts(w)
	p.writeDays(w)
	w.html("<div class=\"panels\">\n")
	for i := range p.Sums {
		p.writeTable(w, &p.Sums[i])
	}
	w.html("</div>\n")
}

var classes = [4]struct {
	name   string
	letter markup
}{Delivered: {"Delivered", "d"}, UnderWay: {"Under way", "u"}, Problem: {"Problem", "p"}, NotReported: {"Not reported", "n"}}

func (p *Page) writeCounts(w *writer) {
	w.html("<section aria-label=\"Summary\">\n<p class=\"summary\">").text(p.Summary).html("</p>\n<ul class=\"tiles\">\n")
	w.html("<li><b>").text(p.Number(p.Counts.Total())).html("</b><span>trackings</span></li>\n")
	w.html("<li class=\"d\"><b>").text(p.Number(p.Counts[Delivered])).html("</b><span>delivered")
	if p.Delivered != "" {
		w.html(" (").text(p.Delivered).html(")")
	}
	w.html("</span></li>\n<li class=\"u\"><b>").text(p.Number(p.Counts[UnderWay])).html("</b><span>under way</span></li>\n")
	w.html("<li class=\"p\"><b>").text(p.Number(p.Counts[Problem])).html("</b><span>with a problem</span></li>\n")
	w.html("<li class=\"n\"><b>").text(p.Number(p.Counts[NotReported])).html("</b><span>not reported</span></li>\n")
	w.html("<li class=\"s\"><b>").text(p.Number(p.Stuck)).html("</b><span>of these stuck</span></li>\n</ul>\n</section>\n")
}

// writeAttention writes the statuses of problems, the first trackings with one, and the first stuck ones.
func (p *Page) writeAttention(w *writer) {
	w.html("<section class=\"attention\" aria-labelledby=\"attention\">\n<h2 id=\"attention\">Needs attention</h2>\n")
	if p.Counts[Problem] == 0 && p.Stuck == 0 {
		w.html("<p>No tracking has a problem, and none is stuck.</p>\n" + printAll + "</section>\n")
		return
	}
	if p.Counts[Problem] > 0 {
		w.html("<h3>Problems: ").text(p.Number(p.Counts[Problem])).html("</h3>\n<p>")
		for i, line := range p.Exceptions {
			if i > 0 {
				w.html(" · ")
			}
			w.text(p.Number(line.Total())).html(" ").text(line.Name)
		}
		w.html("</p>\n")
		p.writeListed(w, "p", p.Counts[Problem], p.FirstProblems)
	}
	if p.Stuck > 0 {
		w.html("<h3>Stuck: ").text(p.Number(p.Stuck)).html("</h3>\n<p class=\"note\">Not delivered, and without a checkpoint ").text(p.StuckText).
			html(". Those without one for the longest time are first.</p>\n")
		p.writeListed(w, "s", p.Stuck, p.FirstStuck)
	}
	w.html(printAll + "</section>\n")
}

// printAll chooses, by the style alone, that paper gets the whole page.
const printAll markup = `<label class="all"><input id="all" type="checkbox"> Print all of this page, not only what needs attention</label>
`

func (p *Page) writeListed(w *writer, group markup, total int64, rows []Row) {
	w.html("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"").html(map[markup]markup{"p": "Problems", "s": "Stuck trackings"}[group]).
		html("\"><table class=\"rows\">\n")
	p.writeColumns(w)
	w.html("<tbody>\n")
	for i := range rows {
		p.writeRow(w, &rows[i])
	}
	w.html("</tbody>\n</table></div>\n")
	if more := total - int64(len(rows)); more > 0 {
		w.html("<p><a href=\"#table\" data-group=\"").html(group).html("\">").text(p.Number(more)).html(" more in the table below</a></p>\n")
	}
}

// sizeOfTable is more than what stands between the head of a page and its rows takes.
const sizeOfTable = 16 << 10

func (p *Page) writeColumns(w *writer) {
	w.html("<thead><tr>")
	names := []string{"Reference", "Number", "Carrier", "Status", "Latest event", "Last checkpoint", "Received"}
	for i, name := range names {
		w.html("<th scope=\"col\"")
		if i >= len(names)-2 {
			w.html(" data-kind=\"time\"")
		}
		w.html(">").text(name).html("</th>")
	}
	w.html("</tr></thead>\n")
}

// writeRow writes a row, whose ends HTML does not need: ten thousand rows have room for more text so.
func (p *Page) writeRow(w *writer, r *Row) {
	w.html("<tr class=\"").html(classes[r.Class].letter)
	if r.Stuck != "" {
		w.html(" s")
	}
	w.html("\"><th scope=\"row\">").text(r.Reference)
	if r.Own != "" {
		w.html(" <small>").text(r.Own).html("</small>")
	}
	w.html("<td>").text(r.Number).html("<td>").text(r.Carrier).html("<td class=\"st\">").text(r.Status)
	if r.Stuck != "" {
		w.html(" <i>stuck ").text(r.Stuck).html("</i>")
	}
	w.html("<td>").text(r.Event).html("<td>").text(r.Checkpoint).html("<td>").text(r.Updated).html("\n")
}

// writeRows writes rows as long as they fit into so many bytes, and returns how many.
func (p *Page) writeRows(w *writer, room int) int {
	for i := range p.Rows {
		before := w.Len()
		if i < MaxRows {
			p.writeRow(w, &p.Rows[i])
		}
		if i == MaxRows || w.Len() > room {
			w.Truncate(before)
			return i
		}
	}
	return len(p.Rows)
}

func (p *Page) writeTableHead(w *writer, shown int) {
	total := p.Counts.Total()
	if total == 0 {
		return
	}
	w.html("<section aria-labelledby=\"table\">\n<h2 id=\"table\">Trackings</h2>\n")
	if int64(shown) < total {
		w.html("<p class=\"cut\"><strong>This table has ").text(p.Number(int64(shown))).html(" of ").text(p.Number(total)).
			html(" trackings</strong>: problems and stuck ones first, then the latest of the others. The numbers above count all. To write all to a file, run:<br><code>").
			text(p.Command).html("</code></p>\n")
	}
	w.html("<p class=\"note\">Problems first, then stuck ones. Times are those of UTC").text(p.Zone).html(", unless they have another offset.</p>\n")
	w.html(filter + `<div class="scroll list" tabindex="0" role="region" aria-label="Trackings"><table id="trackings" data-zone="`).text(p.Zone).html("\">\n")
	p.writeColumns(w)
	w.html("<tbody>\n")
}

func (p *Page) tail() *writer {
	w := &writer{}
	if p.Counts.Total() > 0 {
		w.html("</tbody>\n</table></div>\n</section>\n")
	}
	w.html("</main>\n<footer class=\"note\"><p>The numbers are those of <code>waybill stats</code> with the same filters.</p></footer>\n<script>").html(script).html("</script>\n</body>\n</html>\n")
	return w
}
