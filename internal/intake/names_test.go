package intake_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
)

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
