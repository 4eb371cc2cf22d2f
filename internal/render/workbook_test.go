package render

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/waybill-cli/waybill/internal/term"
)

func TestWorkbook(t *testing.T) {
	var b bytes.Buffer
	p, err := New(term.Plain(&b), Options{Format: "xlsx", Title: "list"})
	if err != nil {
		t.Fatal(err)
	}
	columns := []Column{{Name: "REF", CSV: "referId", ID: true, Right: true}, {Name: "STATUS"}, {Name: "COUNT", Right: true}, {Name: "SEEN"}, {Name: "CHECKPOINT", Clock: true}}
	rows := p.Table(columns...)
	at := time.Date(2026, 11, 20, 14, 3, 5, 0, time.Local)
	for _, cells := range [][]Cell{
		{{Text: "00123"}, {Text: "=1+1"}, {Text: "12"}, {Text: "then", Time: at}, {Text: "2026-11-20 14:03:05"}},
		{{Text: "7"}, {Text: "moved"}, {Text: "1234567890123456"}, {}, {Text: "soon"}},
		{{Text: "8"}, {Text: "moved"}, {Text: "1.5"}},
	} {
		if err := rows.Add(cells); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(rows.Flush(), p.Text("a line\nanother"), p.Table(Column{Name: "X"}).Flush()); err != nil {
		t.Fatal(err)
	}
	if err := rows.Row("late"); !errors.Is(err, errSheetEnded) {
		t.Errorf("a row of an earlier sheet: %v", err)
	}
	if cut, err := p.Close(); cut != 0 || err != nil {
		t.Fatal(cut, err)
	}
	f, err := excelize.OpenReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][][]string{}
	for _, name := range f.GetSheetList() {
		if got[name], err = f.GetRows(name); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][][]string{
		"list": {
			{"referId", "STATUS", "COUNT", "SEEN", "CHECKPOINT"},
			{"00123", "=1+1", "12", "2026-11-20 14:03:05", "2026-11-20 14:03:05"},
			{"7", "moved", "1234567890123456", "", "soon"},
			{"8", "moved", "1.5"},
		},
		"list 2": {{"TEXT"}, {"a line"}, {"another"}},
		"list 3": {{"X"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	types := ""
	for _, cell := range []string{"A2", "B2", "C2", "D2", "E2", "C3", "C4"} {
		kind, err := f.GetCellType("list", cell)
		if err != nil {
			t.Fatal(err)
		}
		types += fmt.Sprint(kind == excelize.CellTypeInlineString, " ")
	}
	if types != "true true false false false true false " {
		t.Errorf("texts are %s", types)
	}
}
