package intake_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
)

const inputs = "../../testdata/input"

// file is what an input of testdata is expected to give.
type file struct {
	name          string
	o             intake.Options
	rows, bad     int64
	line          int    // of the last good row
	last          string // last good row: "ref|number|carrier"
	problems      []string
	ignored, left []string
	err, hint     string
}

var german = map[string]string{"referId": "Bestellnummer", "rawTrackingNumber": "Sendungsnummer", "carrier": "Dienstleister"}

var files = []file{
	{
		name: "amazon-shipping-confirmation.txt", rows: 400, line: 401, last: "788-9961413-0965158|9400580059352997812282|usps",
		o:       intake.Options{Carriers: map[string]string{"ups": "ups", "usps": "usps", "fedex": "fedex", "dhl express": "dhl", "other": ""}},
		ignored: []string{"order-item-id", "quantity", "ship-date", "carrier-name", "ship-method"},
	},
	{name: "damaged-by-excel.csv", rows: 7, bad: 6, line: 3, last: "A2|1Z999AA10123456784|", problems: []string{
		"2:2 Tracking Number 9.4001E+21", "4:2 Tracking Number ", "5:2 Tracking Number #N/A", "6:2 Tracking Number 9400111899223197000000",
		"7:1 Order Number ", "8:2 Tracking Number 1Z999AA1 0123 456784",
	}},
	{name: "damaged-by-excel.csv", o: intake.Options{StripSpaces: true}, rows: 7, bad: 5, line: 8, last: "A7|1Z999AA10123456784|", problems: []string{
		"2:2 Tracking Number 9.4001E+21", "4:2 Tracking Number ", "5:2 Tracking Number #N/A", "6:2 Tracking Number 9400111899223197000000", "7:1 Order Number ",
	}},
	{
		name: "excel-de-semicolon.csv", rows: 500, line: 501, last: "A7499|1299904325|", ignored: []string{"Empfänger", "Betrag"},
		left: []string{"UPS", "USPS", "FedEx", "DHL Express"},
	},
	{
		name: "excel-de-semicolon.csv", o: intake.Options{Map: german, Carriers: map[string]string{"DHL": "dhl", "dhl express": "dhl", "fedex": "fedex", "ups": "ups", "usps": "usps"}},
		rows: 500, line: 501, last: "A7499|1299904325|dhl", ignored: []string{"Empfänger", "Betrag"},
	},
	{name: "excel-unicode-text.txt", rows: 200, line: 201, last: "A9199|1ZNKXAG90332699386|", ignored: []string{"Ship To"}, left: []string{"USPS", "UPS", "FedEx", "DHL Express"}},
	{name: "orders-12431.csv", rows: 12431, line: 12432, last: "ORD-112431|1ZG0C9D20100185258|ups"},
	{name: "orders.json", rows: 1500, line: 10034, last: "J-31499|1ZDAP24M6629964541|ups"},
	{name: "orders.jsonl", rows: 1500, line: 1500, last: "J-31499|1ZDAP24M6629964541|ups"},
	{name: "tracking-app-import.csv", rows: 300, line: 301, last: "#1300|225268703168|", ignored: []string{"customer_name", "destination_country"}, left: []string{"usps", "ups", "fedex", "dhl"}},
	{
		name: "woocommerce-tracking.csv", rows: 600, line: 601, last: "58599|9205269889446173744048|", ignored: []string{"date_shipped", "status_shipped"},
		left: []string{"UPS", "USPS", "FedEx", "DHL Express", "Royal Mail"},
	},

	{name: "hostile-mac-line-ends.csv", rows: 3, bad: 1, line: 5, last: "M2|9400111899223197428490|", ignored: []string{"Ship To"}, problems: []string{"6:2 Tracking Number "}},
	{name: "hostile-latin1-names.csv", rows: 3, bad: 1, line: 3, last: "L2|LZ618655169JP|", ignored: []string{"Empfänger"}, problems: []string{"4:1 Order Number L\xf63"}},
	{name: "hostile-latin1-names.csv", o: intake.Options{Encoding: "windows-1252"}, rows: 3, line: 4, last: "Lö3|CP245915106DE|", ignored: []string{"Empfänger"}},
	{name: "hostile-sep-line.csv", rows: 1, line: 3, last: "S1|1Z999AA10123456784|", ignored: []string{"Note, free"}},
	{name: "hostile-formula-cells.csv", rows: 3, bad: 1, line: 3, last: "00124|068671472473|fedex", problems: []string{`4:2 Tracking Number ="0"&"68671472473"`}},
	{name: "hostile-utf16-no-mark.csv", err: "control character U+0000 in the header", hint: "--encoding utf-16le"},
	{name: "hostile-utf16-no-mark.csv", o: intake.Options{Encoding: "utf-16le"}, rows: 1, line: 2, last: "U1|1Z999AA10123456784|"},
	{name: "hostile-shifted-columns.csv", rows: 4, bad: 3, line: 3, last: "H2|1Z999AA10123456784|", ignored: []string{"Name", "City"}, problems: []string{
		"2:5  Bonn", "4:0  ", "5:0  ",
	}},
	{
		name: "hostile-open-quote.csv", rows: 2, bad: 1, line: 5, last: "Q4|028240587935|", ignored: []string{"Name"},
		problems: []string{"2:3 Name \"Pat\nQ2,LZ618655169JP,Joe\nQ3,CP245915106DE,\"Jim\""},
	},
	{
		name: "hostile-controls.csv", rows: 7, bad: 6, line: 8, last: "C7|1Z999AA10123456784|", ignored: []string{"Na\x1b[31mme"},
		left: []string{"UPS", "D\x1b]0;t\aHL\u202e", "U\x1bPS"}, problems: []string{
			"2:1 Order ID C1\x1b[2J", "3:2 Tracking Number 1Z999\x1b]52;c;cm0gLXJm\aAA",
			"4:2 Tracking Number 1Z999\u202eAA10123456784", "5:2 Tracking Number 1Z999\x00AA", "6:2 Tracking Number 1Z999\rAA", "7:2 Tracking Number 1Z999\u009b31mAA",
		},
	},
	{name: "hostile-controls.jsonl", rows: 5, bad: 4, line: 5, last: "C5|1Z999AA10123456784|", problems: []string{
		"1:12 referId C1\x1b[2J",
		"2:37 rawTrackingNumber 1Z\u202e999", "2:77 metadata.carrierCode u\u009bps", "3:45 no\x1b]52;c;eA==\ate ", "4:37 rawTrackingNumber 1234567890123456789",
	}},
	{name: "hostile-web-page.csv", err: "is a web page (HTML), not XLSX, CSV or JSON", hint: "download the export again"},
	{name: "hostile-workbook.csv", err: "it names no workbook", hint: "save it again as XLSX"},
	{name: "hostile-empty.csv", err: "hostile-empty.csv: no data rows"},
	{name: "hostile-header-only.csv", err: "hostile-header-only.csv: no data rows"},
}

