package intake_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// reject reads inputs and writes their bad rows, or all rows if the inputs keep their text.
func reject(t testing.TB, o intake.Options, inputs ...string) (string, error) {
	t.Helper()
	var b bytes.Buffer
	out := intake.NewRejects(&b)
	for _, text := range inputs {
		in, err := intake.Open("in.csv", strings.NewReader(text), o)
		if err != nil {
			t.Fatal(err)
		}
		for {
			rec, err := in.Next()
			if errors.Is(err, io.EOF) || errors.Is(err, intake.ErrNoRows) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.Good() && !o.KeepText {
				continue
			}
			if err := out.Write(in, rec); err != nil {
				return b.String(), err
			}
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String(), nil
}

func TestRejects(t *testing.T) {
	utf16 := func(s string) string {
		s, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const why = "rawTrackingNumber is empty (fill it in, or remove the row)"
	for _, tt := range []struct {
		name, text, want string
	}{
		{"comma", "Order ID,AWB,Name\nA1,1Z1,x\nA2,,\"O'Brien, \"\"Pat\"\"\"\n", "Order ID,AWB,Name,waybillError\nA2,,\"O'Brien, \"\"Pat\"\"\",\"row 3: " + why + "\"\n"},
		{"semicolon, CRLF, mark", "\ufeffOrder;AWB\r\nA1;1Z1\r\n=\"007\";\r\n", "\ufeffOrder;AWB;waybillError\r\n=\"007\";;\"row 3: " + why + "\"\r\n"},
		{"sep line", "sep=;\r\nOrder;AWB\r\nA1;\r\n", "sep=;\r\nOrder;AWB;waybillError\r\nA1;;\"row 2 (line 3): " + why + "\"\r\n"},
		{"CR", "Order,AWB\rA1,\rA2,1Z\r", "Order,AWB,waybillError\rA1,,\"row 2: " + why + "\"\r"},
		{"UTF-16", utf16("Order\tAWB\tSüd\r\nÄ1\t\tx\r\n"), "\ufeffOrder\tAWB\tSüd\twaybillError\r\nÄ1\t\tx\t\"row 2: " + why + "\"\r\n"},
		{"bytes that are not judged", "Order,AWB,Name\nA1,,Zo\xeb\n", "Order,AWB,Name,waybillError\nA1,,Zo\xeb,\"row 2: " + why + "\"\n"},
		{"short row", "Order,AWB,Name,City\nA1\n", "Order,AWB,Name,City,waybillError\nA1,,,,\"row 2: the row has 1 cell, the header has 4; no cell for \"\"AWB\"\" (complete the row; an empty cell needs its comma as well)\"\n"},
		{"long row", "Order,AWB\nA1,1Z1,x\n", "Order,AWB,waybillError\nA1,1Z1,x,\"row 2: the row has 3 cells, the header has 2 (put a cell that contains a comma in quotes, or remove the extra cell)\"\n"},
		{"row that can't be read", "Order,AWB,Name\nA1,\"1Z\"1,x\n\"A2,1Z", "Order,AWB,Name,waybillError\n" +
			"\"A1,\"\"1Z\"\"1,x\",,,\"row 2: text after the closing quote of a cell (double a quote inside a quoted cell, or remove the quotes around the cell)\"\n" +
			"\"\"\"A2,1Z\",,,\"row 3: quote not closed (close the quote; double a quote inside a quoted cell)\"\n"},
		{"row that was cut off", "Order,AWB,Name\nA1,1Z", "Order,AWB,Name,waybillError\n\"A1,1Z\",,,\"row 2: the file ends inside this row: " +
			"the row has 2 cells, the header has 3 (check that the file is complete, or complete the row)\"\n"},
		{"rejected before", "waybillError,Order,AWB\nold,A1,\n", "Order,AWB,waybillError\nA1,,\"row 2: " + why + "\"\n"},
		{
			"items", "[{\"referId\" : \"A1\",\n \"waybillError\":\"old\"},\n{},5," + item1 + "]",
			`{"referId":"A1","waybillError":"line 1: rawTrackingNumber is missing (add it, or remove the item)"}` + "\n" +
				`{"waybillError":"line 3: referId is missing (add it, or remove the item); rawTrackingNumber is missing (add it, or remove the item)"}` + "\n" +
				`{"value":5,"waybillError":"line 3: an item must be an object, not a number (write {\"referId\": …, \"rawTrackingNumber\": …})"}` + "\n",
		},
		{"nothing rejected", "Order,AWB\nA1,1Z1\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := reject(t, intake.Options{}, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rejects (-want +got):\n%s", diff)
			}
		})
	}
}

