package intake_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// book is a workbook that a test makes: what stands in cells of the first sheet, by
// address, and what is done to it then.
type book struct {
	rows  [][]any // from A1
	style map[string]string
	edit  func(f *excelize.File) error
}

// pack makes the file.
func (b book) pack(t testing.TB) []byte {
	t.Helper()
	f := excelize.NewFile()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(f.SetSheetName("Sheet1", "Orders"))
	for i := range b.rows {
		check(f.SetSheetRow("Orders", fmt.Sprintf("A%d", i+1), &b.rows[i]))
	}
	for cell, code := range b.style {
		style, err := f.NewStyle(&excelize.Style{CustomNumFmt: &code})
		check(err)
		check(f.SetCellStyle("Orders", cell, cell, style))
	}
	if b.edit != nil {
		check(b.edit(f))
	}
	out, err := f.WriteToBuffer()
	check(err)
	return out.Bytes()
}

// readBook reads all records as referId|number|carrier and their problems with their cells.
func readBook(data []byte, o intake.Options) (got []string, sum intake.Summary, err error) {
	r, err := intake.Open("in.xlsx", bytes.NewReader(data), o)
	if err != nil {
		return nil, sum, err
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, r.Summary(), nil
		}
		if err != nil {
			return got, r.Summary(), err
		}
		line := fmt.Sprintf("%d %s|%s|%s", rec.Line, rec.Item.ReferID+rec.Ref, rec.Item.Number, rec.Item.CarrierCode)
		for _, p := range rec.Problems {
			line += fmt.Sprintf(" [%s!%s %s: %s]", p.Sheet, p.Cell, p.Header, p.Message)
		}
		got = append(got, line)
	}
}

var bookHead = []any{"referId", "rawTrackingNumber", "carrierCode", "Note"}

