package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/waybill-cli/waybill/internal/term"
)

var (
	//go:embed report.html
	layout string
	//go:embed report.css
	style string
	//go:embed report.js
	script string
)

// policy allows the page its style and its script, by their hashes, and nothing else.
func policy() string {
	return "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
		"; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// sizeOfTable is more than what stands between the head of a page and its rows takes.
const sizeOfTable = 16 << 10

// functions are what the layout calls: v makes texts visible, and n shows counts.
func (p *Page) functions() template.FuncMap {
	return template.FuncMap{
		"v":       term.Visible,
		"n":       p.Number,
		"policy":  policy,
		"style":   func() template.CSS { return template.CSS(style) }, //nolint:gosec // our own
		"script":  func() template.JS { return template.JS(script) },  //nolint:gosec // our own
		"classes": func() []Class { return []Class{Delivered, UnderWay, Problem, NotReported} },
		"letter":  Class.letter,
		"chart":   p.chart,
		"shares":  shares,
		"more": func(total int64, shown []Row) string {
			if rest := total - int64(len(shown)); rest > 0 {
				return p.Number(rest)
			}
			return ""
		},
	}
}

// Write writes the page and returns how many of its rows it has.
func Write(w io.Writer, p *Page) (shown int, err error) {
	t, err := template.New("").Funcs(p.functions()).Parse(layout)
	if err != nil {
		return 0, err
	}
	var head, table, rows, tail bytes.Buffer
	if err := t.ExecuteTemplate(&head, "head", p); err != nil {
		return 0, err
	}
	if err := t.ExecuteTemplate(&tail, "tail", p); err != nil {
		return 0, err
	}
	room := MaxBytes - head.Len() - tail.Len() - sizeOfTable
	for ; shown < min(len(p.Rows), MaxRows); shown++ {
		before := rows.Len()
		if err := t.ExecuteTemplate(&rows, "row", &p.Rows[shown]); err != nil {
			return 0, err
		}
		if rows.Len() > room {
			rows.Truncate(before)
			break
		}
	}
	if p.Counts.Total() > 0 {
		err = t.ExecuteTemplate(&table, "table", struct {
			*Page
			Shown int64
		}{p, int64(shown)})
	}
	for _, part := range []*bytes.Buffer{&head, &table, &rows, &tail} {
		if err == nil {
			_, err = part.WriteTo(w)
		}
	}
	return shown, err
}

// num is a coordinate, to one hundredth.
func num(f float64) string { return fmt.Sprint(float64(int64(f*100+0.5)) / 100) }
