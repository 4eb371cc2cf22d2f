package intake_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
)

// records reads an input to its end. It returns false if it is refused, in whole or from some place on.
func records(text string, o intake.Options) ([]intake.Record, intake.Summary, bool) {
	in, err := intake.Open("in", strings.NewReader(text), o)
	if err != nil {
		return nil, intake.Summary{}, false
	}
	var all []intake.Record
	for {
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, intake.ErrNoRows):
			return all, in.Summary(), true
		case err != nil:
			return nil, intake.Summary{}, false
		}
		all = append(all, rec)
	}
}

// stayBad fails if a bad row is lost, or passes for good, after it went through a file of rejects.
func stayBad(t *testing.T, text string, o intake.Options, bad int) {
	t.Helper()
	rejects, err := reject(t, o, text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	again, _, ok := records(rejects, o)
	if !ok || len(again) != bad {
		t.Fatalf("%d bad rows of %q became %d, read %v:\n%q", bad, text, len(again), ok, rejects)
	}
	// A row that was refused for the line beside it may be good where that line
	// has become a record of its own, and a row that may be cut off where it has
	// a line end.
	byNeighbour := strings.Count(rejects, "it may belong to this row") + strings.Count(rejects, "it may be cut off")
	for _, rec := range again {
		if rec.Good() {
			if byNeighbour--; byNeighbour >= 0 {
				continue
			}
			t.Fatalf("line %d of the rejects of %q is good: %v\n%q", rec.Line, text, rec.Item, rejects)
		}
	}
}

// seeds adds the small inputs of testdata.
func seeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("../../testdata/input/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no inputs: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(0), string(text[:min(len(text), 600)]))
	}
}

// FuzzTable holds that a table is refused, or no row of it is lost or changed.
func FuzzTable(f *testing.F) {
	headers := []string{"", head, "Order;AWB;waybillError\n", "AWB\tx\tcarrierCode\tOrder\r\n", "name|Order|AWB\r", "sep=^\nOrder^AWB\n", "\ufeffOrder,AWB\n"}
	seeds(f)
	for i, s := range []string{"", "A1,1Z1,\nA2,\"1\"Z,\nA3,1Z", "A1;;x\nA2;1Z;x;y\n", "1Z\t\"\"\"\"\t\t=\"0\"\r\n1\t\"\n2\"", "x|A1|1Z1\r\r|A2|\r", "=\"1\"^\"=\"\"2\"\"\"\n", "A1\n,,\n"} {
		f.Add(byte(i), s)
	}
	for _, s := range []string{
		head + "A1,1Z1,\nA2,\"1\"Z,\nA3,1Z", "Order,AWB\r=\"1\",\"=\"\"2\"\"\"\r,,\r", "sep=;\nOrder;AWB;waybillError\nA;;x\n",
		"\ufeff\"Order\"\tAWB\tCarrier Code\n\"A\nB\"\t1\t\n", "AWB,x,Order\nOrder,AWB\n1Z,,O,P\n", "\xff\xfeO\x00r\x00d\x00e\x00r\x00,\x00A\x00W\x00B\x00\n\x00A\x00,\x00\n\x00",
	} {
		f.Add(byte(0), s)
	}
	f.Add(byte(0x1d), "0\n0,A0,")
	f.Add(byte(1), strings.ReplaceAll("na 0519968491,USPS\tO'Brien, Pat", "", "\x00"))
	f.Add(byte(0), "Order,TrACkNumBer\n0,000000001\n0,A")
	f.Add(byte(0), "B,x,\x80\xff\xff\xffr\nOrder,AWB")
	f.Add(byte(0), "\nOrder|AWB|Note, f\x9f\x9f\ree\r\nS")
	f.Fuzz(func(t *testing.T, header byte, body string) {
		text := headers[int(header)%len(headers)] + body
		o := intake.Options{Format: intake.CSV}
		all, sum, ok := records(text, o)
		if !ok {
			return
		}
		if sum.Bad > 0 {
			stayBad(t, text, o, int(sum.Bad))
		}
		if sum.Encoding != "utf-8" || sum.Delimiter == 0 || strings.HasPrefix(strings.ToLower(strings.TrimLeft(text, "\ufeff,;\t|\" \r\n\v\f")), "sep=") {
			return
		}
		ref := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
		ref.Comma, ref.FieldsPerRecord = sum.Delimiter, -1
		if want, err := rowsFrom(ref, sum.HeaderRow); err == nil && !strings.Contains(text, "\r") {
			compareRows(t, text, all, want)
		}
	})
}

// rowsFrom reads the rows that begin in a line or below it.
func rowsFrom(r *csv.Reader, line int) (rows [][]string, err error) {
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if first, _ := r.FieldPos(0); first >= line {
			rows = append(rows, row)
		}
	}
}