func TestWorkbookRows(t *testing.T) {
	data := book{
		rows: [][]any{
			bookHead,
			{"  00123 ", "1Z999AA10123456784", "ups", "a\nb"},
			{1001, 123456789012, nil, nil, "beyond"},
			{},
			{123, "1Z999AA10123456785"},
			{"ORD-5", 12345678901234567},
			{"ORD-6", 123456789012},
			{"ORD-7", 46346},
			{"ORD-8", true},
			{12.5, "1Z999AA10123456786"},
			{nil, "1Z999AA10123456787"},
			{"ORD-12", 123456789013},
		},
		style: map[string]string{"A5": "00000", "B7": "0.00E+00", "B8": "yyyy-mm-dd", "B12": "#,##0"},
		edit: func(f *excelize.File) error {
			return errors.Join(f.SetRowVisible("Orders", 2, false), f.MergeCell("Orders", "A10", "A11"), f.SetCellFormula("Orders", "D3", "1+1"))
		},
	}.pack(t)
	got, sum, err := readBook(data, intake.Options{})
	want := []string{
		"2 00123|1Z999AA10123456784|ups", "3 1001|123456789012|", "5 00123|1Z999AA10123456785|",
		"6 ORD-5|12345678901234567| [Orders!B6 rawTrackingNumber: a number of more than 15 digits, of which the spreadsheet kept 15: the others are lost]",
		`7 ORD-6|123456789012| [Orders!B7 rawTrackingNumber: a number shown in scientific form ("0.00E+00")]`,
		"8 ORD-7|2026-11-20| [Orders!B8 rawTrackingNumber: the spreadsheet turned the value into a date or time]",
		"9 ORD-8|TRUE| [Orders!B9 rawTrackingNumber: the spreadsheet turned the value into TRUE or FALSE]",
		"10 12.5|1Z999AA10123456786| [Orders!A10 referId: a number with a fraction, whose last zeros a spreadsheet drops]",
		"11 |1Z999AA10123456787| [Orders!A11 referId: the cell is merged into A10:A11, which has one value]",
		`12 ORD-12|123456789013| [Orders!B12 rawTrackingNumber: a number shown otherwise ("#,##0")]`,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if sum.Sheet != "Orders" || sum.HiddenRows != 1 || sum.AsNumbers != 3 || sum.Padded != 1 || sum.Trimmed != 1 || sum.Bad != 7 || sum.HeaderRow != 1 || sum.Format != intake.XLSX {
		t.Errorf("got %+v", sum)
	}
	got, _, err = readBook(data, intake.Options{Rules: tracking.Rules{AcceptOdd: true}})
	if err != nil || len(got) != 10 || !strings.HasPrefix(got[4], "7 ORD-6|123456789012| [Orders!B7") {
		t.Errorf("with odd values: %q, %v", got, err)
	}
}

func TestWorkbookHeaders(t *testing.T) {
	row := []any{"ORD-1", "1Z999AA10123456784", "ups"}
	merge := func(ranges ...string) func(f *excelize.File) error {
		return func(f *excelize.File) (err error) {
			for _, r := range ranges {
				first, last, _ := strings.Cut(r, ":")
				err = errors.Join(err, f.MergeCell("Orders", first, last))
			}
			return err
		}
	}
	const good = "ORD-1|1Z999AA10123456784|ups"
	for name, tt := range map[string]struct {
		book book
		opt  intake.Options
		want string
		row  int
	}{
		"below a title":      {book{rows: [][]any{{"Orders of November"}, {}, bookHead, row}, edit: merge("A1:D1")}, intake.Options{}, "4 " + good, 3},
		"two rows high":      {book{rows: [][]any{{"referId", "rawTrackingNumber", "carrierCode", "Address"}, {nil, nil, nil, "Street", "City"}, row}, edit: merge("A1:A2", "B1:B2", "C1:C2", "D1:E1")}, intake.Options{}, "3 " + good, 1},
		"names in both rows": {book{rows: [][]any{{"referId", "Shipment"}, {nil, "rawTrackingNumber", "carrierCode"}, row}, edit: merge("A1:A2", "B1:C1")}, intake.Options{}, "3 " + good, 2},
		"names in two parts": {book{rows: [][]any{{"Order", "Tracking"}, {"No", "Number", "carrierCode"}, row}, edit: merge("B1:C1")}, intake.Options{Map: map[string]string{"referId": "Order No", "rawTrackingNumber": "Tracking Number", "carrierCode": "Tracking carrierCode"}}, "3 " + good, 2},
		"mapped":             {book{rows: [][]any{{"Kunde"}, {"X", "Y", "Z"}, row}}, intake.Options{Map: map[string]string{"referId": "X", "rawTrackingNumber": "y", "carrierCode": "Z"}}, "3 " + good, 2},
		"list":               {book{rows: [][]any{{"ORD-1"}, {1002}}}, intake.Options{Refs: true}, "1 ORD-1||\n2 1002||", 0},
		"list asked for":     {book{rows: [][]any{{"referId"}}}, intake.Options{Refs: true, Format: intake.List}, "1 referId||", 0},
		"REFs":               {book{rows: [][]any{{"Title"}, {"x", "referId"}, {"-", "ORD-1"}}}, intake.Options{Refs: true}, "3 ORD-1||", 2},
	} {
		got, sum, err := readBook(tt.book.pack(t), tt.opt)
		if text := strings.Join(got, "\n"); text != tt.want || err != nil || sum.HeaderRow != tt.row {
			t.Errorf("%s: got %q, header %d, %v; want %q, %d", name, text, sum.HeaderRow, err, tt.want, tt.row)
		}
	}
	_, _, err := readBook(book{rows: [][]any{{"referId", nil, "rawTrackingNumber"}, row}, edit: merge("A1:B1")}.pack(t), intake.Options{})
	if err == nil || !strings.Contains(err.Error(), `in.xlsx:Orders!1: the name "referId" is over several columns (A1:B1)`) {
		t.Errorf("a wide name: %v", err)
	}
}

func TestWorkbookSheets(t *testing.T) {
	sheets := func(names ...string) []byte {
		return book{rows: [][]any{bookHead, {"ORD-1", "1Z999AA10123456784"}}, edit: func(f *excelize.File) (failed error) {
			for _, name := range names {
				sheet, hidden := strings.CutPrefix(name, "-")
				_, err := f.NewSheet(sheet)
				if strings.HasPrefix(sheet, "More") {
					err = errors.Join(err, f.SetSheetRow(sheet, "A1", &bookHead), f.SetSheetRow(sheet, "A2", &[]any{"ORD-2", "1Z999AA10123456784"}))
				} else if sheet != "Empty" {
					err = errors.Join(err, f.SetCellValue(sheet, "A1", "text"))
				}
				failed = errors.Join(failed, err, f.SetSheetVisible(sheet, !hidden))
			}
			return failed
		}}.pack(t)
	}
	for name, tt := range map[string]struct {
		data  []byte
		sheet string
		want  string
		err   string
		hint  string
	}{
		"others do not fit": {data: sheets("Notes", "Empty"), want: "ORD-1"},
		"hidden ones":       {data: sheets("-More"), want: "ORD-1"},
		"two fit":           {data: sheets("Notes", "More"), err: `in.xlsx: 2 sheets have the columns: 1 "Orders", 3 "More"`, hint: "--sheet"},
		"by name":           {data: sheets("More"), sheet: "more", want: "ORD-2"},
		"by number":         {data: sheets("Notes", "-More"), sheet: "3", want: "ORD-2"},
		"no such":           {data: sheets("-Notes"), sheet: "4", err: `in.xlsx: no sheet "4"`, hint: `2 "Notes" (hidden)`},
		"not the columns":   {data: sheets("My notes"), sheet: "My notes", err: `in.xlsx:'My notes'!1: no column for referId and rawTrackingNumber; the header is: "text"`},
		"empty":             {data: sheets("Empty"), sheet: "Empty", err: "no data rows"},
	} {
		got, _, err := readBook(tt.data, intake.Options{Sheet: tt.sheet})
		if tt.err == "" {
			if err != nil || len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
			continue
		}
		var hinter interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), tt.err) || errors.As(err, &hinter) && !strings.Contains(hinter.Hint(), tt.hint) {
			t.Errorf("%s: got %v, want %s", name, err, tt.err)
		}
	}
	_, err := intake.Open("in.csv", strings.NewReader("referId,rawTrackingNumber\n"), intake.Options{Sheet: "2"})
	if wrong := (*intake.OptionError)(nil); !errors.As(err, &wrong) {
		t.Errorf("CSV with a sheet: %v", err)
	}
}

