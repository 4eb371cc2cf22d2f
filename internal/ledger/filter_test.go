package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// arrived is a tracking that was delivered at noon, and updated then.
func arrived() ledger.TrackingStatus {
	return ledger.TrackingStatus{
		Item: tracking.Item{ReferID: "ORD-1", Number: "N1", CarrierCode: "ups"}, State: ledger.Accepted, Sent: noon.Add(-time.Hour),
		Sighting: &ledger.Sighting{
			Phase:  ledger.Processed,
			Report: tracking.Report{Status: "1", StatusLabel: "DELIVERED"}, Times: tracking.Times{Checkpoint: noon},
		},
	}
}

func rejected(change func(*ledger.TrackingStatus)) ledger.TrackingStatus {
	st := ledger.TrackingStatus{Item: tracking.Item{ReferID: "ORD-2", Number: "N2"}, State: ledger.Rejected}
	if change != nil {
		change(&st)
	}
	return st
}

func TestFilters(t *testing.T) {
	moving, unseen, absent := arrived(), arrived(), arrived()
	moving.Sighting.Status, moving.Sighting.StatusLabel = "7", "MOVING"
	unseen.Sighting = nil
	absent.Sighting = &ledger.Sighting{Phase: ledger.Absent}
	still, bare := moving, moving
	still.Sighting = &ledger.Sighting{Phase: ledger.Processing} // no checkpoint: since it was sent
	bare.Sighting, bare.Sent = still.Sighting, time.Time{}
	open := rejected(nil)
	superseded := rejected(func(st *ledger.TrackingStatus) { st.Superseded = true })
	dismissed := rejected(func(st *ledger.TrackingStatus) { st.Dismissed = noon })
	unnamed := arrived()
	unnamed.Item.ReferID = ""

	hour := func(since, until int) ledger.Range {
		return ledger.Range{Since: noon.Add(time.Duration(since) * time.Hour), Until: noon.Add(time.Duration(until) * time.Hour)}
	}
	states := func(all ...ledger.State) ledger.Filter { return ledger.Filter{States: all} }
	named := func(word string, s ledger.Sighting) bool { return word == "on the way" && s.Status == "7" }
	for name, tt := range map[string]struct {
		f        ledger.Filter
		yes, not []ledger.TrackingStatus
	}{
		"nothing asked":    {ledger.Filter{}, []ledger.TrackingStatus{arrived(), unseen, open, dismissed}, nil},
		"status":           {ledger.Filter{Statuses: []string{"x", "Delivered"}}, []ledger.TrackingStatus{arrived()}, []ledger.TrackingStatus{moving, unseen, open}},
		"status of ours":   {ledger.Filter{Statuses: []string{"on the way"}, NamedToo: named}, []ledger.TrackingStatus{moving}, []ledger.TrackingStatus{arrived(), unseen}},
		"status or state":  {ledger.Filter{Statuses: []string{"7"}, States: []ledger.State{ledger.Rejected}}, []ledger.TrackingStatus{moving, open}, []ledger.TrackingStatus{arrived(), unseen}},
		"no status at all": {ledger.Filter{Statuses: []string{}}, nil, []ledger.TrackingStatus{arrived(), unseen}},
		"accepted":         {states(ledger.Accepted), []ledger.TrackingStatus{arrived(), unseen}, []ledger.TrackingStatus{open}},
		"rejected":         {states(ledger.Rejected), []ledger.TrackingStatus{open}, []ledger.TrackingStatus{arrived(), superseded, dismissed}},
		"superseded":       {states(ledger.Superseded), []ledger.TrackingStatus{superseded}, []ledger.TrackingStatus{open, dismissed, arrived()}},
		"dismissed":        {states(ledger.Dismissed), []ledger.TrackingStatus{dismissed}, []ledger.TrackingStatus{open, superseded, arrived()}},
		"not checked":      {states(ledger.NotChecked), []ledger.TrackingStatus{unseen}, []ledger.TrackingStatus{arrived(), open}},
		"updated":          {ledger.Filter{Updated: hour(0, 1)}, []ledger.TrackingStatus{arrived(), moving}, []ledger.TrackingStatus{unseen, still}},
		"updated before":   {ledger.Filter{Updated: hour(-1, 0)}, nil, []ledger.TrackingStatus{arrived()}},
		"updated later":    {ledger.Filter{Updated: hour(1, 2)}, nil, []ledger.TrackingStatus{arrived()}},
		"updated since":    {ledger.Filter{Updated: ledger.Range{Since: noon}}, []ledger.TrackingStatus{arrived()}, []ledger.TrackingStatus{unseen}},
		"updated until":    {ledger.Filter{Updated: ledger.Range{Until: noon.Add(1)}}, []ledger.TrackingStatus{arrived()}, []ledger.TrackingStatus{unseen, still}},
		"delivered":        {ledger.Filter{Delivered: hour(0, 1)}, []ledger.TrackingStatus{arrived()}, []ledger.TrackingStatus{moving, unseen}},
		"delivered later":  {ledger.Filter{Delivered: hour(1, 2)}, nil, []ledger.TrackingStatus{arrived()}},
		"stuck":            {ledger.Filter{StuckSince: noon.Add(1)}, []ledger.TrackingStatus{moving, still}, []ledger.TrackingStatus{arrived(), unseen, absent, bare}},
		"rejected, stuck":  {ledger.Filter{States: []ledger.State{ledger.Rejected}, OrStuckSince: noon.Add(1)}, []ledger.TrackingStatus{moving, still, open}, []ledger.TrackingStatus{arrived(), unseen, absent, dismissed}},
		"stuck since noon": {ledger.Filter{StuckSince: noon}, []ledger.TrackingStatus{still}, []ledger.TrackingStatus{moving}},
		"carrier":          {ledger.Filter{Carrier: "UPS"}, []ledger.TrackingStatus{arrived(), unseen}, []ledger.TrackingStatus{open}},
		"referId":          {ledger.Filter{ReferIDs: []string{"x", "ORD-1"}}, []ledger.TrackingStatus{arrived()}, []ledger.TrackingStatus{open}},
		"referId, begun":   {ledger.Filter{ReferIDs: []string{"ORD-*"}}, []ledger.TrackingStatus{arrived(), open}, []ledger.TrackingStatus{unnamed}},
		"referId, its own": {ledger.Filter{ReferIDs: []string{"ORD"}}, nil, []ledger.TrackingStatus{arrived(), open}},
		"any referId":      {ledger.Filter{ReferIDs: []string{"*"}}, []ledger.TrackingStatus{arrived()}, []ledger.TrackingStatus{unnamed}},
	} {
		for _, st := range tt.yes {
			if !tt.f.Matches(st) {
				t.Errorf("%s leaves out %+v, %+v", name, st, st.Sighting)
			}
		}
		for _, st := range tt.not {
			if tt.f.Matches(st) {
				t.Errorf("%s takes %+v, %+v", name, st, st.Sighting)
			}
		}
	}
}