// compareRows checks records against the rows that encoding/csv reads, the header first.
func compareRows(t *testing.T, text string, all []intake.Record, want [][]string) {
	t.Helper()
	full := 0
	for _, row := range want {
		if strings.TrimSpace(strings.Join(row, "")) != "" {
			full++
		}
	}
	if len(all) != full-1 && !strings.ContainsAny(text, "\ufeff\u00a0\u0085") {
		t.Fatalf("%d records of %d rows in %q", len(all), full-1, text)
	}
	for _, rec := range all {
		if !rec.Good() {
			continue
		}
		found := false
		for _, row := range want {
			var ref, number bool
			for _, cell := range row {
				cell = plainCell(cell)
				ref, number = ref || cell == rec.Item.ReferID, number || cell == rec.Item.Number
			}
			found = found || ref && number
		}
		if !found {
			t.Fatalf("line %d of %q: %v is in no row of %q", rec.Line, text, rec.Item, want)
		}
	}
}

// plainCell is what a cell that encoding/csv read stands for.
func plainCell(cell string) string {
	cell = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(cell), "\ufeff"))
	if inner, ok := strings.CutPrefix(cell, `="`); ok && strings.HasSuffix(inner, `"`) {
		inner = strings.TrimSuffix(inner, `"`)
		if !strings.Contains(strings.ReplaceAll(inner, `""`, ""), `"`) {
			cell = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.ReplaceAll(inner, `""`, `"`)), "\ufeff"))
		}
	}
	return cell
}

// FuzzItems holds that a JSON text is refused, or every item of it is read as encoding/json reads it.
func FuzzItems(f *testing.F) {
	seeds(f)
	for _, s := range []string{
		"[" + item1 + "]", `{"data":[` + item1 + `]}`, item1 + "\n" + item1, `[{"referId":"\ud83d\ude00","rawTrackingNumber":"x","metadata":{"carrierCode":null}},1,{"a":"\\\""}]`,
		`{"x":1,"data":[{}]}`, `[{"data":[]},{"waybillError":1}]`, "[{\"referId\":\"\xff\",\"referId\":1}]",
	} {
		f.Add(byte(0), s)
	}
	f.Add(byte(1), item1+","+item1)
	f.Add(byte(2), `"\u0041","metadata":{"carrierCode":"x"}`)
	f.Add(byte(3), item1)
	f.Fuzz(func(t *testing.T, around byte, body string) {
		a := [][2]string{{"", ""}, {"[", "]"}, {`{"referId":"A1","rawTrackingNumber":`, "}"}, {`{"data":[`, "]}"}}[around%4]
		text := a[0] + body + a[1]
		o := intake.Options{Format: intake.JSON}
		all, sum, ok := records(text, o)
		if !ok {
			return
		}
		if sum.Bad > 0 {
			stayBad(t, text, o, int(sum.Bad))
		}
		if sum.Encoding != "utf-8" {
			return
		}
		want := elements(t, text)
		if len(want) != len(all) {
			t.Fatalf("%d records of %d items in %q", len(all), len(want), text)
		}
		for i, rec := range all {
			if rec.Good() {
				compareItem(t, rec, want[i])
			}
		}
	})
}

// elements returns the items of a JSON text.
func elements(t *testing.T, text string) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	dec := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("accepted what is not JSON: %v in %q", err, text)
		}
		var list []json.RawMessage
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &list) == nil && raw[0] == '[' {
			all = append(all, list...)
		} else if json.Unmarshal(raw, &fields) == nil && len(fields) == 1 && json.Unmarshal(fields["data"], &list) == nil && fields["data"][0] == '[' {
			all = append(all, list...)
		} else {
			all = append(all, raw)
		}
	}
}

func compareItem(t *testing.T, rec intake.Record, raw json.RawMessage) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("a good row that is no object: %s", raw)
	}
	for field, got := range map[string]string{"referId": rec.Item.ReferID, "rawTrackingNumber": rec.Item.Number} {
		want, ok := fields[field].(string)
		want = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(want), "\ufeff"))
		if !ok || want != got {
			t.Errorf("%s is %q, want %q of %s", field, got, want, raw)
		}
	}
	for field := range fields {
		if field != "referId" && field != "rawTrackingNumber" && field != "metadata" && field != "waybillError" {
			t.Errorf("field %q was not refused in %s", field, raw)
		}
	}
	meta, _ := fields["metadata"].(map[string]any)
	code, _ := meta["carrierCode"].(string)
	if got := rec.Item.CarrierCode; got != strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(code), "\ufeff")) {
		t.Errorf("carrier code %q of %s", got, raw)
	}
}
