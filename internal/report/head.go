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

// policy returns the content security policy, which allows only the page's own style and script, by their hashes.
func policy() string {
	return "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
		"; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func hashOf(text markup) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *Page) writeHead(w *writer) {
	w.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>%s</style>
</head>
<body>
<header>
<h1>%[2]s</h1>
<dl class="facts">
`, policy(), p.Title, style)
	for _, f := range p.Facts {
		w.put("<div><dt>%s</dt><dd>%s</dd></div>\n", f.Name, f.Value)
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
}{
	Delivered:   {"Delivered", "d"},
	UnderWay:    {"Under way", "u"},
	Problem:     {"Problem", "p"},
	NotReported: {"Not reported", "n"},
}

func (p *Page) writeCounts(w *writer) {
	delivered := "delivered"
	if p.Delivered != "" {
		delivered += " (" + p.Delivered + ")"
	}
	w.put(`<section aria-label="Summary">
<p class="summary">%s</p>
<ul class="tiles">
<li><b>%s</b><span>trackings</span></li>
<li class="d"><b>%s</b><span>%s</span></li>
<li class="u"><b>%s</b><span>under way</span></li>
<li class="p"><b>%s</b><span>with a problem</span></li>
<li class="n"><b>%s</b><span>not reported</span></li>
<li class="s"><b>%s</b><span>of these stuck</span></li>
</ul>
</section>
`, p.Summary, p.Number(p.Counts.Total()), p.Number(p.Counts[Delivered]), delivered, p.Number(p.Counts[UnderWay]),
		p.Number(p.Counts[Problem]), p.Number(p.Counts[NotReported]), p.Number(p.Stuck))
}

// writeAttention writes the statuses of problems, the first trackings with a problem, and the first stuck trackings.
func (p *Page) writeAttention(w *writer) {
	w.html("<section class=\"attention\" aria-labelledby=\"attention\">\n<h2 id=\"attention\">Needs attention</h2>\n")
	if p.Counts[Problem] == 0 && p.Stuck == 0 {
		w.html("<p>No tracking has a problem, and none is stuck.</p>\n" + printAll + "</section>\n")
		return
	}
	if p.Counts[Problem] > 0 {
		w.put("<h3>Problems: %s</h3>\n<p>", p.Number(p.Counts[Problem]))
		for i, line := range p.Exceptions {
			if i > 0 {
				w.html(" · ")
			}
			w.put("%s %s", p.Number(line.Total()), line.Name)
		}
		w.html("</p>\n")
		p.writeListed(w, "p", p.Counts[Problem], p.FirstProblems)
	}
	if p.Stuck > 0 {
		w.put(`<h3>Stuck: %s</h3>
<p class="note">Not delivered, and without a checkpoint %s. Those without one for the longest time are first.</p>
`, p.Number(p.Stuck), p.StuckText)
		p.writeListed(w, "s", p.Stuck, p.FirstStuck)
	}
	w.html(printAll + "</section>\n")
}

// printAll lets the user print the whole page. It works with the style alone, without the script.
const printAll markup = `<label class="all"><input id="all" type="checkbox"> ` +
	"Print all of this page, not only what needs attention</label>\n"

func (p *Page) writeListed(w *writer, group markup, total int64, rows []Row) {
	label := map[markup]string{"p": "Problems", "s": "Stuck trackings"}[group]
	w.put(`<div class="scroll" tabindex="0" role="region" aria-label="%s"><table class="rows">`+"\n", label)
	p.writeColumns(w)
	w.html("<tbody>\n")
	for i := range rows {
		p.writeRow(w, &rows[i])
	}
	w.html("</tbody>\n</table></div>\n")
	if more := total - int64(len(rows)); more > 0 {
		w.put(`<p><a href="#table" data-group="%s">%s more in the table below</a></p>`+"\n", group, p.Number(more))
	}
}

// sizeOfTable is an upper bound for the bytes between the head of a page and its rows.
const sizeOfTable = 16 << 10

func (p *Page) writeColumns(w *writer) {
	w.html("<thead><tr>")
	for _, name := range []string{"Reference", "Number", "Carrier", "Status", "Latest event"} {
		w.put(`<th scope="col">%s</th>`, name)
	}
	w.html(`<th scope="col" data-kind="time">Last checkpoint</th><th scope="col" data-kind="time">Received</th>` +
		"</tr></thead>\n")
}

// writeRow writes a row without end tags, which HTML does not need: this leaves more room for text in many rows.
func (p *Page) writeRow(w *writer, r *Row) {
	w.put(`<tr class="%s`, classes[r.Class].letter)
	if r.Stuck != "" {
		w.html(" s")
	}
	w.put(`"><th scope="row">%s`, r.Reference)
	if r.Own != "" {
		w.put(" <small>%s</small>", r.Own)
	}
	w.put(`<td>%s<td>%s<td class="st">%s`, r.Number, r.Carrier, r.Status)
	if r.Stuck != "" {
		w.put(" <i>stuck %s</i>", r.Stuck)
	}
	w.put("<td>%s<td>%s<td>%s\n", r.Event, r.Checkpoint, r.Updated)
}

// writeRows writes as many rows as fit into room bytes, at most [MaxRows], and returns their number.
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
		w.put(`<p class="cut"><strong>This table has %s of %s trackings</strong>: problems and stuck ones first, `+
			`then the latest of the others. The numbers above count all. To write all to a file, run:<br><code>%s</code></p>
`, p.Number(int64(shown)), p.Number(total), p.Command)
	}
	const zone = "Times are those of UTC%s, unless they have another offset."
	w.put(`<p class="note">Problems first, then stuck ones. `+zone+"</p>\n", p.Zone)
	w.html(filter)
	const region = `<div class="scroll list" tabindex="0" role="region" aria-label="Trackings">`
	w.put(region+`<table id="trackings" data-zone="%s">`+"\n", p.Zone)
	p.writeColumns(w)
	w.html("<tbody>\n")
}

func (p *Page) tail() *writer {
	w := &writer{}
	if p.Counts.Total() > 0 {
		w.html("</tbody>\n</table></div>\n</section>\n")
	}
	w.put(`</main>
<footer class="note"><p>The numbers are those of <code>waybill stats</code> with the same filters.</p></footer>
<script>%s</script>
</body>
</html>
`, script)
	return w
}
