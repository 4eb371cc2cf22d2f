package tracking_test

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

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
