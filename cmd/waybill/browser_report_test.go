//go:build browser

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Limits of a report of 10,000 trackings.
const (
	reportRows  = 10_000
	reportBytes = 5_000_000
)

// pdfPage is a page in what Chromium prints.
var pdfPage = regexp.MustCompile(`/Type\s*/Page\b[^s]`)

// testReport reads a large report from the disk, filters, sorts and prints it.
func testReport(t *testing.T, b *browser) {
	w := newHome(t)
	store, file := filepath.Join(w.home, "large.db"), filepath.Join(w.home, "report.html")
	if err := writeLarge(t.Context(), store, reportRows); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "WAYBILL_ACCOUNT="+largeAccount, "WAYBILL_STORE="+store)
	began := time.Now()
	if code, _, said := w.run("report", file); code != 0 {
		t.Fatalf("report ended with %d: %s", code, said)
	}
	took := time.Since(began)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a report of %d trackings: %v, %d bytes", reportRows, took.Round(time.Millisecond), info.Size())
	if info.Size() > reportBytes {
		t.Errorf("the report has %d bytes; want at most %d", info.Size(), reportBytes)
	}

	tb := b.open(t)
	tb.visit("file://" + file)
	tb.wait(`document.getElementById("shown").textContent.startsWith("10,000 of 10,000")`)
	refs := eval[[]string](tb, `[...document.querySelectorAll("#trackings tbody tr")].map(r => r.cells[0].textContent.trim()).filter(Boolean).sort()`)
	tb.fill("#search", refs[len(refs)/2])
	tb.wait(`document.getElementById("shown").textContent.startsWith("1 of 10,000")`)
	tb.fill("#search", "")
	eval[any](tb, `(() => { const g = document.getElementById("group"); g.value = "p"; g.dispatchEvent(new Event("change", {bubbles: true})); return null; })()`)
	tb.wait(`(() => { const n = parseInt(document.getElementById("shown").textContent.replace(",", "")); return n > 0 && n < 5000; })()`)
	eval[any](tb, `(() => { const g = document.getElementById("group"); g.value = ""; g.dispatchEvent(new Event("change", {bubbles: true})); return null; })()`)
	const first = `document.querySelector("#trackings tbody tr").cells[0].textContent`
	tb.click("#trackings thead th:first-child button")
	tb.wait(first + ".trim() == " + quoteJS(refs[0]))
	tb.click("#trackings thead th:first-child button")
	tb.wait(first + ".trim() == " + quoteJS(refs[len(refs)-1]))
	if foreign := tb.foreign("file://"); len(foreign) > 0 {
		t.Errorf("the report asks for %q", foreign)
	}
	if pages := tb.print("A4-attention", chromedp.PaperA4); pages < 1 || pages > 5 {
		t.Errorf("what needs attention takes %d pages", pages)
	}
	tb.click("#all")
	if pages := tb.print("A4", chromedp.PaperA4); pages < 100 || pages > 500 {
		t.Errorf("%d pages for %d trackings", pages, reportRows)
	}
}

// print prints the page without tags, which take most of the time, and returns the
// number of pages.
func (tb *tab) print(paper string, size chromedp.PaperSize) int {
	tb.t.Helper()
	began := time.Now()
	pdf, err := chromedp.Run(tb.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(size), func(p *cdppage.PrintToPDFParams) { p.GenerateTaggedPDF = new(false) }))
	if err != nil {
		tb.t.Fatal(err)
	}
	pages := len(pdfPage.FindAll(pdf, -1))
	tb.t.Logf("on %s: %d pages, %d bytes in %v", paper, pages, len(pdf), time.Since(began).Round(time.Millisecond))
	keepFile(tb.t, "report-"+paper+".pdf", pdf)
	return pages
}

// testReportForEverybody lets axe judge a short report, and reads it without its script.
func testReportForEverybody(t *testing.T, b *browser) {
	w := newHome(t)
	store, file := filepath.Join(w.home, "large.db"), filepath.Join(w.home, "report.html")
	if err := writeLarge(t.Context(), store, 2000); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "WAYBILL_ACCOUNT="+largeAccount, "WAYBILL_STORE="+store)
	if code, _, said := w.run("report", file, "--updated", "9d"); code != 0 {
		t.Fatalf("report ended with %d: %s", code, said)
	}
	tb := b.open(t)
	tb.visit("file://" + file)
	tb.wait(`!document.getElementById("filter").hidden`)
	tb.axe("the report")
	tb.media("prefers-color-scheme", "dark")
	tb.axe("the report, dark")
	tb.narrow()
	tb.fits("the report")
	tb.click("#all")
	if pages := tb.print("Letter", chromedp.PaperLetter); pages < 5 || pages > 100 {
		t.Errorf("a report of some hundred trackings has %d pages", pages)
	}

	plain := b.open(t)
	if _, err := chromedp.Call(plain.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	plain.visit("file://" + file)
	text, err := chromedp.Run(plain.ctx, chromedp.Text(chromedp.CSS("body")))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Needs attention", "Status by day", "ORD-0000"} {
		if !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(text) {
			t.Errorf("without its script the report lacks %q:\n%s", want, short(text))
		}
	}
}

// keepFile writes a file into the folder that the environment names in KEEP, if it does.
func keepFile(t *testing.T, name string, content []byte) {
	t.Helper()
	dir := os.Getenv("KEEP")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Error(err)
	}
}
