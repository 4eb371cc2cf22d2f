package intake_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
)

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