func TestStatusesOfRows(t *testing.T) {
	open, superseded := rejected(nil), rejected(func(st *ledger.TrackingStatus) { st.Superseded = true })
	dismissed := rejected(func(st *ledger.TrackingStatus) { st.Dismissed = noon })
	unseen, asked := arrived(), arrived()
	unseen.Sighting, asked.Sighting, asked.Asked = nil, nil, noon
	for name, tt := range map[string]struct {
		st                    ledger.TrackingStatus
		state                 ledger.State
		unchecked, unreported bool
	}{
		"open":       {open, ledger.Rejected, false, false},
		"superseded": {superseded, ledger.Superseded, false, false}, "dismissed": {dismissed, ledger.Dismissed, false, false},
		"known": {arrived(), ledger.Accepted, false, false}, "never asked": {unseen, ledger.Accepted, true, true},
		"asked in vain": {asked, ledger.Accepted, false, true},
	} {
		got := tt.st
		state, unchecked, unreported := got.Refine(got.State), got.Unchecked(), got.Unreported()
		if state != tt.state || unchecked != tt.unchecked || unreported != tt.unreported {
			t.Errorf("%s: state %s, unchecked %v, unreported %v", name, state, unchecked, unreported)
		}
	}
}

func TestGroups(t *testing.T) {
	seen, dismissed := arrived(), rejected(func(st *ledger.TrackingStatus) { st.Dismissed = noon })
	seen.Run, seen.Sighting.Transit, seen.Sighting.CarrierCode = 3, 36*time.Hour, "dhl"
	for _, tt := range []struct {
		st   ledger.TrackingStatus
		want ledger.Group
	}{
		{seen, ledger.Group{Carrier: "dhl", Run: 3, TransitDays: 2, StatusCount: ledger.StatusCount{Phase: ledger.Processed, Status: "1", StatusLabel: "DELIVERED", Trackings: 1}}},
		{dismissed, ledger.Group{
			TransitDays: ledger.UnknownTransit, StatusCount: ledger.StatusCount{State: ledger.Dismissed, Trackings: 1},
		}},
	} {
		if got := ledger.GroupOf(tt.st); got != tt.want {
			t.Errorf("%+v; want %+v", got, tt.want)
		}
	}
	for transit, want := range map[time.Duration]int64{-time.Hour: ledger.UnknownTransit, 0: ledger.UnknownTransit, 11 * time.Hour: 0, 12 * time.Hour: 1, 35 * time.Hour: 1} {
		if got := ledger.TransitDays(transit); got != want {
			t.Errorf("%s: %d days; want %d", transit, got, want)
		}
	}
}

