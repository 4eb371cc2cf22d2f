package compare

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func at(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }

// inStore is a row of order A in the store.
func inStore(number string, state ledger.State) ledger.TrackingStatus {
	return ledger.TrackingStatus{Item: tracking.Item{ReferID: "A", Number: number}, State: state, Run: 3}
}

func dismissed(number string) ledger.TrackingStatus {
	st := inStore(number, ledger.Rejected)
	st.Dismissed = time.Now()
	return st
}

// seen is an accepted row with a status that an answer had, or an event.
func seen(number, status string, day int, from ledger.Source) ledger.TrackingStatus {
	st := inStore(number, ledger.Accepted)
	st.Sighting = &ledger.Sighting{Phase: ledger.Processed, Status: status, Source: from, Seen: at(20)}
	if day > 0 {
		st.Sighting.Times.Checkpoint = at(day)
	}
	return st
}

// said is a tracking of an answer, with a status or in processing.
func said(number, status string, day int) query.Tracking {
	t := query.Tracking{Tracking: tracking.Tracking{ReferID: "A", Number: number, Status: status}, Phase: ledger.Processing, Source: ledger.FromQuery, Learnt: at(20)}
	if status != "" {
		t.Phase = ledger.Processed
	}
	if day > 0 {
		t.LatestTime = at(day).Format(time.RFC3339)
	}
	return t
}

func undecided(number string) query.Tracking {
	return query.Tracking{Tracking: tracking.Tracking{ReferID: "A", Number: number}, Phase: query.Undecided}
}

func answer(err error, ts ...query.Tracking) *query.Result {
	return &query.Result{Err: err, Trackings: ts}
}

func event(number, status string, day int) map[string]inbox.Event {
	e := inbox.Event{TrackingNumber: number, Status: status, ReceivedAt: at(20)}
	if day > 0 {
		e.Data = fmt.Appendf(nil, `{"trackingNumber":%q,"status":%s,"summary":{"latestCheckpointTime":%q}}`, number, status, at(day).Format(time.RFC3339))
	}
	return map[string]inbox.Event{number: e}
}

