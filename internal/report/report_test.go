package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/report"
)

// page returns a page in which each text from outside is what text returns.
func page(text func(name string) string) *report.Page {
	row := func(class report.Class, stuck string) report.Row {
		return report.Row{
			Reference: text("reference"), Number: text("number"), Carrier: text("carrier"), Status: text("status"), Event: text("event"),
			Checkpoint: text("checkpoint"), Updated: text("updated"), Class: class, Stuck: stuck,
		}
	}
	split := report.Split{report.Delivered: 2000, report.UnderWay: 1, report.Problem: 1, report.NotReported: 1}
	return &report.Page{
		Number: func(n int64) string { return fmt.Sprintf("%d", n) },
		Title:  "Tracking report", Facts: []report.Fact{{Name: "Account", Value: text("account")}, {Name: "Filter", Value: text("filter")}},
		Summary: text("summary"), Counts: split, Stuck: 1, StuckText: "for 7 days or more", Delivered: "99.9 %",
		Exceptions: []report.Line{{Name: text("exception"), Split: report.Split{report.Problem: 1}}},
		Days:       []report.Bar{{Name: "2026-03-01", Axis: "1 Mar", Split: split}, {Name: "2026-03-02", Axis: "2 Mar"}},
		Before:     report.Bar{Name: "before 2026-03-01", Split: split},
		NoDay:      1,
		Sums: []report.Table{
			{Title: "Carriers", Columns: []string{"Carrier", "Trackings"}, Lines: []report.Line{{Name: text("sum"), Cells: []string{"2003"}, Split: split}}},
			{Title: "Transit times", Note: "Not known yet."},
		},
		FirstProblems: []report.Row{row(report.Problem, "")}, FirstStuck: []report.Row{row(report.UnderWay, "9 days")},
		Rows: []report.Row{row(report.Problem, ""), row(report.UnderWay, "9 days"), row(report.NotReported, ""), row(report.Delivered, "")},
		Zone: "+01:00", Command: "waybill list " + text("command"),
	}
}

func write(t *testing.T, p *report.Page) (html string, shown int) {
	t.Helper()
	var b bytes.Buffer
	shown, err := report.Write(&b, p)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), shown
}

var (
	styles  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	scripts = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	hashes  = regexp.MustCompile(`sha256-[^;]*`)
	tags    = regexp.MustCompile(`<[^>]*>`)
)

// The whole page, without the text of its style and script. WRITE_GOLDEN writes it anew.
func TestPage(t *testing.T) {
	got, _ := write(t, page(func(name string) string { return "a " + name }))
	got = styles.ReplaceAllString(scripts.ReplaceAllString(hashes.ReplaceAllString(got, "hash"), "<script></script>"), "<style></style>")
	const file = "testdata/page.html"
	if os.Getenv("WRITE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// The page allows its own style and script, and nothing else.
func TestPolicy(t *testing.T) {
	html, _ := write(t, page(strings.ToUpper))
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(html)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src &#39;none&#39;; ") {
		t.Fatalf("policy: %q", policy)
	}
	for directive, text := range map[string]*regexp.Regexp{"style-src": styles, "script-src": scripts} {
		all := text.FindAllStringSubmatch(html, -1)
		if len(all) != 1 {
			t.Fatalf("%d times what %s allows", len(all), directive)
		}
		sum := sha256.Sum256([]byte(all[0][1]))
		if want := directive + " &#39;sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "&#39;;"; !strings.Contains(policy[1]+";", want) {
			t.Errorf("policy is %s; want %s in it", policy[1], want)
		}
	}
	for _, tag := range tags.FindAllString(scripts.ReplaceAllString(styles.ReplaceAllString(html, ""), ""), -1) {
		if regexp.MustCompile(`(?i)\s(style|src|href|on\w+|action)=`).MatchString(tag) && !strings.Contains(tag, ` href="#table"`) {
			t.Errorf("it does or loads something: %s", tag)
		}
	}
	if i := strings.Index(html, "http"); i >= 0 && !strings.HasPrefix(html[i:], "http-equiv") || strings.Count(html, "http") != 1 {
		t.Error("it names a URL")
	}
}

