package main_test

import (
	"archive/zip"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"html"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// ownFormats is the first number of formats that a workbook defines itself.
const ownFormats = 164

// makeWorkbook makes the file of `workbook FILE SHEET=CSV...`: an XLSX workbook with a sheet
// for each CSV. A cell is text, but for n:NUMBER, n:NUMBER:FORMAT and f:FORMULA. A row
// whose last cell is <hidden> is hidden, and a column whose first cell ends in <hidden>. A sheet named -NAME is hidden.
func makeWorkbook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: workbook FILE SHEET=CSV...")
	}
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	z := zip.NewWriter(file)
	add := func(name, text string) {
		w, err := z.Create(name)
		ts.Check(err)
		_, err = w.Write([]byte(xml.Header + text))
		ts.Check(err)
	}
	const (
		mainSpace  = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
		document   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
		relsSpace  = `xmlns="http://schemas.openxmlformats.org/package/2006/relationships"`
		typesSpace = `xmlns="http://schemas.openxmlformats.org/package/2006/content-types"`
	)
	b := &bookMaker{formats: []string{""}}
	var sheets, rels, types string
	for i, arg := range args[1:] {
		name, csvFile, _ := strings.Cut(arg, "=")
		name, hidden := strings.CutPrefix(name, "-")
		state := map[bool]string{true: "hidden", false: "visible"}[hidden]
		r := csv.NewReader(strings.NewReader(ts.ReadFile(csvFile)))
		r.FieldsPerRecord = -1
		rows, err := r.ReadAll()
		ts.Check(err)
		add(fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1), "<worksheet "+mainSpace+">"+b.sheet(rows)+"</worksheet>")
		sheets += fmt.Sprintf(`<sheet name=%q sheetId="%d" state=%q r:id="rId%[2]d"/>`, html.EscapeString(name), i+1, state)
		rels += fmt.Sprintf(`<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%[1]d.xml"/>`, i+1, document)
		types += fmt.Sprintf(`<Override PartName="/xl/worksheets/sheet%d.xml" ContentType=`+
			`"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>`, i+1)
	}
	var formats, styles string
	for i, format := range b.formats {
		formats += fmt.Sprintf(`<numFmt numFmtId="%d" formatCode=%q/>`, ownFormats+i, html.EscapeString(format))
		styles += fmt.Sprintf(`<xf numFmtId="%d"/>`, map[bool]int{true: ownFormats + i}[i > 0])
	}
	add("xl/styles.xml", "<styleSheet "+mainSpace+"><numFmts>"+formats+"</numFmts><cellXfs>"+styles+"</cellXfs></styleSheet>")
	add("xl/workbook.xml", "<workbook "+mainSpace+` xmlns:r="`+document+`"><sheets>`+sheets+"</sheets></workbook>")
	add("xl/_rels/workbook.xml.rels", "<Relationships "+relsSpace+">"+rels+
		`<Relationship Id="styles" Type="`+document+`/styles" Target="styles.xml"/></Relationships>`)
	add("_rels/.rels", "<Relationships "+relsSpace+`><Relationship Id="book" Type="`+document+
		`/officeDocument" Target="xl/workbook.xml"/></Relationships>`)
	add("[Content_Types].xml", "<Types "+typesSpace+`><Default Extension="rels" ContentType=`+
		`"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType=`+
		`"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/styles.xml" `+
		`ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>`+types+"</Types>")
	ts.Check(z.Close())
	ts.Check(file.Close())
}

// bookMaker makes the sheets of a workbook.
type bookMaker struct{ formats []string } // of numbers, of which the first is none

