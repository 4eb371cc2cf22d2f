package render

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCSV(t *testing.T) {
	columns := []Column{{Name: "referId", ID: true}, {Name: "rawTrackingNumber", ID: true}, {Name: "latest, event"}}
	rows := [][]string{
		{"order-1", "1Z999AA10123456784", "Delivered"},
		{"00123", "123456789012", "=1+1"},
		{"=cmd|'/c calc'!A0", `a"b`, `say "hi"; now`},
		{"12E5", "+4912", "two\r\nlines"},
		{"MAR-5", `=a"b`, "@sum"},
		{"7", "", "-5"},
	}
	want := "referId,rawTrackingNumber,\"latest, event\"\n" +
		"order-1,1Z999AA10123456784,Delivered\n" +
		"\"=\"\"00123\"\"\",\"=\"\"123456789012\"\"\",'=1+1\n" +
		"\"=\"\"=cmd|'/c calc'!A0\"\"\",\"a\"\"b\",\"say \"\"hi\"\"; now\"\n" +
		"\"=\"\"12E5\"\"\",\"=\"\"+4912\"\"\",\"two\r\nlines\"\n" +
		"\"=\"\"MAR-5\"\"\",\"=\"\"=a\"\"\"\"b\"\"\",'@sum\n" +
		"7,,-5\n"
	out, got := file()
	fill(t, NewCSV(out, false, columns...), rows...)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	out, got = file()
	fill(t, printer(t, out, Options{Format: "csv", CSVRaw: true}).Table(columns...), rows...)
	if diff := cmp.Diff(append([][]string{{"referId", "rawTrackingNumber", "latest, event"}}, rows...), parsed(t, got.String())); diff != "" {
		t.Errorf("raw: (-want +got)\n%s", diff)
	}
}

func TestExcelCSV(t *testing.T) {
	columns := []Column{{Name: "REF", CSV: "referId", ID: true}, {Name: "SECONDS", Right: true}, {Name: "TEXT"}}
	rows := [][]string{{"00123", "0.5", "1.5"}, {"a;b", "-12", "two\nlines"}, {"x", "", "1,2"}}
	for separator, want := range map[byte]string{
		';': "\ufeffreferId;SECONDS;TEXT\r\n\"=\"\"00123\"\"\";\"0,5\";1.5\r\n\"a;b\";-12;\"two\nlines\"\r\nx;;\"1,2\"\r\n",
		',': "\ufeffreferId,SECONDS,TEXT\r\n\"=\"\"00123\"\"\",0.5,1.5\r\n\"a;b\",-12,\"two\nlines\"\r\nx,,\"1,2\"\r\n",
	} {
		out, got := file()
		p := printer(t, out, Options{Format: "csv", Excel: separator})
		fill(t, p.Table(columns...), rows...)
		if got.String() != want {
			t.Errorf("%c: got\n%q\nwant\n%q", separator, got, want)
		}
	}
	out, got := screen(80, plainly)
	fill(t, printer(t, out, Options{Format: "csv", Excel: ','}).Table(columns...), rows[2])
	if want := "referId,SECONDS,TEXT\nx,,\"1,2\"\n"; got.String() != want {
		t.Errorf("on a terminal: got %q; want %q", got, want)
	}
}

// parsed reads CSV as the standard library does, with CRLF in cells kept.
func parsed(t *testing.T, s string) [][]string {
	t.Helper()
	const keep = "\x00\x01" // encoding/csv drops a CR before a newline
	r := csv.NewReader(strings.NewReader(strings.ReplaceAll(s, "\r", keep)))
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%v in %q", err, s)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], keep, "\r")
		}
	}
	return rows
}

func TestPrinterChoosesTheForm(t *testing.T) {
	for format, want := range map[string]string{"csv": "A,B\n1,2\n", "table": "A\tB\n1\t2\n"} {
		out, got := file()
		fill(t, printer(t, out, Options{Format: format, Live: true}).Table(Column{Name: "A"}, Column{Name: "B"}), []string{"1", "2"})
		if got.String() != want {
			t.Errorf("%s: got %q; want %q", format, got, want)
		}
	}
}

