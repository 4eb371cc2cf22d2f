package intake_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/waybill-cli/waybill/internal/intake"
)

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// archived returns an archive with one empty file.
func archived(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.Create(name); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestForeignFormats(t *testing.T) {
	for _, tt := range []struct{ name, text, kind, hint string }{
		{"a.numbers", archived(t, "Index/Document.iwa"), "a Numbers spreadsheet", "XLSX or CSV"},
		{"a.xlsx", archived(t, "orders.csv"), "an archive (zip)", "unpack"},
		{"a.csv", "PK\x05\x06" + strings.Repeat("\x00", 18), "an archive (zip)", "unpack"},
		{"a.csv.gz", gzipped(t, "referId,rawTrackingNumber\n"), "compressed (gzip)", "unpack"},
		{"a.pdf", "%PDF-1.7\n", "a PDF document", "CSV UTF-8"},
		{"a.csv", "<!DOCTYPE html>\n<html>", "a web page (HTML)", "download the export again"},
		{"a.csv", "\ufeff\r\n  <HTML><body>", "a web page (HTML)", "download the export again"},
		{"a.xls", "<table><tr>", "a web page (HTML)", "CSV UTF-8"},
		{"a.csv", `<?xml version="1.0"?><Workbook>`, "an XML document", "CSV UTF-8"},
	} {
		_, err := intake.Open(tt.name, strings.NewReader(tt.text), intake.Options{})
		var format *intake.FileError
		if !errors.As(err, &format) {
			t.Errorf("%s %q: got %v, want %s", tt.name, tt.text, err, tt.kind)
			continue
		}
		if !strings.Contains(format.Hint(), tt.hint) {
			t.Errorf("%s: hint %q, want it to have %q", tt.name, format.Hint(), tt.hint)
		}
		if want := tt.name + ": this is " + tt.kind + ", not XLSX, CSV or JSON"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestFormatByContent(t *testing.T) {
	const item = `{"referId":"A1","rawTrackingNumber":"1Z1"}`
	for _, tt := range []struct {
		name, text string
		asked      intake.Format
		want       intake.Format
	}{
		{"orders.json", "referId,rawTrackingNumber\nA1,1Z1\n", "", intake.CSV},
		{"orders.txt", "referId\trawTrackingNumber\nA1\t1Z1\n", "", intake.TSV},
		{"orders.csv", item, "", intake.JSONL},
		{"orders.csv", "\n [\n" + item + "]", "", intake.JSON},
		{"-", " { \"data\" : [" + item + "]}", "", intake.JSON},
		{"orders.csv", "[Order],AWB\nA1,1Z1\n", "", intake.CSV},
		{"orders", "{referId},number of it\n", intake.CSV, ""},
		{"orders", "[ordr],order,AWB\nx,A1,1Z1\n", intake.CSV, intake.CSV},
		{"orders.csv", item, intake.JSON, intake.JSONL},
		{"orders.csv", "Order\tAWB\nA1\t1Z1\n", intake.TSV, intake.TSV},
	} {
		o := intake.Options{Format: tt.asked}
		if strings.HasPrefix(tt.text, "[Order]") {
			o.Map = map[string]string{"referId": "[Order]"}
		}
		got, sum := readAll(t, tt.name, tt.text, o)
		if sum.Format != tt.want || tt.want != "" && len(got.Good) != 1 {
			t.Errorf("%s %q: read as %q: %+v; want %q and one row", tt.name, tt.text, sum.Format, got, tt.want)
		}
	}
}

func TestNoRows(t *testing.T) {
	for _, text := range []string{
		"", "\ufeff", " \r\n\n", "referId,rawTrackingNumber", "referId,rawTrackingNumber\r\n\r\n,\r\n", "sep=;\n",
		"[]", "[ ]\n", `{"data": []}`, "\xff\xfe",
	} {
		in, err := intake.Open("in", strings.NewReader(text), intake.Options{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for range 2 {
			if _, err := in.Next(); !errors.Is(err, intake.ErrNoRows) || errors.Is(err, io.EOF) {
				t.Errorf("%q: got %v, want ErrNoRows alone", text, err)
			}
		}
	}
}

func TestEncodings(t *testing.T) {
	const text = "Order No,Größe,AWB\r\nÄ1,\"groß,\nstark\",1Z1\r\n"
	utf16 := func(order unicode.Endianness, mark unicode.BOMPolicy) string {
		s, err := unicode.UTF16(order, mark).NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	latin, err := charmap.Windows1252.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	dos, err := charmap.CodePage850.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, asked, found string }{
		{"plain", text, "", "utf-8"},
		{"mark", "\ufeff" + text, "", "utf-8"},
		{"mark and quote", "\ufeff\"Order No\"" + text[len("Order No"):], "", "utf-8"},
		{"mark and name", "\ufeff" + text, "UTF-8", "utf-8"},
		{"UTF-16 LE", utf16(unicode.LittleEndian, unicode.UseBOM), "", "utf-16le"},
		{"UTF-16 BE", utf16(unicode.BigEndian, unicode.UseBOM), "", "utf-16be"},
		{"UTF-16 mark and name", utf16(unicode.BigEndian, unicode.UseBOM), "utf-16", "utf-16be"},
		{"UTF-16 LE named", utf16(unicode.LittleEndian, unicode.IgnoreBOM), "UTF-16LE", "utf-16le"},
		{"UTF-16 BE named", utf16(unicode.BigEndian, unicode.IgnoreBOM), "utf-16be", "utf-16be"},
		{"latin", latin, "latin1", "windows-1252"},
		{"windows", latin, "CP1252", "windows-1252"},
		{"dos", dos, "cp850", "ibm850"},
		{"named UTF-8", text, "utf8", "utf-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, sum := readAll(t, "in.csv", tt.text, intake.Options{Encoding: tt.asked})
			want := result{Good: []string{"2 Ä1|1Z1|"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read otherwise (-want +got):\n%s", diff)
			}
			if sum.Encoding != tt.found {
				t.Errorf("encoding %q, want %q", sum.Encoding, tt.found)
			}
			if diff := cmp.Diff([]string{"Größe"}, sum.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

// In Shift JIS the second byte of a character may be a bar or a backslash.
func TestMultiByteEncoding(t *testing.T) {
	text, err := japanese.ShiftJIS.NewEncoder().String("注文|AWB|名\nポ1|1Z1|表ポ\n")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := readAll(t, "in.csv", text, intake.Options{Encoding: "shift_jis", Map: map[string]string{"referId": "注文"}})
	if diff := cmp.Diff(result{Good: []string{"2 ポ1|1Z1|"}}, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
}

func TestEncodingErrors(t *testing.T) {
	bare := strings.Join(strings.Split("referId,rawTrackingNumber\nA1,1Z1\n", ""), "\x00")
	const zeroInHeader = "in.csv:1: control character U+0000 in the header"
	for _, tt := range []struct{ name, text, message, hint string }{
		{"UTF-16 without a mark, little", bare + "\x00", zeroInHeader, "--encoding utf-16le"},
		{"UTF-16 without a mark, big", "\x00" + bare, zeroInHeader, "--encoding utf-16le"},
		{"a zero in the header", "Order,AWB,Na\x00me\nA1,1Z1,x\n", zeroInHeader, "--encoding utf-16le"},
		{"UTF-32", "\xff\xfe\x00\x00r\x00\x00\x00", "in.csv: the text is UTF-32, which is not supported", "UTF-8"},
		{"header in another encoding", "Bestell\xfcbersicht,AWB\nA1,1Z1\n", "in.csv: the header is not valid UTF-8, and no column for referId", "--encoding windows-1252"},
	} {
		_, err := intake.Open("in.csv", strings.NewReader(tt.text), intake.Options{})
		var encoding *intake.FileError
		if !errors.As(err, &encoding) || err.Error() != tt.message || !strings.Contains(encoding.Hint(), tt.hint) {
			t.Errorf("%s: got %v (hint %q), want %s (hint %q)", tt.name, err, hint(err), tt.message, tt.hint)
		}
	}
}

// An encoding that the bytes contradict is refused, at the first bytes or at the last.
func TestContradictedEncoding(t *testing.T) {
	const head = "referId,rawTrackingNumber,name\n"
	many := head + strings.Repeat("A1,1Z999AA10123456784,x\n", 1000)
	big, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(head)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, asked, want string }{
		{head + "A1,1Z1,Zoë\n", "windows-1252", "is valid UTF-8 with multi-byte characters, but --encoding is \"windows-1252\""},
		{many + "A2,1Z2,Zoë", "latin1", "is valid UTF-8 with multi-byte characters, but --encoding is \"latin1\""},
		{many + "A2,1Z2,Zo\xeb\n", "latin1", ""},
		{many + "A2,1Z2,Zoë\nA3,1Z3,Zo\xeb\n", "latin1", ""},
		{many + "A2,1Z2,李雷李雷\n", "gbk", "is valid UTF-8 with multi-byte characters"},
		{many + "A2,1Z2,\xc1\xaa\xcd\xa8\n", "gbk", ""}, // two characters of GBK that are two of UTF-8 as well
		{head + "A1,1Z1,\xb1\xed\n", "gbk", ""},
		{many, "windows-1252", ""},
		{"\ufeff" + head, "windows-1252", "has the byte order mark of UTF-8, but --encoding is \"windows-1252\""},
		{big, "utf-16le", "has the byte order mark of UTF-16BE, but --encoding is \"utf-16le\""},
		{big, "utf-8", "has the byte order mark of UTF-16BE, but --encoding is \"utf-8\""},
		{"+/v8-" + head, "", "no column for referId"},
		{head, "UTF-7", "no such encoding"},
	} {
		in, err := intake.Open("in.csv", strings.NewReader(tt.text), intake.Options{Encoding: tt.asked})
		for err == nil {
			_, err = in.Next()
		}
		if tt.want == "" && (errors.Is(err, io.EOF) || errors.Is(err, intake.ErrNoRows)) {
			continue
		}
		if tt.want == "" || !strings.Contains(err.Error(), tt.want) || hint(err) == "" {
			t.Errorf("%.40q as %s: got %v (hint %q), want %q", tt.text, tt.asked, err, hint(err), tt.want)
		}
	}
}

func TestWrongEncodingIsSeenInColumnsInUse(t *testing.T) {
	text := "referId,rawTrackingNumber,name\nA1,1Z1,\x81\xff\n\x81\xff1,1Z2,x\n"
	got, _ := readAll(t, "in.csv", text, intake.Options{Encoding: "shift_jis"})
	want := result{Good: []string{"2 A1|1Z1|"}, Problems: []string{"3:1 referId: a character in referId was lost (read as U+FFFD)"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
}

func TestUnreadable(t *testing.T) {
	long := strings.Repeat("x", intake.MaxRecord)
	for _, tt := range []struct{ name, text, want string }{
		{"header", "referId,rawTrackingNumber,\"" + long + "\"\nA1,1Z1,\n", "in.csv:1: the header is longer than 1 MiB"},
		{"header without end", long + long, "in.csv:1: the header is longer than 1 MiB"},
		{"row", head + "A1,1Z1,\nA2,1Z2," + long + "\nA3,1Z3,\n", "in.csv row 3: the row is longer than 1 MiB"},
		{"rows after an open quote", head + "A1,1Z1,\nA2,1Z2,\"x\n" + strings.Repeat("A1,1Z1,x\n", 200_000), "in.csv row 3: the row is longer than 1 MiB"},
		{"quotes in the header", "referId,\"rawTrackingNumber\"x\nA1,1Z1\n", "in.csv:1: unreadable header: text after the closing quote of a cell"},
		{"sep", "sep=ab\nreferId,rawTrackingNumber\n", `in.csv:1: sep= must name one delimiter, not "ab"`},
		{"sep a letter", "sep=x\nreferId,rawTrackingNumber\n", `in.csv:1: sep= must name one delimiter, not "x"`},
	} {
		got, _ := readAll(t, "in.csv", tt.text, intake.Options{})
		if got.Err != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got.Err, tt.want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	cut := fmt.Errorf("cable pulled: %w", io.EOF) // must not pass for the end of the input
	for _, tt := range []struct{ name, text string }{
		{"in the head", ""},
		{"in the header", "referId,raw"},
		{"in a row", head + "A1,1Z1,\nA2,1Z2,"},
		{"in a quoted cell", head + "A1,1Z1,\"Pa"},
		{"in an array", `[{"referId":"A1","rawTrackingNumber":"1Z1"},`},
		{"in an object", `{"referId":"A1","rawTr`},
	} {
		for _, r := range []io.Reader{
			io.MultiReader(strings.NewReader(tt.text), iotest.ErrReader(cut)),
			io.MultiReader(strings.NewReader(tt.text), iotest.ErrReader(errors.New("cable pulled"))),
		} {
			in, err := intake.Open("in", r, intake.Options{})
			for err == nil {
				_, err = in.Next()
			}
			if errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "cable") || !strings.HasPrefix(err.Error(), "read in: ") {
				t.Errorf("%s: got %v, want the read error", tt.name, err)
			}
		}
	}
}

func TestFileNamesAreShown(t *testing.T) {
	_, err := intake.Open("a\x1b]0;b.csv", strings.NewReader("a,b\n"), intake.Options{})
	if want := `"a\x1b]0;b.csv":1: no column for `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want it to begin with %s", err, want)
	}
}
