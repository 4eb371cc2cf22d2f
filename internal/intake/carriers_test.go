package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
)

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

// What is plainly a name in a column of codes is an error, unless it has a code or
// odd values are accepted; JSON likewise.
func TestCarrierNamesWhereCodesShouldStand(t *testing.T) {
	for _, name := range []string{"UPS", "DHL Express", "Other", "USPS", "dhl express", "Österreichische-Post"} {
		csv := "referId,rawTrackingNumber,Carrier Code\nA1,1Z1,dhl-germany\nA2,1Z2," + name + "\nA3,1Z3,4px_2\n"
		json := `[{"referId":"A1","rawTrackingNumber":"1Z1","metadata":{"carrierCode":"dhl-germany"}},
			{"referId":"A2","rawTrackingNumber":"1Z2","metadata":{"carrierCode":"` + name + `"}},
			{"referId":"A3","rawTrackingNumber":"1Z3","metadata":{"carrierCode":"4px_2"}}]`
		for file, text := range map[string]string{"in.csv": csv, "in.json": json} {
			rows := func(code string, o intake.Options) (result, intake.Summary) {
				got, sum := readAll(t, file, text, o)
				if len(got.Good) != 3 || !strings.HasSuffix(got.Good[0], "|dhl-germany") || !strings.HasSuffix(got.Good[1], "A2|1Z2|"+code) || !strings.HasSuffix(got.Good[2], "|4px_2") {
					t.Errorf("%s, %s: %q, %q; want three rows, the second of code %q", file, name, got.Good, got.Problems, code)
				}
				return got, sum
			}
			got, sum := readAll(t, file, text, intake.Options{})
			if len(got.Good) != 2 || len(got.Problems) != 1 || !strings.HasSuffix(got.Problems[0], "carrierCode is a carrier name, not a code") {
				t.Errorf("%s, %s: %q, %q; want one bad row", file, name, got.Good, got.Problems)
			}
			if want := []intake.Carrier{{Name: name, Rows: 1}}; !cmp.Equal(want, sum.AsCodes) {
				t.Errorf("%s: names %v, want %v", file, sum.AsCodes, want)
			}
			_, sum = rows(name, intake.Options{AcceptOdd: true})
			if len(sum.AsCodes) != 0 {
				t.Errorf("%s: names %v that are accepted", file, sum.AsCodes)
			}
			for _, code := range []string{"a-code", "", name} {
				rows(code, intake.Options{Carriers: map[string]string{strings.ToUpper(name): code}})
			}
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
