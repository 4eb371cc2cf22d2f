package tracking_test

import (
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestValidate(t *testing.T) {
	const good = "1Z999AA10123456784"
	tests := []struct {
		name      string
		item      tracking.Item
		want      string // part of the message; empty for none
		wantField string
		note      bool
	}{
		{"plain", tracking.Item{ReferID: "ORD-1", Number: good}, "", "", false},
		{"order with hash", tracking.Item{ReferID: "#1001", Number: good}, "", "", false},
		{"like an exponent", tracking.Item{ReferID: "12E5", Number: good}, "", "", false},
		{"fifteen digits and zeros", tracking.Item{ReferID: "1", Number: "123456789012000"}, "", "", false},
		{"22 digits", tracking.Item{ReferID: "1", Number: "9400111899223197428490"}, "", "", false},
		{"no referId", tracking.Item{Number: good}, "referId is empty", tracking.FieldReferID, false},
		{"no number", tracking.Item{ReferID: "1"}, "rawTrackingNumber is empty", tracking.FieldNumber, false},
		{"exponent", tracking.Item{ReferID: "1", Number: "9.4001E+21"}, "rounded this number", tracking.FieldNumber, false},
		{"German exponent", tracking.Item{ReferID: "1", Number: "1,23E+15"}, "rounded this number", tracking.FieldNumber, false},
		{"small exponent", tracking.Item{ReferID: "1E-5", Number: good}, "rounded this number", tracking.FieldReferID, false},
		{"formula error", tracking.Item{ReferID: "1", Number: "#N/A"}, "spreadsheet error", tracking.FieldNumber, false},
		{"22 digits rounded", tracking.Item{ReferID: "1", Number: "9400111899223190000000"}, "a spreadsheet rounded it", tracking.FieldNumber, false},
		{"22 digits rounded to 16", tracking.Item{ReferID: "1", Number: "9400111899223197000000"}, "a spreadsheet rounded it", tracking.FieldNumber, false},
		{"19 digits, 16 kept", tracking.Item{ReferID: "1", Number: "9400111899223197000"}, "", "", false},
		{"18 digits rounded", tracking.Item{ReferID: "1", Number: "123456789012345000"}, "a spreadsheet rounded it", tracking.FieldNumber, false},
		{"17 digits", tracking.Item{ReferID: "1", Number: "12345678901234500"}, "17 digits", tracking.FieldNumber, true},
		{"16 digits", tracking.Item{ReferID: "1", Number: "1234567890123450"}, "16 digits", tracking.FieldNumber, true},
		{"space inside", tracking.Item{ReferID: "1", Number: "1Z999AA1 0123 456784"}, "white space inside", tracking.FieldNumber, false},
		{"no-break space inside", tracking.Item{ReferID: "a\u00a0b", Number: good}, "unusual white space inside", tracking.FieldReferID, true},
		{"escape", tracking.Item{ReferID: "a\x1b[2J", Number: good}, "control character U+001B", tracking.FieldReferID, false},
		{"C1", tracking.Item{ReferID: "a\u009b", Number: good}, "control character U+009B", tracking.FieldReferID, false},
		{"not UTF-8", tracking.Item{ReferID: "a\xff", Number: good}, "not valid UTF-8", tracking.FieldReferID, false},
		{"bidi", tracking.Item{ReferID: "a\u202eb", Number: good}, "invisible character U+202E", tracking.FieldReferID, true},
		{"bidi in a number", tracking.Item{ReferID: "1", Number: "1Z9\u202e1"}, "invisible character U+202E", tracking.FieldNumber, false},
		{"zero width in a number", tracking.Item{ReferID: "1", Number: "1Z9\u200b1"}, "invisible character U+200B", tracking.FieldNumber, false},
		{"totals", tracking.Item{ReferID: "Total:", Number: "12431"}, "a totals line", tracking.FieldNumber, false},
		{"carrier with newline", tracking.Item{ReferID: "1", Number: good, CarrierCode: "d\nhl"}, "control character U+000A", tracking.FieldCarrierCode, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ps := tt.item.Validate(tracking.Rules{})
			if tt.want == "" {
				if len(ps) != 0 {
					t.Errorf("problems %+v; want none", ps)
				}
				return
			}
			if len(ps) != 1 {
				t.Fatalf("problems %+v; want one", ps)
			}
			p := ps[0]
			if !strings.Contains(p.Message, tt.want) || p.Field != tt.wantField || p.Note != tt.note {
				t.Errorf("problem %+v; want %q in %s, note %v", p, tt.want, tt.wantField, tt.note)
			}
			if p.Hint == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestFoldNumber(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"1Z999", "1z999"},
		{"1Z 99-9", "1z999"},
		{"1Z\u00a0999", "1Z999"},
		{"1Z\u2009\u202f\u3000\t999", "1Z999"},
		{"1Z\u2010\u2011\u2013\u2014\u2212\u00ad999", "1Z999"},
		{"äÖß", "Äöß"},
		{"ΣΑΣ", "σας"},
		{"\u212a1", "k1"}, // the sign of kelvin
		{"ſ1", "S1"},
	} {
		if !tracking.SameNumber(tt.a, tt.b) || !tracking.SameNumber(tt.b, tt.a) {
			t.Errorf("%q and %q are not the same", tt.a, tt.b)
		}
		if once := tracking.FoldNumber(tt.a); tracking.FoldNumber(once) != once {
			t.Errorf("%q folds further to %q", once, tracking.FoldNumber(once))
		}
	}
	for _, tt := range []struct{ a, b string }{{"", ""}, {" ", "-"}, {"1", "2"}, {"1_2", "12"}, {"ä", "a"}, {"1\u200b2", "12"}} {
		if tracking.SameNumber(tt.a, tt.b) {
			t.Errorf("%q and %q are the same", tt.a, tt.b)
		}
	}
}

func TestNamesStatus(t *testing.T) {
	for _, tt := range []struct {
		want, number, label, track string
		is                         bool
	}{
		{"7", "7", "", "", true},
		{" 7 ", "7", "", "", true},
		{"7", `"7"`, "", "", true},
		{`"X9"`, `"X9"`, "", "", true},
		{"x9", `"X9"`, "", "", true},
		{"in transit", "7", "IN_TRANSIT", "", true},
		{"in-transit", "7", "", "in_transit", true},
		{"IN_TRANSIT", "7", "In\u00a0 Transit", "", true},
		{"in\u2011transit", "7", "In Transit ", "", true},
		{"zugestellt_äö", "7", "ZUGESTELLT ÄÖ", "", true},
		{"1", "-1", "", "", false},
		{"-1", "-1", "", "", true},
		{"intransit", "7", "IN_TRANSIT", "", false},
		{"in", "7", "IN_TRANSIT", "in_transit", false},
		{"", "", "", "", false},
		{" ", "7", "", "", false},
	} {
		if got := tracking.NamesStatus(tt.want, tt.number, tt.label, tt.track); got != tt.is {
			t.Errorf("%q names %s %q %q: %v; want %v", tt.want, tt.number, tt.label, tt.track, got, tt.is)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	for status, want := range map[int]tracking.Outcome{
		0: tracking.OutcomeUnknown, 100: tracking.OutcomeNotCredible, 200: tracking.OutcomeAccepted, 299: tracking.OutcomeAccepted,
		301: tracking.OutcomeNotCredible, 400: tracking.OutcomeRows, 404: tracking.OutcomeRefused, 408: tracking.OutcomeUnknown,
		500: tracking.OutcomeUnknown, 503: tracking.OutcomeOverloaded, 699: tracking.OutcomeUnknown,
	} {
		if got := tracking.OutcomeOf(status); got != want {
			t.Errorf("%d: %v; want %v", status, got, want)
		}
	}
}

// A run that stops says why.
func TestMeaningsAreWhole(t *testing.T) {
	for o := tracking.OutcomeUnknown; o <= tracking.OutcomeNotCredible; o++ {
		if m := o.Meaning(); m.Name == "" || m.Exit == "" || (m.Stop == tracking.StopNever) != (m.Why == "") {
			t.Errorf("%d: %+v", o, m)
		}
	}
}
