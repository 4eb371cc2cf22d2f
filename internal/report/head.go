package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
)

//go:embed report.css
var style string

//go:embed report.js
var script string

// policy allows the page its style and its script, by their hashes, and nothing else.
func policy() string {
	return "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
		"; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func hashOf(text string) string {
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
<title>`).text(p.Title).html("</title>\n<style>").html(markup(style)).html("</style>\n</head>\n<body>\n<header>\n<h1>").
		text(p.Title).html("</h1>\n<dl class=\"facts\">\n")
	for _, f := range p.Facts {
		w.html("<div><dt>").text(f.Name).html("</dt><dd>").text(f.Value).html("</dd></div>\n")
	}
	w.html("</dl>\n</header>\n<main>\n")
	if p.Counts.Total() == 0 {
		w.html("<p>No tracking matches.</p>\n")
		return
	}
	p.writeCounts(w)
	p.writeAttention(w)
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

// writeAttention writes what needs attention: statuses of problems, the first trackings
// that have one, and the first that are stuck.
func (p *Page) writeAttention(w *writer) {
	w.html("<section aria-labelledby=\"attention\">\n<h2 id=\"attention\">Needs attention</h2>\n")
	if p.Counts[Problem] == 0 && p.Stuck == 0 {
		w.html("<p>No tracking has a problem, and none is stuck.</p>\n</section>\n")
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
	w.html("</section>\n")
}

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
