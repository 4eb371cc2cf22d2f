package intake

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestColumnErrors(t *testing.T) {
	for _, tt := range []struct {
		header  string
		given   map[string]string
		message string
		hint    string
	}{
		{
			"Order key of shop,Track it,Sum", nil,
			`in.csv:1: no column for referId and rawTrackingNumber; the header is: "Order key of shop", "Track it", "Sum"`,
			"add --map referId='Order key of shop' --map rawTrackingNumber='Track it'",
		},
		{
			"Suivi client,Commande client", nil,
			`in.csv:1: no column for referId and rawTrackingNumber; the header is: "Suivi client", "Commande client"`,
			"add --map referId='Commande client' --map rawTrackingNumber='Suivi client'",
		},
		{
			"Order ID,Pat's box", nil,
			`in.csv:1: no column for rawTrackingNumber; the header is: "Order ID", "Pat's box"`,
			"add --map rawTrackingNumber=NAME, with the column's name for NAME; if this line has no names, " + addHeader,
		},
		{
			"Order ID,Pat's track box", nil,
			`in.csv:1: no column for rawTrackingNumber; the header is: "Order ID", "Pat's track box"`,
			`add --map rawTrackingNumber='Pat'\''s track box'`,
		},
		{
			"Order,Reference,AWB", nil,
			`in.csv:1: 2 columns could be referId; the header is: "Order", "Reference", "AWB"`,
			"add --map referId=Order or --map referId=Reference",
		},
		{
			"Order No,Order No,AWB", nil,
			`in.csv:1: 2 columns could be referId; the header is: "Order No", "Order No", "AWB"`,
			"rename one of the columns in the file: both have the same name",
		},
		{
			"referId,rawTrackingNumber,carrierCode,metadata.carrierCode", nil,
			`in.csv:1: 2 columns could be carrierCode; the header is: "referId", "rawTrackingNumber", "carrierCode", "metadata.carrierCode"`,
			"add --map carrierCode=carrierCode or --map carrierCode=metadata.carrierCode",
		},
		{
			"Order,AWB",
			map[string]string{"referId": "Order Nr"},
			`in.csv:1: no column "Order Nr", which --map names for referId; the header is: "Order", "AWB"`,
			"add --map referId=Order",
		},
		{
			"Order,AWB",
			map[string]string{"rawTrackingNumber": ""},
			`in.csv:1: no column "", which --map names for rawTrackingNumber; the header is: "Order", "AWB"`,
			"add --map rawTrackingNumber=AWB",
		},
		{
			"a-b,a_b,AWB",
			map[string]string{"referId": "A B"},
			`in.csv:1: 2 columns are named "A B", which --map names for referId; the header is: "a-b", "a_b", "AWB"`,
			"add --map referId=a-b or --map referId=a_b",
		},
		{
			"Order,\x1b]52:c:x\x07 \u202eAWB", nil,
			`in.csv:1: no column for rawTrackingNumber; the header is: "Order", "\x1b]52:c:x\a \u202eAWB"`,
			"add a first line with the names of the columns, such as referId and rawTrackingNumber",
		},
		{
			"A1,1Z999", nil,
			`in.csv:1: no column for referId and rawTrackingNumber; the header is: "A1", "1Z999"`,
			"add --map referId=NAME --map rawTrackingNumber=NAME, with the column's name for NAME; if this line has no names, " + addHeader,
		},
		{
			"A1", nil,
			`in.csv:1: no column for referId and rawTrackingNumber; the header is: "A1"`,
			"add a first line with the names of the columns, such as referId and rawTrackingNumber",
		},
	} {
		_, err := Open("in.csv", strings.NewReader(tt.header+"\n"), Options{Map: tt.given})
		var columns *ColumnError
		if !errors.As(err, &columns) {
			t.Errorf("%s: got %v, want a ColumnError", tt.header, err)
			continue
		}
		if err.Error() != tt.message {
			t.Errorf("%s:\n got %s\nwant %s", tt.header, err, tt.message)
		}
		if columns.Hint() != tt.hint {
			t.Errorf("%s: hint\n got %s\nwant %s", tt.header, columns.Hint(), tt.hint)
		}
	}
}

// FuzzScanner compares the scanner with encoding/csv: where that reads a text,
// the scanner reads the same, but for lines of spaces, which it drops.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "\"a\",\"b\"\"c\"\r\n\"d\ne\",\n", "a,\"b\nc", "a\"b,c\n", "\n\n,\n", "\"a\" ,b\n", "x\r\ny\r"} {
		f.Add(s, byte(','))
	}
	f.Fuzz(func(t *testing.T, text string, delim byte) {
		if !strings.ContainsRune(delimiters, rune(delim)) {
			return
		}
		ref := csv.NewReader(strings.NewReader(text))
		ref.Comma, ref.FieldsPerRecord = rune(delim), -1
		want, err := ref.ReadAll()
		if err != nil {
			return
		}
		want = slices.DeleteFunc(want, ofSpaces)
		// A chunk of one byte at a time finds whatever depends on how a text arrives.
		for _, r := range []io.Reader{strings.NewReader(text), oneByte{strings.NewReader(text)}} {
			tab := &table{scan: newScanner(newWindow(r))}
			tab.scan.delim = delim
			var got [][]string
			for tab.scan.next(&tab.rec) == nil {
				if row := raw(tab); len(tab.rec.raw) > 0 {
					got = append(got, row)
				}
			}
			got = slices.DeleteFunc(got, ofSpaces)
			if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Fatalf("got %q, want %q", got, want)
			}
			if n := bytes.Count([]byte(text), []byte("\n")); tab.scan.line < n {
				t.Fatalf("line %d after %d line ends", tab.scan.line, n)
			}
		}
	})
}

// ofSpaces reports whether a record is one cell of spaces.
func ofSpaces(row []string) bool { return len(row) == 1 && strings.TrimLeft(row[0], " ") == "" }

// raw returns the cells as encoding/csv would.
func raw(tab *table) []string {
	var row []string
	for _, c := range tab.rec.cells {
		s := string(tab.rec.raw[c.start:c.end])
		if c.quoting == quoted {
			s = strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `""`, `"`), "\r\n", "\n")
		}
		row = append(row, s)
	}
	return row
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }
