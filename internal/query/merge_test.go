package query

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

var at = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

func row(referID, number, carrier string) ledger.TrackingStatus {
	return ledger.TrackingStatus{Item: tracking.Item{ReferID: referID, Number: number, CarrierCode: carrier}, State: ledger.Accepted}
}

// told is a tracking as an answer tells of it.
func told(number, label string) tracking.Tracking {
	return tracking.Tracking{Number: number, Report: tracking.Report{StatusLabel: label}}
}

// short is a tracking in a few words.
func short(t Tracking) string {
	s := t.ReferID + "/" + t.Number + " " + string(t.Phase)
	for _, word := range []string{t.StatusLabel, string(t.Source), t.SentCarrier} {
		if word != "" {
			s += " " + word
		}
	}
	if t.Older != nil {
		s += " older:" + t.Older.StatusLabel
	}
	return s
}

func TestMatchTakesNoOtherNumberForTheOneAskedFor(t *testing.T) {
	order, number := tracking.Query{ReferID: "R"}, tracking.Query{Number: "n 1"}
	for name, tt := range map[string]struct {
		q    tracking.Query
		r    queryReply
		rows []ledger.TrackingStatus
		want []string
	}{
		"one, without its number":   {order, queryReply{answer: tracking.Answer{Trackings: []tracking.Tracking{told("", "MOVING")}}}, []ledger.TrackingStatus{row("R", "N1", "ups")}, []string{"R/N1 processed MOVING query ups"}},
		"two, one without":          {order, queryReply{answer: tracking.Answer{Trackings: []tracking.Tracking{told("", "MOVING")}}}, []ledger.TrackingStatus{row("R", "N1", ""), row("R", "N2", "")}, []string{"R/ processed MOVING query", "R/N1 undecided", "R/N2 undecided"}},
		"known first":               {order, queryReply{answer: tracking.Answer{Trackings: []tracking.Tracking{told("N2", "MOVING")}}}, []ledger.TrackingStatus{row("R", "N1", ""), row("R", "N2", "")}, []string{"R/N2 processed MOVING query", "R/N1 undecided"}},
		"one not in the ledger":     {order, queryReply{answer: tracking.Answer{Trackings: []tracking.Tracking{told("N9", "MOVING")}}}, nil, []string{"R/N9 processed MOVING query"}},
		"another number asked for":  {number, queryReply{answer: tracking.Answer{Trackings: []tracking.Tracking{told("N9", "MOVING")}}}, nil, []string{"/n 1 undecided"}},
		"the number, written apart": {number, queryReply{answer: tracking.Answer{Trackings: []tracking.Tracking{told("N-1", "MOVING")}}}, nil, []string{"/n 1 processed MOVING query"}},
		"absent":                    {order, queryReply{err: tracking.ErrAbsent}, []ledger.TrackingStatus{row("R", "N1", "")}, []string{"R/N1 absent query"}},
		"processing":                {order, queryReply{err: tracking.ErrProcessing, answer: tracking.Answer{Processing: true}}, []ledger.TrackingStatus{row("R", "N1", ""), row("R", "N2", "")}, []string{"R/N1 processing query", "R/N2 processing query"}},
		"nothing":                   {order, queryReply{err: tracking.ErrUndecided}, nil, []string{"R/ undecided"}},
		"a parcel asked for by number": {order, queryReply{
			answer:  tracking.Answer{Trackings: []tracking.Tracking{told("N2", "MOVING")}},
			parcels: map[string]tracking.Tracking{"N1": told("N1", "DONE"), "N2": told("N2", "DONE")},
		}, []ledger.TrackingStatus{row("R", "N1", ""), row("R", "N2", "")}, []string{"R/N2 processed MOVING query", "R/N1 processed DONE query"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.r.query, tt.r.asked = tt.q, at
			var got []string
			for _, f := range match(tt.r, tt.rows) {
				got = append(got, short(f))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergePutsEventsInPlaceOfWhatTheyAreNewerThan(t *testing.T) {
	// known is a row that was learnt so many minutes after at.
	known := func(number, label string, source ledger.Source, minutes int) knownRow {
		k := knownRow{TrackingStatus: row("R", number, "ups")}
		k.Sighting = &ledger.Sighting{
			Phase: ledger.Processed, Source: source,
			Report: tracking.Report{StatusLabel: label}, Seen: at.Add(time.Duration(minutes) * time.Minute),
		}
		return k
	}
	withEvent := known("N1", "DELIVERED", ledger.FromEvent, -5)
	withEvent.event = &inbox.Event{Event: webhook.Event{
		TrackingNumber: "n1", StatusLabel: "DELIVERED",
		Data: []byte(`{"carrierCode":"dhl","summary":{"statusLabel":"DELIVERED"}}`),
	}}
	asked := Result{Query: tracking.Query{ReferID: "R"}, Asked: at, Trackings: []Tracking{
		{
			Tracking: tracking.Tracking{
				ReferID: "R", Number: "N1",
				Report: tracking.Report{StatusLabel: "MOVING"},
			},
			Phase: ledger.Processed, Source: ledger.FromQuery, Learnt: at,
		},
	}}
	for name, tt := range map[string]struct {
		res  Result
		rows []knownRow
		want []string
	}{
		"no rows":                       {asked, nil, []string{"R/N1 processed MOVING query"}},
		"an answer":                     {asked, []knownRow{known("N1", "LOST", ledger.FromQuery, -5)}, []string{"R/N1 processed MOVING query"}},
		"an event before the answer":    {asked, []knownRow{known("N1", "DELIVERED", ledger.FromEvent, -5)}, []string{"R/N1 processed DELIVERED event ups older:MOVING"}},
		"an event after the answer":     {asked, []knownRow{known("N1", "DELIVERED", ledger.FromEvent, 5)}, []string{"R/N1 processed DELIVERED event ups"}},
		"with its bytes":                {asked, []knownRow{withEvent}, []string{"R/N1 processed DELIVERED event ups older:MOVING"}},
		"a row that the result has not": {asked, []knownRow{known("N2", "LOST", ledger.FromQuery, 0)}, []string{"R/N1 processed MOVING query"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range merge(tt.res, tt.rows) {
				got = append(got, short(f))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := asked.Trackings[0].StatusLabel; got != "MOVING" {
		t.Errorf("merge changed the result that it was given: %s", got)
	}
}

// An event need not hold the whole timeline: what it leaves out stays shown.
func TestMergeKeepsCheckpointsThatAnEventLeavesOut(t *testing.T) {
	checkpoint := func(hour, event string) tracking.Checkpoint {
		return tracking.Checkpoint{Event: event, UTC: "2026-03-01T" + hour + ":00:00Z"}
	}
	answer := Tracking{Tracking: told("N1", "MOVING"), Phase: ledger.Processed, Source: ledger.FromQuery}
	answer.Checkpoints = []tracking.Checkpoint{checkpoint("11", "Departed"), checkpoint("10", "Picked up")}
	event := Tracking{Tracking: told("N1", "DELIVERED"), Phase: ledger.Processed, Source: ledger.FromEvent}
	event.Checkpoints = []tracking.Checkpoint{checkpoint("12", "Delivered"), checkpoint("11", "Departed")}
	var got []string
	for _, c := range answer.supersededBy(event, at).Checkpoints {
		got = append(got, c.Event)
	}
	if diff := cmp.Diff([]string{"Delivered", "Departed", "Picked up"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOutcomeOfAQuery(t *testing.T) {
	trouble := errors.New("trouble")
	seen, undecided := Tracking{Phase: ledger.Processed, Source: ledger.FromEvent}, Tracking{Phase: Undecided}
	for _, tt := range []struct {
		err   error
		first Tracking
		want  error
	}{
		{nil, seen, nil},
		{nil, undecided, tracking.ErrUndecided},
		{tracking.ErrProcessing, Tracking{Phase: ledger.Processing}, nil},
		{tracking.ErrUndecided, seen, nil},
		{tracking.ErrUndecided, undecided, tracking.ErrUndecided},
		{tracking.ErrAbsent, seen, tracking.ErrAbsent},
		{trouble, seen, trouble},
	} {
		if got := outcome(tt.err, tt.first); !errors.Is(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("outcome(%v, %s) = %v; want %v", tt.err, tt.first.Phase, got, tt.want)
		}
	}
}
