package intake_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// columnsOf reads a table with the given header whose cells are numbered from
// 1, and returns "ref|number|carrier".
func columnsOf(t *testing.T, header string, o intake.Options) (string, error) {
	t.Helper()
	row := make([]string, strings.Count(header, ",")+1)
	for i := range row {
		row[i] = string(rune('1' + i))
	}
	in, err := intake.Open("in.csv", strings.NewReader(header+"\n"+strings.Join(row, ",")+"\n"), o)
	if err != nil {
		return "", err
	}
	rec, err := in.Next()
	if err != nil {
		t.Fatal(err)
	}
	return rec.Item.ReferID + "|" + rec.Item.Number + "|" + rec.Item.CarrierCode, nil
}

func TestColumns(t *testing.T) {
	names := map[string]string{"1": "one", "2": "two", "3": "three", "4": "four"}
	for _, tt := range []struct {
		header string
		o      intake.Options
		want   string
	}{
		{"referId,rawTrackingNumber,carrierCode", intake.Options{}, "1|2|3"},
		{"metadata.carrierCode,rawTrackingNumber,referId", intake.Options{}, "3|2|1"},
		{"REFER_ID,Raw Tracking Number,Carrier Code", intake.Options{}, "1|2|3"},
		{"Order ID,Tracking Number", intake.Options{}, "1|2|"},
		{"order_no.,TRACKING-NO.", intake.Options{}, "1|2|"},
		{"Order #,Tracking #", intake.Options{}, "1|2|"},
		{"Order,AWB", intake.Options{}, "1|2|"},
		{"Reference,Waybill", intake.Options{}, "1|2|"},
		{"Ref ID,Air Waybill", intake.Options{}, "1|2|"},
		{"Order Name,Consignment Number", intake.Options{}, "1|2|"},
		{"order-id,order-item-id,tracking-number,carrier-code,carrier-name", intake.Options{}, "1|3|4"},
		{"referId,Order ID,Reference,rawTrackingNumber,Tracking Number", intake.Options{}, "1|4|"},
		{"Refer ID,referId,rawTrackingNumber", intake.Options{}, "2|3|"},
		{"Order,Tracking,Carrier", intake.Options{Carriers: names}, "1|2|three"},
		{"Order,Tracking,Courier,Carrier Code", intake.Options{Carriers: names}, "1|2|4"},
		{"Order,Tracking,Courier,Carrier Code", intake.Options{Carriers: names, Map: map[string]string{"carrier": "courier"}}, "1|2|three"},
		{"Order,Tracking,Courier,Carrier Name", intake.Options{}, "1|2|"},
		{"Order,Tracking,Courier,Carrier Name", intake.Options{Carriers: names, Map: map[string]string{"carrier": "Carrier Name"}}, "1|2|four"},
		{"Order,Tracking,Dienst", intake.Options{Map: map[string]string{"carrierCode": "Dienst"}}, "1|2|3"},
		{"Order,Reference,Tracking", intake.Options{Map: map[string]string{"referId": "Reference"}}, "2|3|"},
		{"Order,Nummer,Tracking", intake.Options{Map: map[string]string{"rawTrackingNumber": "nummer"}}, "1|2|"},
		{"Order No,order no,Tracking", intake.Options{Map: map[string]string{"referId": "order no"}}, "2|3|"},
		{"rawTrackingNumber,x", intake.Options{Map: map[string]string{"referId": "rawTrackingNumber"}}, "1|1|"},
		{"Parcel,x", intake.Options{Map: map[string]string{"referId": "Parcel", "rawTrackingNumber": "Parcel"}}, "1|1|"},
		{`"Order ID","Tracking Number"`, intake.Options{}, "1|2|"},
		{"waybillError,referId,rawTrackingNumber", intake.Options{}, "2|3|"},
	} {
		got, err := columnsOf(t, tt.header, tt.o)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v; want %s", tt.header, got, err, tt.want)
		}
	}
}

func TestAmbiguousCarrierOnlyMattersWithCodes(t *testing.T) {
	_, err := columnsOf(t, "Order,AWB,Carrier,Courier", intake.Options{Carriers: map[string]string{"UPS": "ups"}})
	var columns *intake.ColumnError
	if !errors.As(err, &columns) {
		t.Fatalf("got %v, want a ColumnError", err)
	}
	want := []intake.Mapping{{Field: "carrier", Header: "Carrier"}, {Field: "carrier", Header: "Courier"}}
	if diff := cmp.Diff(want, columns.Maps); diff != "" {
		t.Errorf("maps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Carrier", "Courier"}, columns.Found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, tt := range []struct {
		o    intake.Options
		want string
		hint string
	}{
		{intake.Options{Map: map[string]string{"carrierCode": "a", "carrier": "b"}}, `--map "carrier=b": carrierCode has a column as well`, "names"},
		{intake.Options{Encoding: "klingon\x1b"}, `--encoding "klingon\x1b": no such encoding`, "windows-1252"},
		{intake.Options{Encoding: "replacement"}, `no such encoding`, "utf-8"},
	} {
		_, err := columnsOf(t, "referId,rawTrackingNumber", tt.o)
		var option *intake.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want an OptionError with %q", tt.o, err, tt.want)
			continue
		}
		if !strings.Contains(option.Hint(), tt.hint) {
			t.Errorf("%+v: hint %q, want it to have %q", tt.o, option.Hint(), tt.hint)
		}
	}
}