// A workbook is read from what can be read at any place.
func TestWorkbookReaders(t *testing.T) {
	data := book{rows: [][]any{bookHead, {"ORD-1", "1Z999AA10123456784"}}}.pack(t)
	if _, err := intake.Open("in", io.MultiReader(bytes.NewReader(data)), intake.Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("read once: %v", err)
	}
	names, err := intake.Header("in.xlsx", bytes.NewReader(data), intake.Options{})
	if want := []string{"referId", "rawTrackingNumber", "carrierCode", "Note"}; err != nil || !cmp.Equal(names, want) {
		t.Errorf("header: %q, %v", names, err)
	}
	_, err = intake.Open("in.csv", bytes.NewReader(data), intake.Options{Format: intake.CSV})
	if wrong := (*intake.FileError)(nil); !errors.As(err, &wrong) || wrong.Hint() != "omit --format csv" {
		t.Errorf("as CSV: %v", err)
	}
	_, _, err = readBook(data[:len(data)-100], intake.Options{})
	if wrong := (*intake.WorkbookError)(nil); !errors.As(err, &wrong) || wrong.Hint() == "" {
		t.Errorf("cut off: %v", err)
	}
}

// Bad rows go to a workbook with the same values and formats, which is read again.
func TestWorkbookRejects(t *testing.T) {
	bookOf := func(note any) []byte {
		return book{
			rows: [][]any{
				{"Title"},
				{"referId", "waybillError", "rawTrackingNumber", "Note", "Shipped"},
				{"00123", "row 3: old", 12345678901234567, note, 46346.5, "beyond"},
				{"ORD-4", nil, "1Z999AA10123456784"},
				{42, nil, nil, true},
			},
			style: map[string]string{"E3": "yyyy-mm-dd hh:mm", "A5": "00000"},
		}.pack(t)
	}
	var out bytes.Buffer
	rejects := intake.NewRejects(&out)
	r, err := intake.Open("in.xlsx", bytes.NewReader(bookOf("=1+1 <&> a\nb")), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !rec.Good() {
			if err := rejects.Write(r, rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := rejects.Flush(); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.GetRows("Orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range got[1:] {
		last := len(row) - 1
		row[last], _, _ = strings.Cut(row[last], ":")
	}
	want := [][]string{
		{"referId", "rawTrackingNumber", "Note", "Shipped", "waybillError"},
		{"00123", "1.23456789012346E+16", "=1+1 <&> a\nb", "2026-11-20 12:00", "row 3"},
		{"00042", "", "TRUE", "", "row 5"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, sum, err := readBook(out.Bytes(), intake.Options{})
	if err != nil || len(again) != 2 || !strings.HasPrefix(again[1], "3 00042||") || sum.Bad != 2 {
		t.Errorf("read again: %q, %v", again, err)
	}

	csv, err := intake.Open("in.csv", strings.NewReader("referId,rawTrackingNumber\nORD-1,\n"), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := csv.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := rejects.Write(csv, rec); !errors.As(err, new(*intake.MixError)) {
		t.Errorf("CSV in a workbook: %v", err)
	}
}

// A fault of a sheet below its header is the workbook's, not the disk's.
func TestFaultBelowTheHeaderHasTheHintOfTheWorkbook(t *testing.T) {
	data := book{rows: [][]any{bookHead, {"ORD-1", "1Z999AA10123456784"}, {"ORD-2", "1Z999AA10123456784"}}}.pack(t)
	out := repack(t, data, "xl/worksheets/sheet1.xml", func(part string) string { return strings.ReplaceAll(part, `<row r="3"`, `<row r="2"`) })
	_, _, err := readBook(out, intake.Options{})
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "save it again as XLSX") {
		t.Errorf("error %v; want the hint to save it again", err)
	}
}

// A cell whose text the workbook does not have is an error of that cell, and
// reading goes on. In the header it is named.
func TestTextThatTheWorkbookDoesNotHave(t *testing.T) {
	rows := func(b string) string {
		return `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>` + b + `</v></c></row>
			<row r="2"><c r="A2" t="str"><v>ORD-1</v></c><c r="B2" t="s"><v>99</v></c></row>
			<row r="3"><c r="A3" t="s"><v>98</v></c><c r="B3" t="s"><v>99</v></c></row>
			<row r="4"><c r="A4" t="str"><v>ORD-3</v></c><c r="B4" t="s"><v>2</v></c></row>`
	}
	made := book{rows: [][]any{{"referId", "rawTrackingNumber"}, {"ORD-1", "1Z999AA10123456784"}}}.pack(t)
	with := func(b string) []byte {
		return repack(t, made, "xl/worksheets/sheet1.xml", func(part string) string {
			start, end := strings.Index(part, "<sheetData>"), strings.Index(part, "</sheetData>")
			return part[:start] + "<sheetData>" + rows(b) + part[end:]
		})
	}
	sharing := func(data []byte) []byte {
		return repack(t, data, "xl/sharedStrings.xml", func(string) string {
			return `<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>referId</t></si><si><t>rawTrackingNumber</t></si><si><t>1Z999AA10123456784</t></si></sst>`
		})
	}
	got, _, err := readBook(sharing(with("1")), intake.Options{})
	const lost = ": the cell refers to a text that the workbook does not have]"
	want := []string{
		"2 ORD-1|| [Orders!B2 rawTrackingNumber" + lost,
		"3 || [Orders!A3 referId" + lost + " [Orders!B3 rawTrackingNumber" + lost,
		"4 ORD-3|1Z999AA10123456784|",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	_, _, err = readBook(sharing(with("99")), intake.Options{})
	if err == nil || !strings.Contains(err.Error(), "cell B1 refers to a text that the workbook does not have") {
		t.Errorf("in the header: %v", err)
	}
}

// repack returns a workbook with one part changed.
func repack(t *testing.T, data []byte, name string, change func(string) string) []byte {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range in.File {
		text, err := in.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(text)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == name {
			part = []byte(change(string(part)))
		}
		w, err := z.Create(f.Name)
		if err == nil {
			_, err = w.Write(part)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
