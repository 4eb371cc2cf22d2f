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
		{"exponent", tracking.Item{ReferID: "1", Number: "9.4001E+21"}, "rounded number", tracking.FieldNumber, false},
		{"German exponent", tracking.Item{ReferID: "1", Number: "1,23E+15"}, "rounded number", tracking.FieldNumber, false},
		{"small exponent", tracking.Item{ReferID: "1E-5", Number: good}, "rounded number", tracking.FieldReferID, false},
		{"formula error", tracking.Item{ReferID: "1", Number: "#N/A"}, "spreadsheet error", tracking.FieldNumber, false},
		{"22 digits rounded", tracking.Item{ReferID: "1", Number: "9400111899223190000000"}, "a spreadsheet rounded it", tracking.FieldNumber, false},
		{"22 digits rounded to 16", tracking.Item{ReferID: "1", Number: "9400111899223197000000"}, "a spreadsheet rounded it", tracking.FieldNumber, false},
		{"19 digits, 16 kept", tracking.Item{ReferID: "1", Number: "9400111899223197000"}, "", "", false},
		{"18 digits rounded", tracking.Item{ReferID: "1", Number: "123456789012345000"}, "a spreadsheet rounded it", tracking.FieldNumber, false},
		{"17 digits", tracking.Item{ReferID: "1", Number: "12345678901234500"}, "17 digits", tracking.FieldNumber, true},
		{"16 digits", tracking.Item{ReferID: "1", Number: "1234567890123450"}, "16 digits", tracking.FieldNumber, true},
		{"space inside", tracking.Item{ReferID: "1", Number: "1Z999AA1 0123 456784"}, "white space inside", tracking.FieldNumber, false},
		{"no-break space inside", tracking.Item{ReferID: "a\u00a0b", Number: good}, "white space inside", tracking.FieldReferID, false},
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
			ps := tt.item.Validate(false)
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