func TestFiles(t *testing.T) {
	seen := map[string]bool{}
	for _, want := range files {
		seen[want.name] = true
		t.Run(want.name, func(t *testing.T) { check(t, want) })
	}
	all, err := os.ReadDir(inputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		if strings.HasPrefix(entry.Name(), "hostile-") && !seen[entry.Name()] {
			t.Errorf("%s is not read by any test", entry.Name())
		}
	}
}

func check(t *testing.T, want file) {
	t.Helper()
	f, err := os.Open(filepath.Join(inputs, want.name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := file{name: want.name, o: want.o}
	in, err := intake.Open(want.name, f, want.o)
	var rec intake.Record
	for err == nil {
		if rec, err = in.Next(); err != nil {
			break
		}
		got.add(rec)
		for _, p := range rec.Problems {
			if text := p.Message + p.Hint; strings.ContainsAny(text, "\x1b\x07\x00\r\u202e\u009b") {
				t.Errorf("line %d: foreign text is not made visible: %q", p.Line, text)
			}
		}
	}
	if want.err != "" {
		if !strings.Contains(err.Error(), want.err) || !strings.Contains(hint(err), want.hint) {
			t.Errorf("got %v (hint %q), want %s (hint %q)", err, hint(err), want.err, want.hint)
		}
		return
	}
	if in == nil {
		t.Fatal(err)
	}
	sum := in.Summary()
	got.rows, got.bad, got.ignored = sum.Rows, sum.Bad, sum.Ignored
	for _, c := range sum.LeftOut {
		got.left = append(got.left, c.Name)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf("read otherwise, until %v (-want +got):\n%s", err, diff)
	}
}

// place shows where a problem is and its value.
func place(p intake.Problem) string {
	return fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Header, p.Value)
}

// add takes a record into account.
func (f *file) add(rec intake.Record) {
	for _, p := range rec.Problems {
		f.problems = append(f.problems, place(p))
	}
	if rec.Good() {
		f.line, f.last = rec.Line, rec.Item.ReferID+"|"+rec.Item.Number+"|"+rec.Item.CarrierCode
	}
}

// Every row of every input can be read again from the rejects of all of them.
func TestFilesSurviveRejects(t *testing.T) {
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(inputs, f.name))
		if err != nil {
			t.Fatal(err)
		}
		f.o.KeepText = true
		want, _, ok := records(string(text), f.o)
		if !ok || len(want) == 0 {
			continue
		}
		rejects, err := reject(t, f.o, string(text))
		if err != nil {
			t.Fatal(err)
		}
		f.o.Encoding = "" // rejects have a mark of their own
		got, _, ok := records(rejects, f.o)
		if !ok || len(got) != len(want) {
			t.Errorf("%s: %d rows of %d, %v", f.name, len(got), len(want), ok)
			continue
		}
		for i := range want {
			if want[i].Good() != got[i].Good() || want[i].Good() && want[i].Item != got[i].Item {
				t.Errorf("%s:%d: %v became %v", f.name, want[i].Line, want[i].Item, got[i].Item)
			}
		}
	}
}