// What is rejected can be read again, gives the same problems and is rejected in the same way.
func TestRejectsReadAgain(t *testing.T) {
	latin, err := charmap.Windows1252.NewEncoder().String("Größe,Order,AWB\nZoë,,1Z1\nZoë,Ä1,\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		o          intake.Options
	}{
		{"table", "Order,AWB,Name\n=\"00123\",,\"a\nb\"\n,1Z,x\nA1,1Z 5,\nA3,1Z,O'Brien, Pat\nA4,\"1\"Z,\nA5,1Z\x1b,=1+1\nA6,1Z,\"x\nA7,1Z7", intake.Options{}},
		{"named encoding", latin, intake.Options{Encoding: "windows-1252"}},
		{"sep line", "sep=^\r\nOrder^AWB\r\n^1Z\r\n", intake.Options{}},
		{"items", `[{"referId":"\ud83d","x":[1, 2]},{"referId":"A","metadata":{"a":"} ,"}},7,{"data":[]}]`, intake.Options{}},
		{"UTF-16 items", "\xff\xfe{\x00}\x00[\x00]\x00{\x00}\x00", intake.Options{}},
		{"UTF-16 big", "\xfe\xff\x00A\x00W\x00B\x00,\x00R\x00e\x00f\x00\n\x00,\x00ü\x00\n", intake.Options{}},
		{"zeros in one line", "Order,AWB,Name\nA1,1Z1,x\n" + strings.ReplaceAll("A2\t1Z2;O'Brien, Pat", "", "\x00") + "\n", intake.Options{}},
		{"header over lines", "\"Name\r\nStreet\",Order,AWB,\r\nx,,,\r\n", intake.Options{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, err := reject(t, tt.o, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			tt.o.Encoding = "" // rejects have a mark of their own
			second, err := reject(t, tt.o, first)
			if err != nil {
				t.Fatal(err)
			}
			third, err := reject(t, tt.o, second)
			if err != nil {
				t.Fatal(err)
			}
			if third != second || second == "" {
				t.Errorf("rejects of rejects differ:\n%q\n%q\n%q", first, second, third)
			}
			if a, b := strings.Count(first, "waybillError"), strings.Count(second, "waybillError"); a != b {
				t.Errorf("%d, then %d times waybillError:\n%s\n%s", a, b, first, second)
			}
		})
	}
}

func TestRejectsMendedByHand(t *testing.T) {
	first, err := reject(t, intake.Options{}, "Order,AWB\n=\"0012\",\nA2,1Z2\n")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := readAll(t, "in.csv", strings.Replace(first, ",,", ",1Z1,", 1), intake.Options{})
	if diff := cmp.Diff(result{Good: []string{"2 0012|1Z1|"}}, got); diff != "" {
		t.Errorf("mended rows (-want +got):\n%s", diff)
	}
}

func TestRejectsOfSeveralInputs(t *testing.T) {
	const a = "Order,AWB\nA1,\n"
	got, err := reject(t, intake.Options{}, a, "\ufeffOrder,AWB\r\nA2,\r\n", "Order,AWB\nA3,1Z\n", "other,rawTrackingNumber,referId\nx,1Z1,A4\n")
	if err != nil || strings.Count(got, "Order") != 1 || strings.Count(got, "is empty") != 2 {
		t.Errorf("got %q, %v; want one header and two rows", got, err)
	}
	for _, other := range []string{"AWB,Order\n,A1\n", "Order;AWB\nA1;\n", `{}`, "\xff\xfeO\x00r\x00d\x00e\x00r\x00,\x00A\x00W\x00B\x00\n\x00A\x00,\x00\n\x00"} {
		_, err := reject(t, intake.Options{}, a, other)
		var mix *intake.MixError
		if !errors.As(err, &mix) || !strings.Contains(mix.Hint(), "--rejects") {
			t.Errorf("after another header or format: got %v for %q, want a MixError", err, other)
		}
	}
}

func TestGoodRowsCanBeRejectedLater(t *testing.T) {
	for _, text := range []string{"Order,AWB\nA1,1Z1\n", item1} {
		in, err := intake.Open("in", strings.NewReader(text), intake.Options{KeepText: true})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		rec.Problems = append(rec.Problems, intake.Problem{Problem: tracking.Problem{Message: "=two\x1b carriers\n", Hint: "keep one"}})
		var b bytes.Buffer
		out := intake.NewRejects(&b)
		if err := out.Write(in, rec); err != nil {
			t.Fatal(err)
		}
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "1Z1") || strings.ContainsAny(b.String(), "\x1b") {
			t.Errorf("%q", b.String())
		}
		if want := `line 1: \"=two\\x1b`; text == item1 && !strings.Contains(b.String(), want) {
			t.Errorf("got %s, want it to hold %s", b.String(), want)
		}
	}
	in, err := intake.Open("in", strings.NewReader("Order,AWB\nA1,1Z1\n"), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := intake.NewRejects(io.Discard).Write(in, rec); err == nil {
		t.Error("a good row without its text was written")
	}
}

func TestRejectsWriteErrors(t *testing.T) {
	in, err := intake.Open("in", strings.NewReader("Order,AWB\nA1,\n"), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	out := intake.NewRejects(failing{full})
	if err := out.Write(in, rec); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestRejectsAreCSVAndJSON(t *testing.T) {
	text, err := reject(t, intake.Options{KeepText: true}, "Order,AWB,Name\nA1,1Z1,\"a\nb\"\n\"A\"2,1Z,\nA3\n")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 4 || len(rows[0]) != 4 {
		t.Errorf("%d rows, %v:\n%s", len(rows), err, text)
	}
	text, err = reject(t, intake.Options{KeepText: true}, `[{"referId":"A\u2028","x":1.50e3},{}, [1]]`)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
