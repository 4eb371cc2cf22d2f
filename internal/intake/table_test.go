package intake_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
)

const head = "referId,rawTrackingNumber,name\n"

func TestTable(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name string
		text string
		want result
	}{
		{"plain", head + "A1,1Z1,Pat\nA2,1Z2,\n", result{Good: []string{"2 A1|1Z1|", "3 A2|1Z2|"}}},
		{"no line end at the end", head + "A1,1Z1,Pat", result{Good: []string{"2 A1|1Z1|"}}},
		{"CRLF", "referId,rawTrackingNumber\r\nA1,1Z1\r\n\r\nA2,1Z2\r\n", result{Good: []string{"2 A1|1Z1|", "4 A2|1Z2|"}}},
		{"CRLF written twice", "referId,rawTrackingNumber\r\r\nA1,1Z1\r\r\nA2,1Z2\r\r\n", result{Good: []string{"2 A1|1Z1|", "3 A2|1Z2|"}}},
		{"CR alone", "referId,rawTrackingNumber\rA1,1Z1\r\rA2,1Z2\r", result{Good: []string{"2 A1|1Z1|", "4 A2|1Z2|"}}},
		{"CR alone, quoted line ends", "referId,name,rawTrackingNumber\rA1,\"a\rb\r\nc\",1Z1\rA2,,\r", result{
			Good: []string{"2 A1|1Z1|"}, Problems: []string{"5:3 rawTrackingNumber: rawTrackingNumber is empty"},
		}},
		{"CR among LF is never a row of its own", head + "A1,1Z1,Pat\rA2,1Z2,Joe\nA3,1Z3,Jim\n", result{
			Good: []string{"3 A3|1Z3|"}, Problems: []string{"2:4 : the row has 5 cells, the header has 3"},
		}},
		{"blank lines", "\n \n" + head + "\n  \nA1,1Z1,Pat\n\n", result{Good: []string{"6 A1|1Z1|"}}},
		{"rows of empty cells", head + ",,\n\"\",\u00a0, \nA1,1Z1,Pat\n,,\n", result{Good: []string{"4 A1|1Z1|"}}},
		{"quoted line ends count", head + "A1,1Z1,\"Pat\r\nLane 5\n\nTown\"\nA2,,x\n", result{
			Good: []string{"2 A1|1Z1|"}, Problems: []string{"6:2 rawTrackingNumber: rawTrackingNumber is empty"},
		}},
		{"the line of the cell, not of the record", "name,referId,rawTrackingNumber\n\"a\nb\",A1,\n", result{
			Problems: []string{"3:3 rawTrackingNumber: rawTrackingNumber is empty"},
		}},
		{"quotes", head + "\"A1\",\"1Z1\",\"O'Brien, \"\"Pat\"\"\"\n\"A\"\"2\",1Z2,\n", result{Good: []string{"2 A1|1Z1|", `3 A"2|1Z2|`}}},
		{"spaces behind a closing quote", "referId,rawTrackingNumber\n\"A1\" ,\"1Z1\"  \n", result{Good: []string{"2 A1|1Z1|"}}},
		{"a quote in a column that is not used", head + "A1,1Z1,5\" pipe\nA2,1Z2,Joe \"J\" Doe\n", result{Good: []string{"2 A1|1Z1|", "3 A2|1Z2|"}}},
		{"a quote in a column in use", head + "A1,1Z\"1,x\nA2, \"1Z2\",x\n", result{Problems: []string{
			"2:2 rawTrackingNumber: quote inside a cell that is not quoted", "3:2 rawTrackingNumber: quote inside a cell that is not quoted",
		}}},
		{"text after a closing quote", head + "A1,\"1Z1\"x,y\nA2,1Z2,\n", result{Good: []string{"3 A2|1Z2|"}, Problems: []string{
			"2:2 rawTrackingNumber: text after the closing quote of a cell",
		}}},
		{"a quote never closed", head + "A1,1Z1,\nA2,1Z2,\"Pat\nA3,1Z3,\n", result{Good: []string{"2 A1|1Z1|"}, Problems: []string{
			"3:3 name: quote not closed; the row would span lines 3 to 4",
		}}},
		{"a quote closed in a later row", head + "A1,1Z1,\"Pat\nA2,1Z2,\"Joe\nA3,1Z3,x\n", result{Good: []string{"4 A3|1Z3|"}, Problems: []string{
			"2:3 name: text after the closing quote of a cell; the row would span lines 2 to 3",
		}}},
		{"rows inside a quoted cell", head + "A1,1Z1,\"Pat\nA2,1Z2,Joe\nA3,1Z3,Jim\"\nA4,1Z4,\n", result{Good: []string{"2 A1|1Z1|", "5 A4|1Z4|"}, Problems: []string{
			"note 2:3 name: a quoted cell spans lines 2 to 4, which look like rows",
		}}},
		{"a comma in a name shifts the columns", "name,referId,rawTrackingNumber\nO'Brien, Pat,A1,1Z1\n\"O'Brien, Pat\",A2,1Z2\n", result{
			Good: []string{"3 A2|1Z2|"}, Problems: []string{"2:4 : the row has 4 cells, the header has 3"},
		}},
		{"empty cells too many", head + "A1,1Z1,,,\n", result{Good: []string{"2 A1|1Z1|"}}},
		{"too short", head + "A1\nA2,1Z2\n", result{Problems: []string{
			`2:0 : the row has 1 cell, the header has 3; no cell for "rawTrackingNumber"`,
			"3:0 : the row has 2 cells, the header has 3",
		}}},
		{"empty cells too many in one row", head + "A1,1Z1,\nA2,1Z2,,,\nA3,1Z3,\n", result{Good: []string{"2 A1|1Z1|", "4 A3|1Z3|"}, Problems: []string{
			"3:4 : the row has 5 cells, the header has 3",
		}}},
		{"empty cells too many in some rows", head + "A1,1Z1,,\nA2,1Z2,,\nA3,1Z3,\n", result{
			Good: []string{"2 A1|1Z1|", "3 A2|1Z2|"},
			Err:  "in.csv row 4: the row has 3 cells, the header has 3 and the rows before it have 4",
		}},
		{"a delimiter in a cell before the number", "referId,street,rawTrackingNumber,note\nA1,Main St 5, Berlin,1Z999AA10123456784,\nA2,x,1Z999AA10123456784,\n", result{
			Good: []string{"3 A2|1Z999AA10123456784|"}, Problems: []string{"2:5 : the row has 5 cells, the header has 4"},
		}},
		{"a delimiter too many and one too few", "referId,street,rawTrackingNumber,note\nA1,Main St 5, Berlin,1Z999AA10123456784\nA2,Main St 5, 10115,1Z999AA10123456784\n", result{Problems: []string{
			`2:3 rawTrackingNumber: this does not look like a tracking number, but "1Z999AA10123456784" does: the cells may have moved`,
			`3:3 rawTrackingNumber: this does not look like a tracking number, but "1Z999AA10123456784" does: the cells may have moved`,
		}}},
		{"a line end in a number", "referId,rawTrackingNumber\nA1,1Z999AA\n10123456784\nA2,1Z2\nA3,1Z3\n", result{Good: []string{"5 A3|1Z3|"}, Problems: []string{
			"2:2 rawTrackingNumber: the next line has 1 cell, the header has 2: it may belong to this row",
			`3:0 : the row has 1 cell, the header has 2; no cell for "rawTrackingNumber"`,
			"4:1 referId: the line before has 1 cell, the header has 2: it may belong to this row",
		}}},
		{"a row inside a quoted cell before the number", "referId,name,rawTrackingNumber\nA1,\"Pat,1Z999AA10123456784\nA2,\",1Z999AA10123456785\nA3,\"Pat\nLane 5, Town\",1Z999AA10123456786\n", result{
			Good: []string{"4 A3|1Z999AA10123456786|"}, Problems: []string{"2:2 name: a quoted cell spans lines 2 to 3, which look like rows"},
		}},
		{"a number that may be cut off", "referId,rawTrackingNumber\nA1,3520831543\nA2,35208315", result{Good: []string{"2 A1|3520831543|"}, Problems: []string{
			"3:2 rawTrackingNumber: the file ends in this number without a line end, and all other numbers are longer: it may be cut off",
		}}},
		{"quotes that are cut off", head + "A1,1Z1,\nA2,1Z2,\"Pa", result{Good: []string{"2 A1|1Z1|"}, Problems: []string{
			"3:3 name: quote not closed",
		}}},
		{"a code column in use counts too", "referId,rawTrackingNumber,carrierCode\nA1,1Z1\nA2,1Z2,\n", result{Good: []string{"3 A2|1Z2|"}, Problems: []string{
			`2:0 : the row has 2 cells, the header has 3; no cell for "carrierCode"`,
		}}},
		{"a file that was cut off", head + "A1,1Z1,Pat\nA2,1Z", result{Good: []string{"2 A1|1Z1|"}, Problems: []string{
			"3:0 : the file ends inside this row: the row has 2 cells, the header has 3",
		}}},
		{"the header again", head + "A1,1Z1,\nreferId,rawTrackingNumber,name\nA2,1Z2,\n", result{Good: []string{"2 A1|1Z1|", "4 A2|1Z2|"}, Problems: []string{
			"3:0 : the row repeats the header",
		}}},
		{"a formula keeps an identifier whole", head + "=\"00123\",\"=\"\"00456\"\"\",x\n =\"0 \" ,\"=\"\"a\"\"\"\"b,c\"\"\",\n", result{Good: []string{"2 00123|00456|", `3 0|a"b,c|`}}},
		{"no formula of that form", head + "=\"a\"b\",1Z1,\n", result{Problems: []string{"2:1 referId: quote inside a cell that is not quoted"}}},
		{"an apostrophe is kept", head + "'00123,1Z1,\n", result{Good: []string{"2 '00123|1Z1|"}, Problems: []string{
			"note 2:1 referId: referId starts with the apostrophe that a spreadsheet puts before text",
		}}},
		{"bytes that are not UTF-8", head + "A1,1Z1,Zo\xeb\nA\xeb2,1Z2,x\n", result{Good: []string{"2 A1|1Z1|"}, Problems: []string{
			"3:1 referId: referId is not valid UTF-8",
		}}},
		{"a header that is not UTF-8", "referId,rawTrackingNumber,Empf\xe4nger\nA1,1Z1,Zo\xeb\n", result{Good: []string{"2 A1|1Z1|"}}},
		{"a character lost before", head + "A1,1Z\ufffd1,\n", result{Problems: []string{
			"2:2 rawTrackingNumber: a character in rawTrackingNumber was lost (read as U+FFFD)",
		}}},
		{"controls", head + "A1,1Z\x1b[2J1,\x1b]52;c;eA==\x07\nA2,\"1Z\n2\",\n", result{Problems: []string{
			"2:2 rawTrackingNumber: control character U+001B in rawTrackingNumber", "3:2 rawTrackingNumber: control character U+000A in rawTrackingNumber",
		}}},
		{"an invisible character in a number", head + "A1,1Z\u200b1,\n", result{Problems: []string{
			"2:2 rawTrackingNumber: rawTrackingNumber contains the invisible character U+200B",
		}}},
		{"a note leaves the row good", head + "A\u200b1,1Z1,\n", result{Good: []string{"2 A\u200b1|1Z1|"}, Problems: []string{
			"note 2:1 referId: referId contains the invisible character U+200B",
		}}},
		{"long values", head + long[:255] + ",1Z1,\n" + long + ",1Z2,\n", result{Good: []string{"2 " + long[:255] + "|1Z1|"}, Problems: []string{
			"3:1 referId: referId is longer than 255 characters",
		}}},
		{"errors of a former import", "referId,rawTrackingNumber,waybillError\nA1,1Z1,\"line 2: it was, bad\"\n", result{Good: []string{"2 A1|1Z1|"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := readAll(t, "in.csv", tt.text, intake.Options{})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("read otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhiteSpace(t *testing.T) {
	const text = "\ufeff Order\u00a0ID ,\tTracking Number\n A1\u00a0,\u20031Z1\u202f\n\"\ufeffA2\",1Z 99\u00a001\nA3,\"1Z\n3\"\n"
	for _, tt := range []struct {
		strip    bool
		want     result
		trimmed  int64
		stripped int64
	}{
		{false, result{Good: []string{"2 A1|1Z1|"}, Problems: []string{
			"3:2 Tracking Number: white space inside rawTrackingNumber", "4:2 Tracking Number: control character U+000A in rawTrackingNumber",
		}}, 3, 0},
		{true, result{Good: []string{"2 A1|1Z1|", "3 A2|1Z9901|"}, Problems: []string{
			"4:2 Tracking Number: control character U+000A in rawTrackingNumber",
		}}, 3, 1},
	} {
		got, sum := readAll(t, "in.csv", text, intake.Options{StripSpaces: tt.strip})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("strip %v: read otherwise (-want +got):\n%s", tt.strip, diff)
		}
		if sum.Trimmed != tt.trimmed || sum.Stripped != tt.stripped {
			t.Errorf("strip %v: trimmed %d, stripped %d; want %d, %d", tt.strip, sum.Trimmed, sum.Stripped, tt.trimmed, tt.stripped)
		}
	}
}

func TestSummary(t *testing.T) {
	const text = "Order;Tracking No.;Carrier;Shop Name;;waybillError\nA1;1Z1;UPS;x;;\nA2; 1Z2;DHL Express;;;\nA3;1Z3;ups ;;;\nA4;;UPS;;;\n;;;;;\n"
	_, got := readAll(t, "in.csv", text, intake.Options{})
	want := intake.Summary{
		Rows: 4, Bad: 1, Empty: 1, Trimmed: 2, Ignored: []string{"Shop Name", "column 5"},
		LeftOut: []intake.Carrier{{Name: "UPS", Rows: 2}, {Name: "DHL Express", Rows: 1}, {Name: "ups", Rows: 1}},
		Format:  intake.CSV, Encoding: "utf-8", Delimiter: ';', ReferID: "Order", Number: "Tracking No.", ReferColumn: 1, NumColumn: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestProblemValues(t *testing.T) {
	in, err := intake.Open("in.csv", strings.NewReader(head+"A1,1Z\x1b1,\nA2,"+strings.Repeat("é", 500)+"\x00,\n"), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := in.Next()
	if err != nil || len(rec.Problems) != 1 {
		t.Fatalf("got %v, %v", rec, err)
	}
	if got := rec.Problems[0].Value; got != "1Z\x1b1" {
		t.Errorf("value %q, want it as read", got)
	}
	if rec, err = in.Next(); err != nil || len(rec.Problems) != 1 {
		t.Fatalf("got %v, %v", rec, err)
	}
	if got := rec.Problems[0].Value; len(got) > 260 || !strings.HasSuffix(got, "é…") {
		t.Errorf("value of %d bytes %q, want it cut between two characters", len(got), got)
	}
}

func TestDelimiter(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		format           intake.Format
		want             rune
		good             string
	}{
		{"comma", "a", "referId,rawTrackingNumber\nA1,1Z1\n", "", ',', "2 A1|1Z1|"},
		{"semicolon", "a", "referId;rawTrackingNumber;Price, net\nA1;1Z1;1,5\n", "", ';', "2 A1|1Z1|"},
		{"tab", "a.csv", "referId\trawTrackingNumber\nA1\t1Z1\n", "", '\t', "2 A1|1Z1|"},
		{"bar", "a", "referId|rawTrackingNumber\nA1|1Z1\n", "", '|', "2 A1|1Z1|"},
		{"inside quotes it does not count", "a", "\"a, b, c, d\";referId;rawTrackingNumber\nx;A1;1Z1\n", "", ';', "2 A1|1Z1|"},
		{"as often: where the columns are found", "a", "referId;rawTrackingNumber;a,b,c\nA1;1Z1;\n", "", ';', "2 A1|1Z1|"},
		{"asked for", "a", "referId\trawTrackingNumber\ta,b,c,d,e\nA1\t1Z1\t\n", intake.TSV, '\t', "2 A1|1Z1|"},
		{"sep line", "a", "sep=;\r\nreferId;rawTrackingNumber\r\nA1;1Z1\r\n", "", ';', "3 A1|1Z1|"},
		{"sep line, tab", "a", "SEP=\t\nreferId\trawTrackingNumber\nA1\t1Z1\n", "", '\t', "3 A1|1Z1|"},
		{"sep line, rare", "a", "sep=^\nreferId^rawTrackingNumber\n\nA1^1Z1\n", "", '^', "4 A1|1Z1|"},
		{"sep line wins", "a", "sep=|\nreferId|rawTrackingNumber|a,b,c,d\nA1|1Z1|\n", "", '|', "3 A1|1Z1|"},
		{"quoted header with line end", "a", "\"name\nand street\",referId,rawTrackingNumber\nx,A1,1Z1\n", "", ',', "3 A1|1Z1|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, sum := readAll(t, tt.file, tt.text, intake.Options{Format: tt.format})
			if sum.Delimiter != tt.want || len(got.Good) != 1 || got.Good[0] != tt.good {
				t.Errorf("delimiter %q, %+v; want %q, %s", sum.Delimiter, got, tt.want, tt.good)
			}
		})
	}
}

func TestDelimiterByName(t *testing.T) {
	const text = "referId,rawTrackingNumber\tname,x\ty\nA,1\t1Z1\tA1\n"
	o := intake.Options{Map: map[string]string{"referId": "y", "rawTrackingNumber": "name,x"}}
	got, sum := readAll(t, "in.TSV", text, o)
	if want := "2 A1|1Z1|"; sum.Delimiter != '\t' || len(got.Good) != 1 || got.Good[0] != want {
		t.Errorf("delimiter %q, %+v; want tab, %s", sum.Delimiter, got, want)
	}
	if got, _ := readAll(t, "in.csv", text, o); got.Err == "" {
		t.Errorf("the same under another name gave %+v, want an error", got)
	}
}

// Lines are counted right over runs of blank lines that go over the parts in which a file is read.
func TestBlankLinesAreCounted(t *testing.T) {
	const n = 300_001
	for _, tt := range []struct{ name, end, blank string }{
		{"LF", "\n", "\n"},
		{"CRLF", "\r\n", "\r\n"},
		{"CR", "\r", "\r"},
		{"spaces", "\n", "   \n"},
		{"CRLF among LF", "\n", " \r\n"},
	} {
		text := "referId,rawTrackingNumber" + tt.end + "A1,1Z1" + tt.end + strings.Repeat(tt.blank, n) + "A2,1Z2"
		first := 2
		if tt.end != "\r" { // a file that begins with CR alone has no header
			text, first = strings.Repeat(tt.blank, n)+text, first+n
		}
		got, _ := readAll(t, "in.csv", text, intake.Options{})
		want := result{Good: []string{fmt.Sprintf("%d A1|1Z1|", first), fmt.Sprintf("%d A2|1Z2|", first+n+1)}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A file that can't be read is no matter of room on a disk.
func TestReadError(t *testing.T) {
	for _, text := range []string{"", head, head + "A1,1Z1,x\n", "[", `{"referId":"A1"`} {
		in, err := intake.Open("in", io.MultiReader(strings.NewReader(text), iotest.ErrReader(syscall.EIO)), intake.Options{})
		for err == nil {
			_, err = in.Next()
		}
		var read *intake.ReadError
		if !errors.As(err, &read) || read.File != "in" || !errors.Is(err, syscall.EIO) || strings.Contains(hint(err), "room") || hint(err) == "" {
			t.Errorf("%q: got %v (hint %q), want a ReadError", text, err, hint(err))
		}
	}
}

func TestInvisibleCharactersInTheHeader(t *testing.T) {
	got, sum := readAll(t, "in.csv", "Order\u200b ID,\u2060Tracking Number,Na\u200bme\nA1,1Z1,x\n", intake.Options{})
	if diff := cmp.Diff(result{Good: []string{"2 A1|1Z1|"}}, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Order\u200b ID", "\u2060Tracking Number"}, sum.Hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	_, sum = readAll(t, "in.csv", "referId\u200b,rawTrackingNumber\nA1,1Z1\n", intake.Options{Map: map[string]string{"referId": "referid"}})
	if diff := cmp.Diff([]string{"referId\u200b"}, sum.Hidden); diff != "" {
		t.Errorf("hidden, mapped (-want +got):\n%s", diff)
	}
}

// result is all that reading an input gave, in a form that is easy to compare.
type result struct {
	Good     []string // "line ref|number|carrier", or "line REF" for a text alone
	Problems []string // "line:column header: message", notes with "note" in front
	Err      string   // how opening or reading ended, if not by the end of the input
}

// readAll reads a whole input and its summary.
func readAll(t testing.TB, name, text string, o intake.Options) (result, intake.Summary) {
	t.Helper()
	var res result
	in, err := intake.Open(name, strings.NewReader(text), o)
	if err != nil {
		res.Err = err.Error()
		return res, intake.Summary{}
	}
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return res, in.Summary()
		}
		if err != nil {
			res.Err = err.Error()
			return res, in.Summary()
		}
		if rec.File != name {
			t.Errorf("record of file %q, want %q", rec.File, name)
		}
		for _, p := range rec.Problems {
			kind := ""
			if p.Note {
				kind = "note "
			}
			if p.Hint == "" {
				t.Errorf("no hint for %q", p.Message)
			}
			res.Problems = append(res.Problems, fmt.Sprintf("%s%d:%d %s: %s", kind, p.Line, p.Column, p.Header, p.Message))
		}
		switch {
		case !rec.Good():
		case rec.Ref != "":
			res.Good = append(res.Good, fmt.Sprintf("%d %s", rec.Line, rec.Ref))
		default:
			res.Good = append(res.Good, fmt.Sprintf("%d %s|%s|%s", rec.Line, rec.Item.ReferID, rec.Item.Number, rec.Item.CarrierCode))
		}
	}
}

// hint returns what an error tells its reader to do.
func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// A column that is kept needs no --encoding: what is not UTF-8 in it is read as Windows-1252, and counted.
func TestKeptColumnsThatAreNotUTF8(t *testing.T) {
	in, err := intake.Open("orders.csv", strings.NewReader("referId,rawTrackingNumber,Empf\xe4nger\nA1,1Z1,M\xfcller \x80\nA2,1Z2,M\xc3\xbcller\n"), intake.Options{Own: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"Empfänger":"Müller €"}`, `{"Empfänger":"Müller"}`} {
		if rec, err := in.Next(); err != nil || rec.Own != want {
			t.Errorf("%s, %v; want %s", rec.Own, err, want)
		}
	}
	if sum := in.Summary(); sum.OwnLatin != 1 || !slices.Equal(sum.Own, []string{"Empfänger"}) {
		t.Errorf("counted %d of %q", sum.OwnLatin, sum.Own)
	}
}
