package xlsx_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	w := xlsx.NewWriter(&b)
	at := time.Date(2026, 11, 20, 14, 3, 5, 0, time.FixedZone("", 3600))
	long := strings.Repeat("😀", xlsx.MaxText)
	odd := " =1+1 <&>\"' \t\r\n_x0041_ \x00\x1b\ufffe\u202e é😀 "
	steps := errors.Join(
		w.Sheet("runs/list", []string{"Ref", "Count", "Time", "On", "Number"}),
		w.Row([]xlsx.Value{{Kind: xlsx.Text, Text: "00123"}, {Kind: xlsx.Number, Text: "12"}, {Time: at}, {Kind: xlsx.Bool, Text: "TRUE"}, {Kind: xlsx.Number, Text: "7", Format: "00000"}}),
		w.Row([]xlsx.Value{{Kind: xlsx.Text, Text: odd}, {}, {Time: time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC)}, {Kind: xlsx.ErrorCell, Text: "#N/A"}, {Kind: xlsx.Number, Text: "0.5", Format: `0%;"x"`}}),
		w.Row([]xlsx.Value{{Kind: xlsx.Text, Text: long}}),
		w.Sheet("runs:list", []string{"A"}),
		w.Sheet("", nil),
		w.Close(),
	)
	if steps != nil || w.Cut() != 1 {
		t.Fatalf("%v, %d cut", steps, w.Cut())
	}
	got, err := read(t, b.Bytes(), 0)
	if n := len(utf16.Encode([]rune(got["A4"]))); n > xlsx.MaxText || n < xlsx.MaxText-1 || !strings.HasSuffix(got["A4"], "😀…") {
		t.Errorf("a long text has %d code units", n)
	}
	delete(got, "A4")
	want := map[string]string{
		"A1": "Ref", "B1": "Count", "C1": "Time", "D1": "On", "E1": "Number",
		"A2": "00123", "B2": "12", "C2": "2026-11-20T14:03:05*6", "D2": "TRUE*7", "E2": "00007*1",
		"A3": odd, "C3": "1800-01-01 00:00:00", "D3": "#N/A*8", "E3": "0.5*4",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	f, err := excelize.OpenReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"runs_list", "runs_list 2", "Sheet"}, f.GetSheetList()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	panes, err := f.GetPanes("runs_list")
	if err != nil || !panes.Freeze || panes.YSplit != 1 {
		t.Errorf("panes: %+v, %v", panes, err)
	}
	for cell, want := range map[string]string{"A2": "00123", "C2": "2026-11-20 14:03:05", "E2": "00007"} {
		if got, err := f.GetCellValue("runs_list", cell); err != nil || got != want {
			t.Errorf("excelize: %s is %q, %v", cell, got, err)
		}
	}
	if err := w.Sheet("more", nil); err == nil {
		t.Error("a sheet after the end")
	}
}

// A workbook that counts days from 1904 keeps its dates in a copy, and its numbers and durations.
func TestCopyOfDatesSince1904(t *testing.T) {
	p := workbook(`<row r="1"><c r="A1" s="1"><v>46346.5</v></c><c r="B1"><v>46346</v></c><c r="C1" s="2"><v>2.5</v></c></row>`).styles("yyyy-mm-dd", "[h]:mm")
	p["xl/workbook.xml"] = strings.Replace(p["xl/workbook.xml"], "<sheets>", `<workbookPr date1904="1"/><sheets>`, 1)
	b, err := open(t, p.pack(t))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := b.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	row, err := rows.Next()
	if err != nil {
		t.Fatal(err)
	}
	var values []xlsx.Value
	for _, c := range row.Cells {
		values = append(values, b.Value(c))
	}
	var out bytes.Buffer
	w := xlsx.NewWriter(&out)
	if err := errors.Join(w.Sheet("Copy", []string{"Shipped", "Count", "Took"}), w.Row(values), w.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, out.Bytes(), 0)
	if err != nil || got["A2"] != "2030-11-21*6" || got["B2"] != "46346" || values[2].Text != "2.5" {
		t.Errorf("%v, %v, %+v", got, err, values)
	}
}

