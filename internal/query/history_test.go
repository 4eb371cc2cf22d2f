package query_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

var began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// minute is so many minutes after began.
func minute(n int) time.Time { return began.Add(time.Duration(n) * time.Minute) }

// object is a tracking as the service sends it, with checkpoints "10 Event".
func object(number, label string, checkpoints ...string) string {
	var events []string
	for _, c := range checkpoints {
		hour, event, _ := strings.Cut(c, " ")
		events = append(events, fmt.Sprintf(`{"eventType":%q,"GMTTimestamp":"2026-03-01T%s:00:00Z"}`, event, hour))
	}
	return fmt.Sprintf(`{"trackingNumber":%q,"statusLabel":%q,"trackingEvents":[%s]}`, number, label, strings.Join(events, ","))
}

// kept versions of answers, and events.
type keptVersions struct {
	answers []ledger.AnswerVersion
	events  []inbox.Event
}

// answer adds an answer that came in these minutes.
func (k *keptVersions) answer(first, last int, raw string) {
	k.answers = append(k.answers, ledger.AnswerVersion{First: minute(first), Last: minute(last), Raw: []byte(raw)})
}

// event adds an event that came in that minute.
func (k *keptVersions) event(at int, data string) {
	t := tracking.ReadBody([]byte(data)).Answer().Trackings[0]
	k.events = append(k.events, inbox.Event{
		Seq: int64(len(k.events) + 1), ReceivedAt: minute(at), TrackingNumber: t.Number, StatusLabel: t.StatusLabel, Data: []byte(data), Raw: []byte(data),
	})
}

func (k *keptVersions) AnswerVersions(_ context.Context, _, referID string) iter.Seq2[ledger.AnswerVersion, error] {
	return func(yield func(ledger.AnswerVersion, error) bool) {
		for _, a := range k.answers {
			if referID == "R" && !yield(a, nil) {
				return
			}
		}
	}
}

func (k *keptVersions) Events(_ context.Context, q inbox.Query) iter.Seq2[inbox.Event, error] {
	return func(yield func(inbox.Event, error) bool) {
		for _, e := range slices.Backward(k.events) { // newest first
			if tracking.SameNumber(e.TrackingNumber, q.TrackingNumber) && !yield(e, nil) {
				return
			}
		}
	}
}

// history adds what is kept to a result, and returns the versions of its first
// tracking in a few words.
func (k *keptVersions) history(t *testing.T, res *query.Result, numbers ...string) []string {
	t.Helper()
	rows := &kept{}
	for _, n := range numbers {
		rows.rows = append(rows.rows, rowOf(n))
	}
	h := &query.History{Account: "acc", Trackings: rows, Answers: k, Inbox: k}
	if err := h.Add(t.Context(), res); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range res.Trackings[0].Versions {
		s := fmt.Sprintf("%v", v.Learnt.Sub(began).Minutes())
		if v.Event {
			s += fmt.Sprintf(" event %d", v.Seq)
		} else {
			s += fmt.Sprintf("-%v", v.Last.Sub(began).Minutes())
		}
		s += " " + string(v.Phase) + " " + v.StatusLabel
		for _, a := range v.Change.Anomalies {
			s += " " + string(a.Kind)
		}
		all = append(all, strings.TrimSpace(s)+fmt.Sprintf(" +%d -%d", len(v.Change.Added), len(v.Change.Removed)))
	}
	return all
}

func resultOf(number string) *query.Result {
	return &query.Result{Query: order, Trackings: []query.Tracking{{Tracking: tracking.Tracking{ReferID: "R", Number: number}}}}
}

