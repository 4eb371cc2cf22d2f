package intake_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// --map is proposed for what fits by name and by content, and for nothing else.
func TestProposedColumns(t *testing.T) {
	const rows = "Ana,1001,1Z999AA10123456784,2026-11-20\nBob,1002,1Z5R89390357567127,2026-11-21\n"
	for _, tt := range []struct {
		name, header string
		given        map[string]string
		want         []intake.Mapping
	}{
		{"by content alone", "Customer,No,Code,Day", nil, []intake.Mapping{{Field: "rawTrackingNumber", Header: "Code"}}},
		{"a name whose values are dates", "Customer,No,Code,Order day", nil, []intake.Mapping{{Field: "rawTrackingNumber", Header: "Code"}}},
		{"a name whose values are words", "Order for,No,Tracking by,Day", nil, []intake.Mapping{{Field: "rawTrackingNumber", Header: "Tracking by"}}},
		{"by name and content", "Customer,Order at shop,Code,Day", nil, []intake.Mapping{{Field: "referId", Header: "Order at shop"}, {Field: "rawTrackingNumber", Header: "Code"}}},
		{"the other given", "Customer,No,Code,Day", map[string]string{"referId": "No"}, []intake.Mapping{{Field: "rawTrackingNumber", Header: "Code"}}},
		{"two that sound alike", "Customer,Our order X,Code,Order day", map[string]string{"rawTrackingNumber": "Code"}, []intake.Mapping{{Field: "referId", Header: "Our order X"}}},
	} {
		for _, title := range []string{"", "Export of November\n\n"} {
			_, err := intake.Open("in.csv", strings.NewReader(title+tt.header+"\n"+rows), intake.Options{Map: tt.given})
			var columns *intake.ColumnError
			if !errors.As(err, &columns) {
				t.Errorf("%s: got %v, want a ColumnError", tt.name, err)
				continue
			}
			if diff := cmp.Diff(tt.want, columns.Maps); diff != "" || columns.Header[0] == "Export of November" {
				t.Errorf("%s: %v\n%s", tt.name, err, diff)
			}
		}
	}
}

// A first line with values is no header, whatever --map says of it.
func TestFirstLineWithData(t *testing.T) {
	for name, text := range map[string]string{
		"number": "ORD-1,1Z999AA10123456784\nORD-2,1Z5R89390357567127\n",
		"mail":   "1001,a@example.com,GM12\n1002,b@example.com,GM13\n",
		"link":   "1001;https://example.com/1\n1002;https://example.com/2\n",
	} {
		first := strings.FieldsFunc(strings.SplitN(text, "\n", 2)[0], func(r rune) bool { return r == ',' || r == ';' })
		for _, o := range []intake.Options{{}, {Map: map[string]string{"referId": first[0], "rawTrackingNumber": first[1]}}, {Refs: true}, {Refs: true, Map: map[string]string{"referId": first[0]}}} {
			_, err := intake.Open("in.csv", strings.NewReader(text), o)
			var columns *intake.ColumnError
			if !errors.As(err, &columns) || !strings.Contains(err.Error(), "in.csv:1: the line has data, such as ") || !strings.Contains(columns.Hint(), "add a first line with the names of the columns") {
				t.Errorf("%s, %v: got %v", name, o.Map, err)
			}
		}
	}
	got, _ := readAll(t, "in.csv", "Order,AWB,1234567890123\nA1,1Z1,x\n", intake.Options{})
	if len(got.Good) != 1 {
		t.Errorf("a header with a long number: %+v", got)
	}
}

// Lines above the header are a title, as in a sheet.
func TestTitleAboveTheHeader(t *testing.T) {
	for name, text := range map[string]string{
		"one cell":      "Orders of November\nOrder,AWB\nA1,1Z1\n",
		"as wide":       "Orders of November,\n,\nOrder,AWB\nA1,1Z1\n",
		"other marks":   "Orders, all of them, of November\nOrder;AWB\nA1;1Z1\n",
		"several lines": "Shop GmbH\n\nOrders\n2026-11-20\n\"Order\",\"AWB\"\nA1,1Z1\n",
		"one name":      "Order,2026\nOrder,AWB\nA1,1Z1\n",
	} {
		got, sum := readAll(t, "in.csv", text, intake.Options{})
		line := strings.Count(text, "\n")
		if len(got.Good) != 1 || !strings.HasSuffix(got.Good[0], " A1|1Z1|") || sum.HeaderRow != line-1 {
			t.Errorf("%s: %+v, header in %d", name, got, sum.HeaderRow)
		}
	}
	if _, sum := readAll(t, "in.csv", "\n\nOrder,AWB\nA1,1Z1\n", intake.Options{}); sum.HeaderRow != 0 {
		t.Errorf("blank lines are no title: %d", sum.HeaderRow)
	}
}

// A last line without a line end is an error if its number has not the form of the others.
func TestNumberThatMayBeCutOff(t *testing.T) {
	const ups = "1Z999AA10123456784"
	for name, tt := range map[string]struct {
		text string
		bad  bool
	}{
		"whole":                     {"A1," + ups + "\nA2,1Z5R89390357567127", false},
		"cut":                       {"A1," + ups + "\nA2,1Z5R89390357567127\nA3,1Z5R8939", true},
		"cut to a length of others": {"A1," + ups + "\nA2,1Z5R89390357567127\nA3,123456789", true},
		"with a line end":           {"A1," + ups + "\nA2,1Z5R8939\n", false},
		"another form":              {"A1," + ups + "\nA2,1Z5R89390357567127\nA3,RB123456785GB", false},
		"lengths differ":            {"A1," + ups + "\nA2,986578788855\nA3,65561557219", false},
		"lengths differ, cut":       {"A1," + ups + "\nA2,986578788855\nA3,98657", true},
		"unknown forms":             {"A1,QQ-12345678-X\nA2,QQ-12345678-XY\nA3,QQ-12", false},
	} {
		got, _ := readAll(t, "in.csv", "Order,AWB\n"+tt.text, intake.Options{})
		if bad := len(got.Problems) > 0; bad != tt.bad {
			t.Errorf("%s: %+v", name, got)
		}
		if got, _ := readAll(t, "in.csv", "Order,AWB\n"+tt.text, intake.Options{Rules: tracking.Rules{AcceptOdd: true}}); len(got.Good) != strings.Count(tt.text, ",") {
			t.Errorf("%s: %+v; want it accepted", name, got)
		}
	}
	// What follows the number shows that it is whole.
	if got, _ := readAll(t, "in.csv", "AWB,Order\n"+ups+",A1\n1Z5R89390357567127,A2\n1Z5R8939,A3", intake.Options{}); len(got.Problems) != 0 {
		t.Errorf("%+v", got)
	}
}