func (b *bookMaker) sheet(rows [][]string) string {
	var columns, data string
	for n, row := range rows {
		attributes := ""
		if last := len(row) - 1; row[last] == "<hidden>" {
			row, attributes = row[:last], ` hidden="1"`
		}
		data += fmt.Sprintf(`<row r="%d"%s>`, n+1, attributes)
		for c, text := range row {
			text, hidden := strings.CutSuffix(text, "<hidden>")
			if hidden {
				columns += fmt.Sprintf(`<col min="%d" max="%[1]d" width="9" hidden="1"/>`, c+1)
			}
			data += fmt.Sprintf(`<c r="%c%d"%s</c>`, 'A'+c, n+1, b.cell(text))
		}
		data += "</row>"
	}
	if columns != "" {
		columns = "<cols>" + columns + "</cols>"
	}
	return columns + "<sheetData>" + data + "</sheetData>"
}

// cell returns what follows the reference of a cell.
func (b *bookMaker) cell(text string) string {
	kind, value, ok := strings.Cut(text, ":")
	switch {
	case ok && kind == "f":
		return "><f>" + html.EscapeString(value) + "</f>"
	case !ok || kind != "n":
		return ` t="inlineStr"><is><t xml:space="preserve">` + html.EscapeString(text) + "</t></is>"
	}
	number, format, _ := strings.Cut(value, ":")
	if !slices.Contains(b.formats, format) {
		b.formats = append(b.formats, format)
	}
	return fmt.Sprintf(` s="%d"><v>%s</v>`, slices.Index(b.formats, format), number)
}

// printWorkbook writes what `sheets XLSX FILE` finds in a workbook of waybill's to a file: each sheet with its
// rows, a cell with its type where it is no text: n for a number, d for one with a format of its own: a time, or the number and the format.
func printWorkbook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sheets XLSX FILE")
	}
	z, err := zip.OpenReader(ts.MkAbs(args[0]))
	ts.Check(err)
	read := func(name string, into any) {
		text, err := fs.ReadFile(z, name)
		ts.Check(err)
		ts.Check(xml.Unmarshal(text, into))
	}
	var book struct {
		Sheets []struct {
			Name string `xml:"name,attr"`
		} `xml:"sheets>sheet"`
	}
	var styles struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	read("xl/workbook.xml", &book)
	read("xl/styles.xml", &styles)
	codes := map[int]string{}
	for _, f := range styles.Formats {
		codes[f.ID] = f.Code
	}
	var b strings.Builder
	for i, named := range book.Sheets {
		fmt.Fprintf(&b, "== %s\n", named.Name)
		var sheet struct {
			Rows []struct {
				Cells []sheetCell `xml:"c"`
			} `xml:"sheetData>row"`
		}
		read(fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1), &sheet)
		for _, row := range sheet.Rows {
			var texts []string
			for _, c := range row.Cells {
				for len(texts) < int(c.Ref[0]-'A') {
					texts = append(texts, "")
				}
				texts = append(texts, c.shown(ts, codes[styles.Cells[c.Style].Format]))
			}
			b.WriteString(strings.Join(texts, "|") + "\n")
		}
	}
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o600))
}

// sheetCell is a cell of a worksheet.
type sheetCell struct {
	Ref   string   `xml:"r,attr"`
	Type  string   `xml:"t,attr"`
	Style int      `xml:"s,attr"`
	Value string   `xml:"v"`
	Texts []string `xml:"is>t"`
}

// shown returns the value of a cell, a number with the code of its format.
func (c sheetCell) shown(ts *testscript.TestScript, code string) string {
	switch {
	case c.Type == "inlineStr":
		return strings.Join(c.Texts, "")
	case c.Value == "":
		return ""
	case code == "":
		return "n:" + c.Value
	case !strings.Contains(code, "yyyy"):
		return "d:" + c.Value + " " + code
	}
	days, err := strconv.ParseFloat(c.Value, 64)
	ts.Check(err)
	at := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC).Add(time.Duration(days * 24 * float64(time.Hour)))
	layout := time.DateTime
	if !strings.Contains(code, "h") {
		layout = time.DateOnly
	}
	return "d:" + at.Round(time.Second).Format(layout)
}