func TestHistoryMergesAnswersAndEventsAsTheyWereLearnt(t *testing.T) {
	k := &keptVersions{}
	k.answer(1, 4, object("N1", "MOVING", "01 A", "02 B"))
	k.event(3, object("n-1", "MOVING", "03 C"))
	k.event(5, object("N1", "DELIVERED", "04 D"))
	k.answer(6, 7, object("N1", "LOST", "01 A", "03 C", "05 E"))
	k.answers = append(k.answers, ledger.AnswerVersion{First: minute(8), Last: minute(8), Digest: []byte("absent"), Raw: []byte("{}")})
	res := resultOf("N1")
	want := []string{
		"1-4 processed MOVING +2 -0", "3 event 1 processed MOVING +1 -0", "5 event 2 processed DELIVERED +1 -0",
		"6-7 processed LOST status_back +1 -2", "8-8 absent +0 -0",
	}
	if diff := cmp.Diff(want, k.history(t, res, "N1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var timeline []string
	for _, e := range res.Trackings[0].Timeline() {
		timeline = append(timeline, fmt.Sprint(e.Event, " ", e.Removed()))
	}
	if diff := cmp.Diff([]string{"E false", "D true", "C false", "B true", "A false"}, timeline); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	if a := res.Trackings[0].Anomalies; len(a) != 1 || a[0].Kind != tracking.StatusBack || !a[0].Since.Equal(minute(6)) {
		t.Errorf("%+v; want that it was delivered until minute 6", a)
	}
}

// An answer about an order of several parcels changes with each of them.
func TestHistoryIsOfOneParcel(t *testing.T) {
	k := &keptVersions{}
	k.answer(1, 1, `{"message":"Processing"}`)
	k.answer(2, 3, "["+object("N1", "MOVING")+","+object("N2", "MOVING")+"]")
	k.answer(4, 4, "["+object("N1", "MOVING")+","+object("N2", "LOST")+"]")
	k.answer(5, 5, object("N2", "LOST"))
	k.answer(6, 6, object("", "NOBODY KNOWS WHICH"))
	if diff := cmp.Diff([]string{"1-1 processing +0 -0", "2-4 processed MOVING +0 -0"}, k.history(t, resultOf("N1"), "N1", "N2")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	byNumber := resultOf("N2")
	byNumber.Trackings[0].ReferID = ""
	if diff := cmp.Diff([]string{"1-1 processing +0 -0", "2-3 processed MOVING +0 -0", "4-5 processed LOST +0 -0"}, k.history(t, byNumber, "N1", "N2")); diff != "" {
		t.Errorf("by number (-want +got):\n%s", diff)
	}
}

func TestHistoryEndsWithTheAnswerOfTheResult(t *testing.T) {
	k := &keptVersions{}
	k.answer(1, 2, object("N1", "MOVING"))
	k.event(3, object("N1", "DELIVERED"))
	raw := object("N1", "MOVING")
	res := resultOf("N1")
	res.Asked, res.Answer.Raw = minute(4), []byte(raw)
	res.Trackings[0].Older, res.Trackings[0].Source = &tracking.Tracking{Number: "N1", StatusLabel: "MOVING"}, ledger.FromEvent
	if diff := cmp.Diff([]string{"1-4 processed MOVING +0 -0", "3 event 1 processed DELIVERED +0 -0"}, k.history(t, res, "N1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unknown := resultOf("N9")
	unknown.Asked, unknown.Answer.Raw = minute(4), []byte(raw)
	unknown.Trackings[0].Source, unknown.Trackings[0].Phase, unknown.Trackings[0].StatusLabel = ledger.FromQuery, ledger.Processed, "MOVING"
	if diff := cmp.Diff([]string{"4-4 processed MOVING +0 -0"}, k.history(t, unknown)); diff != "" {
		t.Errorf("not in the store (-want +got):\n%s", diff)
	}
	unreachable := resultOf("N1")
	unreachable.Asked = minute(9)
	unreachable.Trackings[0].Source = ledger.FromQuery
	if diff := cmp.Diff([]string{"1-2 processed MOVING +0 -0", "3 event 1 processed DELIVERED +0 -0"}, k.history(t, unreachable, "N1")); diff != "" {
		t.Errorf("without an answer (-want +got):\n%s", diff)
	}
}

// Without an answer there are the rows of the store, and what was said of them.
func TestHistoryOfWhatWasNotAsked(t *testing.T) {
	k := &keptVersions{}
	k.answer(1, 2, object("N1", "MOVING"))
	k.event(3, object("N1", "DELIVERED"))
	row := rowOf("N1")
	row.Sighting = &ledger.Sighting{Phase: ledger.Processed, StatusLabel: "DELIVERED"}
	h := &query.History{Account: "acc", Trackings: &kept{rows: []ledger.TrackingStatus{row}}, Answers: k, Inbox: k, Mask: func(e inbox.Event) inbox.Event {
		e.Raw = []byte("***")
		return e
	}}
	res := query.Result{Query: order}
	for range 2 { // the second time nothing is added
		if err := errors.Join(h.AddRows(t.Context(), &res), h.Add(t.Context(), &res)); err != nil {
			t.Fatal(err)
		}
	}
	if len(res.Trackings) != 1 || res.Trackings[0].StatusLabel != "DELIVERED" || len(res.Trackings[0].Versions) != 2 {
		t.Fatalf("%+v", res.Trackings)
	}
	if got := string(res.Trackings[0].Versions[1].Raw); got != "***" {
		t.Errorf("event %s; want it masked", got)
	}
}