func TestHeader(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"columns that nobody knows", "Order No;\"AWB; new\"\nA;1\n", []string{"Order No", "AWB; new"}},
		{"sep=", "sep=|\nOrder|Number\n", []string{"Order", "Number"}},
		{"byte order mark", "\ufeffreferId,rawTrackingNumber\r\n", []string{"referId", "rawTrackingNumber"}},
		{"nothing", "", nil},
		{"JSON", `[{"referId":"A"}]`, nil},
	}
	for _, tt := range tests {
		got, err := intake.Header("orders.csv", strings.NewReader(tt.text), intake.Options{})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: Header = %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := intake.Header("orders.xlsx", strings.NewReader("PK\x03\x04"), intake.Options{}); err == nil {
		t.Error("a workbook has no header, and no error says so")
	}
}

func TestCarriers(t *testing.T) {
	const text = "Order,AWB,Carrier\nA1,1Z1,DHL Express\nA2,1Z2, dhl EXPRESS\nA3,1Z3,FedEx\nA4,1Z4,\nA5,1Z5,ÖPOST\nA6,1Z6,Pickup\nA7,1Z7,FedEx\n"
	got, sum := readAll(t, "in.csv", text, intake.Options{Carriers: map[string]string{" Dhl Express ": "dhl", "öpost": "at-post", "pickup": ""}})
	want := result{Good: []string{"2 A1|1Z1|dhl", "3 A2|1Z2|dhl", "4 A3|1Z3|", "5 A4|1Z4|", "6 A5|1Z5|at-post", "7 A6|1Z6|", "8 A7|1Z7|"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]intake.Carrier{{Name: "FedEx", Rows: 2}}, sum.LeftOut); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

func TestCarrierNamesThatAreNotUTF8(t *testing.T) {
	const text = "Order,AWB,Carrier\nA1,1Z1,\xd6POST\n"
	got, sum := readAll(t, "in.csv", text, intake.Options{})
	if len(got.Good) != 1 || len(sum.LeftOut) != 1 || sum.LeftOut[0].Name != "\xd6POST" {
		t.Errorf("got %+v, %+v; want a good row whose carrier is left out", got, sum.LeftOut)
	}
	got, _ = readAll(t, "in.csv", text, intake.Options{Carriers: map[string]string{"ÖPOST": "at-post"}})
	if want := []string{"2:3 Carrier: the carrier name is not valid UTF-8"}; !cmp.Equal(want, got.Problems) {
		t.Errorf("got %q, want %q", got.Problems, want)
	}
}

func TestCarrierCodesGoAsWritten(t *testing.T) {
	const text = "referId,rawTrackingNumber,carrierCode\nA1,1Z1, ups \nA2,1Z2,no_such-carrier\nA3,1Z3,\nA4,1Z4,a\x1bb\n"
	got, sum := readAll(t, "in.csv", text, intake.Options{Carriers: map[string]string{"ups": "never"}})
	want := result{
		Good:     []string{"2 A1|1Z1|ups", "3 A2|1Z2|no_such-carrier", "4 A3|1Z3|"},
		Problems: []string{"5:3 carrierCode: control character U+001B in carrierCode"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
	if len(sum.LeftOut) != 0 {
		t.Errorf("left out %v, want none", sum.LeftOut)
	}
}

// What looks like a name in a column of codes is sent as written, with a note, or as the
// code that it has; JSON likewise.
func TestCarrierNamesWhereCodesShouldStand(t *testing.T) {
	for _, name := range []string{"UPS", "DHL Express", "Other", "USPS", "dhl express", "Österreichische-Post"} {
		csv := "referId,rawTrackingNumber,Carrier Code\nA1,1Z1,dhl-germany\nA2,1Z2," + name + "\nA3,1Z3,4px_2\n"
		json := `[{"referId":"A1","rawTrackingNumber":"1Z1","metadata":{"carrierCode":"dhl-germany"}},
			{"referId":"A2","rawTrackingNumber":"1Z2","metadata":{"carrierCode":"` + name + `"}},
			{"referId":"A3","rawTrackingNumber":"1Z3","metadata":{"carrierCode":"4px_2"}}]`
		for file, text := range map[string]string{"in.csv": csv, "in.json": json} {
			for _, codes := range []map[string]string{nil, {strings.ToUpper(name): "a-code"}, {name: ""}} {
				want, notes := name, 1
				if codes != nil {
					want, notes = codes[strings.ToUpper(name)], 0
				}
				if name == "UPS" && codes != nil {
					want = codes[name]
				}
				got, _ := readAll(t, file, text, intake.Options{Carriers: codes})
				if len(got.Good) != 3 || !strings.HasSuffix(got.Good[1], "A2|1Z2|"+want) || len(got.Problems) != notes {
					t.Errorf("%s, %s, %v: %q, %q; want code %q and %d notes", file, name, codes, got.Good, got.Problems, want, notes)
				}
			}
		}
	}
}

// What stands for no code is an error, as it is in a number.
func TestPlaceholdersForCarrierCodes(t *testing.T) {
	for _, code := range []string{"n/a", "N/A", "-", "null", "0", "000", "none", "#N/A", "TBD", "=A1"} {
		csv := "referId,rawTrackingNumber,carrierCode\nA1,1Z1," + code + "\n"
		json := `[{"referId":"A1","rawTrackingNumber":"1Z1","metadata":{"carrierCode":"` + code + `"}}]`
		for file, text := range map[string]string{"in.csv": csv, "in.json": json} {
			if got, _ := readAll(t, file, text, intake.Options{}); len(got.Good) != 0 || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "carrierCode") {
				t.Errorf("%s, %s: %+v; want one bad row", file, code, got)
			}
			if got, _ := readAll(t, file, text, intake.Options{Rules: tracking.Rules{AcceptOdd: true}}); len(got.Good) != 1 {
				t.Errorf("%s, %s: %+v; want it accepted", file, code, got)
			}
		}
		rec, _ := intake.Options{}.One("line", tracking.Item{ReferID: "A1", Number: "1Z1", CarrierCode: code})
		if rec.Good() {
			t.Errorf("%s: %+v", code, rec)
		}
	}
	for _, code := range []string{"3011", "100003", "dhl", "no-1"} {
		if got, _ := readAll(t, "in.csv", "referId,rawTrackingNumber,carrierCode\nA1,1Z1,"+code+"\n", intake.Options{}); len(got.Good) != 1 || len(got.Problems) != 0 {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

// Spaces are removed in numbers alone; an order has its name as it is written.
func TestSpacesInIdentifiers(t *testing.T) {
	csv := "referId,rawTrackingNumber\nSO 1001,1Z 1\n"
	json := `[{"referId":"SO 1001","rawTrackingNumber":"1Z 1"}]`
	for file, text := range map[string]string{"in.csv": csv, "in.json": json} {
		if got, _ := readAll(t, file, text, intake.Options{}); len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "white space inside rawTrackingNumber") {
			t.Errorf("%s: %+v; want the number to be bad", file, got)
		}
		got, sum := readAll(t, file, text, intake.Options{StripSpaces: true})
		if len(got.Good) != 1 || !strings.HasSuffix(got.Good[0], " SO 1001|1Z1|") || len(got.Problems) != 0 || sum.Stripped != 1 {
			t.Errorf("%s: %+v, %d stripped", file, got, sum.Stripped)
		}
	}
	item := tracking.Item{ReferID: "SO 1001", Number: "1Z 1"}
	rec, sum := (intake.Options{StripSpaces: true}).One("line", item)
	if !rec.Good() || rec.Item.Number != "1Z1" || rec.Item.ReferID != item.ReferID || sum.Stripped != 1 {
		t.Errorf("%+v, %+v", rec, sum)
	}
	for _, odd := range []string{"SO  1", "SO\u00a01"} {
		rec, _ := intake.Options{}.One("line", tracking.Item{ReferID: odd, Number: "1Z1"})
		if !rec.Good() || len(rec.Problems) != 1 {
			t.Errorf("%q: %+v; want a note", odd, rec)
		}
	}
}

func TestManyCarrierNames(t *testing.T) {
	var b strings.Builder
	b.WriteString("Order,AWB,Carrier\n")
	const extra = 50
	for i := range intake.MaxCarriers + extra {
		fmt.Fprintf(&b, "A%d,1Z%d,carrier %d\n", i, i, i)
	}
	b.WriteString("B1,1Z,carrier 7\nB2,1Z,late\n")
	got, sum := readAll(t, "in.csv", b.String(), intake.Options{Carriers: map[string]string{"Late": "late"}})
	if n := len(sum.LeftOut); n != intake.MaxCarriers || sum.LeftOutMore != extra {
		t.Errorf("%d names, %d more rows; want %d, %d", n, sum.LeftOutMore, intake.MaxCarriers, extra)
	}
	if first := sum.LeftOut[0]; first != (intake.Carrier{Name: "carrier 7", Rows: 2}) {
		t.Errorf("first is %v, want the name of most rows", first)
	}
	if last := got.Good[len(got.Good)-1]; !strings.HasSuffix(last, "B2|1Z|late") {
		t.Errorf("last row %s, want the code of a name that was not counted", last)
	}
}