func TestCSVOfOneEmptyColumn(t *testing.T) {
	out, got := file()
	fill(t, NewCSV(out, false, Column{Name: "A"}), []string{""}, []string{"x"})
	if want := "A\n\"\"\nx\n"; got.String() != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestRuns(t *testing.T) {
	yes := []string{"=1", "+cmd", "-1+1", "@x", "\tx", "\rx", "\nx", " =1", "\u00a0=1", "＝1", "+49 151 2", "--", "-a", "+1-2", "-5.", "=", "+"}
	no := []string{"", "-", "-5", "+5", "-5.25", "a=1", "5-3", "x", "ü=", " x", "'=1", "e\u0301="}
	for _, s := range yes {
		if !isFormula(s) {
			t.Errorf("isFormula(%q) = false", s)
		}
	}
	for _, s := range no {
		if isFormula(s) {
			t.Errorf("isFormula(%q) = true", s)
		}
	}
}

func TestChanges(t *testing.T) {
	yes := []string{
		"00123", "007", "123456789012", "9400100000000000000000", "12E5", "12e+5", "1.5E3", "12D5", "=A1", "+1", "-1", "@x", "-", "\tx",
		"1.5", "1,5", "1-2", "1/2", "1.2.2024", "2024-01-05", "12:30", "5%", "$5", "€5", "5 €", "R$ 5", "(5)", "1 234",
		"MAR5", "5-Mar", "DEC1", "Sept2", "1 Mai", "märz-5", "5août", "12 AM", "3p", "2024-01-05T10:00Z", "5kr", "EUR 5",
		"TRUE", "false", "WAHR", "#N/A", "#REF!", "#NAME?", " 12", "x ", "'1", "＝1", "１２３", "１２Ｅ５", "5月1日", "5°", "=📦",
	}
	no := []string{
		"", "0", "7", "12345678901", "order-1001", "ORD1001", "1Z999AA10123456784", "RR123456785JP", "#1001", "A1", "E5", "P12", "T5",
		"JD014600003828392837", "LX-00123", "abc", "May", "é1", "注文3", "a=b", "12AB34", "marble-5", "C-5", "1001/A/xx", "№x", "📦-2", "🇩🇪", "👍🏽", "2📦", "⛟ 1/2",
	}
	for _, s := range yes {
		if !isReinterpreted(s) {
			t.Errorf("isReinterpreted(%q) = false", s)
		}
	}
	for _, s := range no {
		if isReinterpreted(s) {
			t.Errorf("isReinterpreted(%q) = true", s)
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a", "=1", "00123", "a\"b", "x,y", "l\r\nm", "", " ", "12E5", "\xff", "'", "\u202e"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, id, text string) {
		columns := []Column{{Name: "id", ID: true}, {Name: "text"}}
		for _, raw := range []bool{false, true} {
			out, got := file()
			fill(t, NewCSV(out, raw, columns...), []string{id, text})
			if strings.ContainsAny(id+text, "\x00\x01") {
				continue // parsed needs them
			}
			row := parsed(t, got.String())[1]
			if inner, ok := strings.CutPrefix(row[0], `="`); !raw && ok && isReinterpreted(id) {
				row[0] = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
			}
			if !raw && isFormula(text) {
				row[1] = strings.TrimPrefix(row[1], "'")
			}
			if row[0] != id || row[1] != text {
				t.Errorf("raw %t: %q, %q were read back as %q from %q", raw, id, text, row, got)
			}
			if cells := parsed(t, got.String())[1]; !raw && (isFormula(cells[1]) || isFormula(cells[0]) && !strings.HasPrefix(cells[0], `="`)) {
				t.Errorf("a spreadsheet would run %q", cells)
			}
		}
	})
}