// Many rows are written and read in memory that does not grow with them: a million would take as much.
func TestMemory(t *testing.T) {
	const rows, limit = 200_000, 8 << 20
	var b bytes.Buffer
	b.Grow(8 << 20)
	before := heap()
	w := xlsx.NewWriter(&b)
	if err := w.Sheet("Orders", []string{"referId", "rawTrackingNumber"}); err != nil {
		t.Fatal(err)
	}
	row := make([]xlsx.Value, 2)
	most := uint64(0)
	for i := range rows {
		row[0] = xlsx.Value{Kind: xlsx.Text, Text: "ORD-" + strconv.Itoa(i)}
		row[1] = xlsx.Value{Kind: xlsx.Text, Text: "1Z" + strconv.Itoa(10_000_000+i)}
		if err := w.Row(row); err != nil {
			t.Fatal(err)
		}
		if i%(rows/4) == 0 {
			most = max(most, heap())
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	book, err := open(t, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	in, err := book.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	n := 0
	for {
		if _, err := in.Next(); err != nil {
			break
		}
		if n++; n%(rows/4) == 0 {
			most = max(most, heap())
		}
	}
	if grown := int64(most) - int64(before); n != rows+1 || grown > limit {
		t.Errorf("%d rows, and %d bytes of memory", n, grown)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A text is read as it was written, whatever it holds.
func FuzzText(f *testing.F) {
	f.Add(" =_x000D_\x00 ")
	f.Add("_x0000\x000")
	f.Add("_x_x0041__xD83D__xDE00_")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		if s == "" || len(s) > xlsx.MaxText {
			return
		}
		var b bytes.Buffer
		w := xlsx.NewWriter(&b)
		if err := errors.Join(w.Sheet(s, []string{s}), w.Row([]xlsx.Value{{Kind: xlsx.Text, Text: s}}), w.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := read(t, b.Bytes(), 0)
		if err != nil || got["A1"] != s || got["A2"] != s {
			t.Errorf("%q became %q, %v", s, got, err)
		}
	})
}

// Whatever stands in a sheet, it is refused, or its texts are those that encoding/xml finds.
func FuzzSheet(f *testing.F) {
	f.Add(`<row r="1"><c r="A1" t="inlineStr"><is><t>a &amp; b</t></is></c><c t="str"><v>_x000D_</v></c></row>`)
	f.Add(`<row><c t="s"><v>0</v></c><c s="1"><v>1E5</v></c><!-- --><c t="d"><v><![CDATA[x]]></v></c></row></sheetData><mergeCells><mergeCell ref="A1:B2"/></mergeCells><sheetData>`)
	f.Add(`<row><c t="inlineStr"><is><t>0</t></is><v>0</v></c></row>`)
	f.Fuzz(func(t *testing.T, rows string) {
		p := workbook(rows).strings("<t>shared</t>").styles("00000")
		cells, err := read(t, p.pack(t), 0)
		if err != nil {
			if wrong := (*xlsx.Error)(nil); !errors.As(err, &wrong) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		var sheet struct {
			Rows []struct {
				Cells []struct {
					Type   string `xml:"t,attr"`
					Inline struct {
						Texts []string `xml:"t"`
						Runs  []struct {
							Texts []string `xml:"t"`
						} `xml:"r"`
					} `xml:"is"`
				} `xml:"c"`
			} `xml:"sheetData>row"`
		}
		d := xml.NewDecoder(strings.NewReader(p["xl/worksheets/sheet1.xml"]))
		d.CharsetReader = nil
		if err := d.Decode(&sheet); err != nil {
			return // in what the scanner passes over
		}
		all := map[string]bool{}
		for _, text := range cells {
			all[text] = true
		}
		for _, row := range sheet.Rows {
			for _, c := range row.Cells {
				text := strings.Join(c.Inline.Texts, "")
				for _, r := range c.Inline.Runs {
					text += strings.Join(r.Texts, "")
				}
				if c.Type == "inlineStr" && len(c.Inline.Runs) == 0 && text != "" && !strings.Contains(text, "_x") && !all[text] {
					t.Errorf("%q is not among %q", text, cells)
				}
			}
		}
	})
}
