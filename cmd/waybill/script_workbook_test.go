package main_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/xuri/excelize/v2"
)

// makeWorkbook makes the file of `workbook FILE SHEET=CSV...`: an XLSX workbook with a sheet
// for each CSV. A cell is text, but for n:NUMBER, n:NUMBER:FORMAT and f:FORMULA. A row
// whose last cell is <hidden> is hidden, and a column whose first cell ends in <hidden>. A sheet named -NAME is hidden.
func makeWorkbook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: workbook FILE SHEET=CSV...")
	}
	f := excelize.NewFile()
	for i, arg := range args[1:] {
		name, file, _ := strings.Cut(arg, "=")
		name, hidden := strings.CutPrefix(name, "-")
		if i == 0 {
			ts.Check(f.SetSheetName("Sheet1", name))
		} else {
			_, err := f.NewSheet(name)
			ts.Check(err)
		}
		r := csv.NewReader(strings.NewReader(ts.ReadFile(file)))
		r.FieldsPerRecord = -1
		rows, err := r.ReadAll()
		ts.Check(err)
		for n, row := range rows {
			if last := len(row) - 1; row[last] == "<hidden>" {
				row = row[:last]
				ts.Check(f.SetRowVisible(name, n+1, false))
			}
			for c, text := range row {
				text, hidden := strings.CutSuffix(text, "<hidden>")
				if hidden {
					ts.Check(f.SetColVisible(name, string(rune('A'+c)), false))
				}
				ts.Check(setCell(f, name, fmt.Sprintf("%c%d", 'A'+c, n+1), text))
			}
		}
		ts.Check(f.SetSheetVisible(name, !hidden))
	}
	ts.Check(f.SaveAs(ts.MkAbs(args[0])))
}

func setCell(f *excelize.File, sheet, cell, text string) error {
	kind, value, ok := strings.Cut(text, ":")
	switch {
	case ok && kind == "f":
		return f.SetCellFormula(sheet, cell, value)
	case !ok || kind != "n":
		return f.SetCellStr(sheet, cell, text)
	}
	number, format, _ := strings.Cut(value, ":")
	n, err := strconv.ParseFloat(number, 64)
	if err == nil {
		err = f.SetCellFloat(sheet, cell, n, -1, 64)
	}
	if err == nil && format != "" {
		var style int
		style, err = f.NewStyle(&excelize.Style{CustomNumFmt: &format})
		err = errors.Join(err, f.SetCellStyle(sheet, cell, cell, style))
	}
	return err
}

// printWorkbook writes what `sheets XLSX FILE` finds in a workbook to a file: each sheet with its
// rows, a cell with its type where it is no text: n for a number, d for one with a format such as
// that of a date.
func printWorkbook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sheets XLSX FILE")
	}
	f, err := excelize.OpenFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var b strings.Builder
	for _, name := range f.GetSheetList() {
		fmt.Fprintf(&b, "== %s\n", name)
		rows, err := f.GetRows(name)
		ts.Check(err)
		for n, row := range rows {
			for c := range row {
				cell := fmt.Sprintf("%c%d", 'A'+c, n+1)
				kind, err := f.GetCellType(name, cell)
				ts.Check(err)
				style, err := f.GetCellStyle(name, cell)
				ts.Check(err)
				if kind == excelize.CellTypeUnset && row[c] != "" {
					row[c] = "n:" + row[c]
					if s, err := f.GetStyle(style); err == nil && s.CustomNumFmt != nil {
						row[c] = "d" + row[c][1:]
					}
				}
			}
			b.WriteString(strings.Join(row, "|") + "\n")
		}
	}
	ts.Check(f.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o600))
}
