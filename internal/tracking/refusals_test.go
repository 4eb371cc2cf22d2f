package tracking_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestRefusalsTakeOnlyRowsThatAreNamed(t *testing.T) {
	items := []tracking.Item{
		{ReferID: "A", Number: "N 1"},
		{ReferID: "A", Number: "N2"},
		{ReferID: "B", Number: "N3"},
		{ReferID: "C", Number: "x-4"},
		{ReferID: "C", Number: "X4"},
		{ReferID: "D", Number: "S5"},
		{ReferID: "E", Number: "S5"},
	}
	const silent = "the service refused this row without saying why"
	type rows map[int]string
	tests := []struct {
		name, raw string
		want      rows
	}{
		{"empty", ``, nil},
		{"all good", `{"items":[{"referId":"A","rawTrackingNumber":"N1","success":true,"error":null}]}`, nil},
		{"pair named", `{"items":[{"referId":"A","rawTrackingNumber":"n-1","success":false,"message":"bad number"}]}`, rows{0: "bad number"}},
		{"number named", `{"data":[{"trackingNumber":"N3","error":{"message":"no carrier"}}]}`, rows{2: "no carrier"}},
		{"referId of two parcels decides nothing", `{"failed":[{"referId":"A","reason":"x"}]}`, nil},
		{"listed as failed", `{"failed":[{"referId":"B","reason":"x"}]}`, rows{2: "x"}},
		{"listed without a word", `{"failed":[{"referId":"B"}]}`, rows{2: silent}},
		{"in an object named error", `{"error":{"rows":[{"item":{"referId":"B"}}]}}`, rows{2: silent}},
		{"a status word", `[{"rawTrackingNumber":"N2","status":"rejected"}]`, rows{1: silent}},
		{"a tracking's status is no verdict", `{"data":[{"referId":"B","trackingNumber":"N3","status":9002,"error":null,"summary":{"status":404}}]}`, nil},
		{"unknown row", `{"failed":[{"referId":"Z","rawTrackingNumber":"N9"}]}`, nil},
		{"the number of one row under another's referId", `{"failed":[{"referId":"B","rawTrackingNumber":"N2"}]}`, nil},
		{"as it is before as it could be read", `{"failed":[{"referId":"C","rawTrackingNumber":"X4","reason":"r"}]}`, rows{4: "r"}},
		{"as it is, the other", `{"failed":[{"referId":"C","rawTrackingNumber":"x-4","reason":"r"}]}`, rows{3: "r"}},
		{"as it is, the number alone", `{"failed":[{"rawTrackingNumber":"x-4","reason":"r"}]}`, rows{3: "r"}},
		{"could be read as two", `{"failed":[{"referId":"C","rawTrackingNumber":"x4"}]}`, nil},
		{"the number of two rows", `{"failed":[{"rawTrackingNumber":"S5"}]}`, nil},
		{"the number of two rows, with a referId", `{"failed":[{"rawTrackingNumber":"s5","referId":"E","reason":"r"}]}`, rows{6: "r"}},
		{"a number that was changed", `{"failed":[{"referId":"B","rawTrackingNumber":"0N3","reason":"r"}]}`, nil},
		{"two parcels, one of which is named further down", `{"data":[{"referId":"A","success":false,"parcels":[{"rawTrackingNumber":"N2","error":"r"}]}]}`, rows{1: "r"}},
		{"said twice", `{"failed":[{"referId":"B","reason":"x"},{"referId":"B","reason":"y"}]}`, rows{2: "x"}},
	}
	doubtful := map[string][]int{
		"referId of two parcels decides nothing":          {0, 1},
		"the number of one row under another's referId":   {1, 2},
		"could be read as two":                            {3, 4},
		"the number of two rows":                          {5, 6},
		"a number that was changed":                       {2},
		"two parcels, one of which is named further down": {0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want, ambiguous []tracking.RefusedRow
			for i, it := range items {
				if why, ok := tt.want[i]; ok {
					want = append(want, tracking.RefusedRow{Key: it.Key(), Reason: why})
				}
			}
			got, blanket := tracking.ReadBody([]byte(tt.raw)).Refusals(items)
			got = slices.DeleteFunc(got, func(v tracking.RefusedRow) bool {
				if v.Ambiguous {
					ambiguous = append(ambiguous, tracking.RefusedRow{Key: v.Key})
				}
				return v.Ambiguous
			})
			var maybe []tracking.RefusedRow
			for _, i := range doubtful[tt.name] {
				maybe = append(maybe, tracking.RefusedRow{Key: items[i].Key()})
			}
			if diff := cmp.Diff(maybe, ambiguous); diff != "" {
				t.Errorf("doubtful (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || blanket {
				t.Errorf("blanket %v, (-want +got):\n%s", blanket, diff)
			}
		})
	}
}

func TestRefusalOfAllRowsTogetherIsNoVerdictOnEach(t *testing.T) {
	items := []tracking.Item{{ReferID: "A", Number: "1"}, {ReferID: "B", Number: "2"}}
	tests := []struct {
		name, raw string
		items     []tracking.Item
		refused   int
		blanket   bool
	}{
		{"the request repeated", `{"error":{"message":"bad request","data":[{"referId":"A","rawTrackingNumber":"1"},{"referId":"B","rawTrackingNumber":"2"}]}}`, items, 0, true},
		{"one with a word", `{"errors":[{"referId":"A","rawTrackingNumber":"1"},{"referId":"B","message":"no"}]}`, items, 1, true},
		{"each with a word", `{"errors":[{"referId":"A","message":"no"},{"referId":"B","message":"no"}]}`, items, 2, false},
		{"each with a sign", `{"data":[{"referId":"A","success":false},{"referId":"B","ok":false}]}`, items, 2, false},
		{"not all", `{"failed":[{"referId":"A"}]}`, items, 1, false},
		{"parcels of one referId", `{"errors":[{"referId":"A"},{"referId":"A"}]}`, []tracking.Item{{ReferID: "A", Number: "1"}, {ReferID: "A", Number: "2"}}, 0, true},
		{"a lone row", `{"failed":[{"referId":"A"}]}`, items[:1], 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, blanket := tracking.ReadBody([]byte(tt.raw)).Refusals(tt.items)
			if len(rows) != tt.refused || blanket != tt.blanket {
				t.Errorf("%d rows, blanket %v; want %d, %v", len(rows), blanket, tt.refused, tt.blanket)
			}
		})
	}
}