// What can't follow is refused before anything is recorded.
func TestOutcomesAreChecked(t *testing.T) {
	accepted := func(rows ...int64) (all []ledger.RowOutcome) {
		for _, r := range rows {
			all = append(all, ledger.RowOutcome{Row: r, State: ledger.Accepted})
		}
		return all
	}
	for want, s := range map[string]ledger.BatchOutcome{
		"":                                   {State: ledger.Unknown, Shape: "200 {}", Rows: accepted(1, 2)},
		"not sent again in halves":           {State: ledger.Rejected, Halve: true},
		"wait for no proof":                  {State: ledger.Accepted, Shape: "200 {}"},
		`sending cannot become "sending"`:    {State: ledger.Sending},
		`row 1: sending cannot become "odd"`: {State: ledger.Pending, Halve: true, Rows: []ledger.RowOutcome{{Row: 1, State: "odd"}}},
		"row 2 appears twice":                {State: ledger.Pending, Rows: accepted(2, 1, 2)},
	} {
		if err := s.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", s, err, want)
		}
	}
	for _, tt := range []struct {
		s    ledger.BatchOutcome
		want bool
	}{
		{ledger.BatchOutcome{State: ledger.Pending, Began: noon}, false},
		{ledger.BatchOutcome{State: ledger.Pending, Began: noon, HTTPStatus: 429}, true},
		{ledger.BatchOutcome{State: ledger.Unknown, Began: noon}, true},
		{ledger.BatchOutcome{State: ledger.Unknown}, false},
	} {
		if got := tt.s.WasSent(); got != tt.want {
			t.Errorf("%+v was sent: %v", tt.s, got)
		}
	}
}

func TestSums(t *testing.T) {
	s := ledger.RunSummary{Superseded: 1, Dismissed: 1}
	for n, state := range []ledger.State{ledger.Pending, ledger.Sending, ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Rejected} {
		s.Counts.Add(state, int64(n+1))
	}
	if want := (ledger.Counts{Pending: 1, Sending: 2, Accepted: 3, Rejected: 10, Unknown: 5}); s.Counts != want || s.Rejected() != 8 {
		t.Errorf("%+v, %d open; want %+v and 8", s.Counts, s.Rejected(), want)
	}
	var twice ledger.Erasure
	once := ledger.Erasure{
		Shared: 1, Rows: 2, UnknownRows: 3, Pending: 4, Trackings: 5, Responses: 6, Events: 7, Deliveries: 8, Refused: 9,
		Texts: 10,
	}
	twice.Add(once)
	twice.Add(once)
	if got, want := fmt.Sprint(twice), "{[] 2 4 6 8 10 12 14 16 18 20}"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestItemsOfABatch(t *testing.T) {
	b := ledger.Batch{Rows: []ledger.BatchRow{{ID: 7, Item: tracking.Item{ReferID: "A"}}, {ID: 9, Item: tracking.Item{ReferID: "B"}}}}
	if items := b.Items(); len(items) != 2 || items[0] != b.Rows[0].Item || items[1] != b.Rows[1].Item {
		t.Errorf("%v of %v", items, b)
	}
}
