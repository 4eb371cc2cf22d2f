package intake_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
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
		{"Order,Tracking,Dienst", intake.Options{Map: map[string]string{"metadata.carrierCode": "Dienst"}}, "1|2|3"},
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
		{intake.Options{Map: map[string]string{"refer_id": "a"}}, `--map "refer_id": no such field`, "write referId; "},
		{intake.Options{Map: map[string]string{"x": "a"}}, `--map "x": no such field`, "fields: "},
		{intake.Options{Map: map[string]string{"carrierCode": "a", "metadata.carrierCode": "b"}}, `--map "metadata.carrierCode": two columns for one field`, "one column"},
		{intake.Options{Map: map[string]string{"carrierCode": "a", "carrier": "b"}}, `--map "carrier=b": carrierCode has a column as well`, "names"},
		{intake.Options{Carriers: map[string]string{"DHL": "dhl", "dhl ": "dhl-de"}}, `this name has two codes`, "each name one code"},
		{intake.Options{Encoding: "klingon\x1b"}, `--encoding "klingon\x1b": no such encoding`, "windows-1252"},
		{intake.Options{Encoding: "replacement"}, `no such encoding`, "utf-8"},
		{intake.Options{Format: "yaml"}, `--format "yaml": no such format`, "jsonl"},
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