func TestDifferences(t *testing.T) {
	trouble := errors.New("no sense in it")
	for _, tt := range []struct {
		name    string
		numbers string // of the file
		carrier string // likewise
		o       order
		want    []string // "NUMBER kind field|file|store|service|events"
	}{
		{"agrees", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Accepted)}, answer: answer(nil, said("N1", "2", 5))}, nil},
		{"agrees, not asked", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromQuery)}}, nil},
		{"missing here, not asked", "N1", "", order{}, []string{"N1 missing_here |present|||"}},
		{"missing here and there", "N1", "", order{answer: answer(tracking.ErrAbsent, query.Tracking{Phase: ledger.Absent})}, []string{"N1 missing_here |present||absent|"}},
		{"missing here alone", "N1", "", order{answer: answer(nil, said("N1", "", 0))}, []string{"N1 missing_here |present||processing|"}},
		{"seen in events only", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", "")}, events: event("N1", "7", 0)}, []string{"N1 missing_here |present|||7"}},
		{"states", "N1 N2 N3 N4", "", order{known: []ledger.TrackingStatus{
			inStore("N1", ledger.Pending), inStore("N2", ledger.Sending), inStore("N3", ledger.Rejected), inStore("N4", ledger.Unknown),
		}}, []string{"N1 pending |present|pending||", "N2 pending |present|sending||", "N3 rejected |present|rejected||", "N4 unknown |present|unknown||"}},
		{"pending beside an accepted parcel", "N1 N2", "", order{
			known:  []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromQuery), inStore("N2", ledger.Pending)},
			answer: answer(nil, said("N1", "2", 5), query.Tracking{Tracking: tracking.Tracking{ReferID: "A", Number: "N2"}, Phase: "notSent"}),
		}, []string{"N2 pending |present|pending||"}},
		{"dismissed", "N1", "", order{known: []ledger.TrackingStatus{dismissed("N1"), inStore("N2", ledger.Accepted)}}, nil},
		{"missing there", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromEvent)}, answer: answer(tracking.ErrAbsent), events: event("N1", "2", 5)}, []string{"N1 missing_there |present|accepted|absent|2"}},
		{"missing there by the last answer", "N1", "", order{known: []ledger.TrackingStatus{
			{Item: tracking.Item{ReferID: "A", Number: "N1"}, State: ledger.Accepted, Sighting: &ledger.Sighting{Phase: ledger.Absent}},
		}}, []string{"N1 missing_there |present|accepted||"}},
		{"another number here", "N1", "", order{known: []ledger.TrackingStatus{inStore("N2", ledger.Accepted)}, answer: answer(nil, said("N2", "2", 5))}, []string{"N1 differs trackingNumber|N1|N2|N2|"}},
		{"a rejected number that was corrected", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Rejected), inStore("N2", ledger.Accepted)}}, []string{"N1 differs trackingNumber|N1|N2||"}},
		{"a correction of a rejected number", "N2", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Rejected), seen("N2", "2", 5, ledger.FromQuery)}}, nil},
		{"two other numbers here, one more", "N1 N2", "", order{known: []ledger.TrackingStatus{inStore("N3", ledger.Accepted), inStore("N4", ledger.Pending), inStore("N5", ledger.Accepted)}}, []string{
			"N1 differs trackingNumber|N1|N3||", "N5 not_in_file ||accepted||", "N2 differs trackingNumber|N2|N4||",
		}},
		{"another number there", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Accepted)}, answer: answer(nil, said("N2", "2", 5), undecided("N1"))}, []string{"N1 differs trackingNumber|N1|N1|N2|"}},
		{"one more there", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Accepted)}, answer: answer(nil, said("n-1", "2", 5), said("N2", "1", 5))}, []string{"N2 not_in_file |||1|"}},
		{"carrier of the store", "N1", "dhl", order{known: []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromQuery)}}, []string{"N1 differs carrierCode|dhl|||"}},
		{"no carrier in the file", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromQuery)}, answer: answer(nil, query.Tracking{
			Tracking: tracking.Tracking{Number: "N1", Status: "2", CarrierCode: "ups", LatestTime: "2026-01-05T00:00:00Z"}, Phase: ledger.Processed, Source: ledger.FromQuery,
		})}, nil},
		{"status, neither newer", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "7", 5, ledger.FromEvent)}, answer: answer(nil, said("N1", "2", 5)), events: event("N1", "7", 5)}, []string{"N1 differs status||7|2|7"}},
		{"status, no times", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "7", 0, ledger.FromEvent)}, answer: answer(nil, said("N1", "2", 5)), events: event("N1", "7", 0)}, []string{"N1 differs status||7|2|7"}},
		{"status, the event is older", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "7", 4, ledger.FromEvent)}, answer: answer(nil, said("N1", "2", 5)), events: event("N1", "7", 4)}, nil},
		{"status, the answer is older", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "7", 5, ledger.FromEvent)}, answer: answer(nil, said("N1", "2", 4)), events: event("N1", "7", 5)}, nil},
		{"status, the same in words", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "1", 5, ledger.FromEvent)}, answer: answer(nil, said("N1", `"1"`, 5)), events: event("N1", "1", 5)}, nil},
		{"status, not asked", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromQuery)}, events: event("N1", "7", 5)}, []string{"N1 differs status||2|2|7"}},
		{"never", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Accepted)}, answer: answer(nil, said("N1", "", 0))}, []string{"N1 never_heard |present|accepted|processing|"}},
		{"never, not asked", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Accepted)}}, []string{"N1 never_heard |present|accepted||"}},
		{"an event only", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 5, ledger.FromEvent)}, answer: answer(nil, said("N1", "", 0)), events: event("N1", "2", 5)}, nil},
		{"stale", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 4, ledger.FromQuery)}, answer: answer(nil, said("N1", "2", 4)), staleBefore: at(5)}, []string{"N1 stale |present|accepted|2|"}},
		{"stale by when it was learnt", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 0, ledger.FromQuery)}, answer: answer(nil, said("N1", "2", 0)), staleBefore: at(21)}, []string{"N1 stale |present|accepted|2|"}},
		{"fresh by an event", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "2", 4, ledger.FromQuery)}, events: event("N1", "2", 6), staleBefore: at(5)}, nil},
		{"delivered long ago", "N1", "", order{known: []ledger.TrackingStatus{seen("N1", "1", 4, ledger.FromQuery)}, staleBefore: at(5)}, nil},
		{"no usable answer", "N1", "", order{known: []ledger.TrackingStatus{inStore("N1", ledger.Accepted)}, answer: answer(trouble, undecided("N1"))}, []string{"N1 not_compared |present|accepted||"}},
		{"no usable answer, missing here", "N1", "", order{answer: answer(trouble)}, []string{"N1 missing_here |present|||", "N1 not_compared |present|||"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rows []ledger.Row
			for number := range strings.FieldsSeq(tt.numbers) {
				it := tracking.Item{ReferID: "A", Number: number, CarrierCode: tt.carrier}
				rows = append(rows, ledger.Row{Item: it, File: "f.csv", Line: 2 + len(rows)})
				tt.o.inFile = append(tt.o.inFile, ledger.TrackingStatus{Item: it, State: ledger.Pending})
			}
			var got []string
			for _, row := range rows {
				for _, d := range tt.o.differences(row) {
					got = append(got, fmt.Sprintf("%s %s %s|%s|%s|%s|%s", d.row.Item.Number, d.kind, d.field, d.file, d.store, d.service, d.events))
					if d.row.Line != row.Line {
						t.Errorf("%v: line %d", d, d.row.Line)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