// hostile are texts that would do something if they were not escaped, or mislead.
func hostile() []string {
	all := []string{
		`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `</style><img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `'><b>`,
		`" onmouseover="alert(1)`, `' autofocus onfocus='alert(1)`, "`onload=alert(1)", `<!--`, `-->`, `<![CDATA[`, `]]>`, `<?php`, `&lt;script&gt;`, `&#x3c;b&#x3e;`,
		`&`, `&amp`, `<`, `>`, `<iframe src="javascript:alert(1)">`, `<a href="//evil.example">x</a>`, `<base href="//evil.example/">`, `<meta http-equiv=refresh content=0>`,
		`<form action=//evil.example><input>`, `<link rel=stylesheet href=//evil.example>`, `</td></tr></table><h1>`, `<template><b>`, `<plaintext>`, `<xmp>`, `<math><mi>`,
		`javascript:alert(1)`, `{{7*7}}`, `${alert(1)}`, `=cmd|'/c calc'!A0`, `%3Cscript%3E`, `\u003cscript\u003e`, `\x3cb\x3e`, `<b/onclick=x`, `< script>`, `<scr<script>ipt>`,
	}
	for _, r := range "\x00\x01\t\n\r\x1b\x7f\u0085\u009b\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff\ufffe\U000e0041" {
		all = append(all, "a"+string(r)+"b", "<b"+string(r)+">")
	}
	return append(all, "\xff\xfe<b>", "\xc3", "+ADw-script+AD4-", "\xbcscript\xbe", strings.Repeat("<", 200), strings.Repeat("W", 200), strings.Repeat("\u202e", 100))
}

// Whatever stands in a text, the page has the same tags, and shows what controls or hides
// text.
func TestHostileTexts(t *testing.T) {
	plain, _ := write(t, page(func(string) string { return "x" }))
	want := tags.FindAllString(plain, -1)
	for _, text := range hostile() {
		got, _ := write(t, page(func(string) string { return text }))
		if found := tags.FindAllString(got, -1); !reflect.DeepEqual(found, want) {
			t.Errorf("%q: it changes the tags of the page:\n%s", text, cmp.Diff(want, found))
		}
		for _, r := range got {
			if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff\ufffe\ufffd\U000e0041", r) {
				t.Errorf("%q: %U stands in the page", text, r)
				break
			}
		}
	}
}

// Ten thousand trackings with long texts are in the table, and hostile ones never make the
// page larger than it may be: what is cut is said, with the command that writes all.
func TestSize(t *testing.T) {
	for _, test := range []struct {
		name         string
		rows         int
		text         string
		least, limit int
	}{
		{"plain", report.MaxRows, strings.Repeat("word ", 10), report.MaxRows, report.MaxRows},
		{"more", report.MaxRows + 1, "word", report.MaxRows, report.MaxRows},
		{"hostile", report.MaxRows, strings.Repeat("\"\u202e", 80), 100, report.MaxRows - 1},
	} {
		p := page(func(string) string { return test.text })
		row := p.Rows[1]
		p.Rows = nil
		for range test.rows {
			p.Rows = append(p.Rows, row)
		}
		p.Counts = report.Split{int64(test.rows)}
		html, shown := write(t, p)
		if len(html) > report.MaxBytes || shown < test.least || shown > test.limit {
			t.Errorf("%s: %d bytes with %d rows; want up to %d with %d to %d", test.name, len(html), shown, report.MaxBytes, test.least, test.limit)
		}
		said := strings.Contains(html, fmt.Sprintf("This table has %d of %d trackings", shown, test.rows)) && strings.Contains(html, "<code>waybill list ")
		if cut := shown < test.rows; said != cut {
			t.Errorf("%s: %d of %d rows; it says so: %v", test.name, shown, test.rows, said)
		}
	}
}
