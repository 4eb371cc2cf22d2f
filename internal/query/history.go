package query

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// digestAbsent stands for every answer that says that there is no such tracking.
const digestAbsent = "absent"

// maxEvents is how many events are read of one number: the latest ones.
const maxEvents = 1000

// Version is what one answer, or a verified event, said of a tracking.
type Version struct {
	tracking.Version
	Phase ledger.Phase
	Last  time.Time // when the last answer came that said the same; zero for an event
	Seq   int64     // of the event; 0 for an answer
	ID    string    // likewise its number; empty
	Raw   []byte    // the whole answer, or the event, as received; nil if the event was pruned
	// Change is what it changed against the versions before.
	Change tracking.Change
}

// History reads what was said of an account's trackings before.
type History struct {
	Account   string
	Trackings interface {
		Find(ctx context.Context, account, referID, number string) ([]ledger.TrackingStatus, error)
	}
	Answers interface {
		AnswerVersions(ctx context.Context, account, referID string) iter.Seq2[ledger.AnswerVersion, error]
	}
	Inbox interface {
		Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]
	}
	// Mask hides secrets in an event before it is read; nil hides none.
	Mask func(inbox.Event) inbox.Event
}

// digest is that of [ledger.RecordedAnswer].
func digest(res Result) []byte {
	if errors.Is(res.Err, tracking.ErrAbsent) {
		return []byte(digestAbsent)
	}
	return res.Answer.Digest()
}

// Add adds to each tracking of a result its Versions, in the order in which they
// were learnt, the answer of the result included, and what their comparison
// shows: Entries and Anomalies. Events count that have the tracking's number.
func (h *History) Add(ctx context.Context, res *Result) error {
	for i := range res.Trackings {
		t := &res.Trackings[i]
		versions, err := h.answers(ctx, t.ReferID, t.Number)
		if err != nil {
			return err
		}
		versions = appendCurrent(versions, *res, *t)
		events, err := h.events(ctx, t.Number)
		if err != nil {
			return err
		}
		versions = append(versions, events...)
		slices.SortStableFunc(versions, func(a, b Version) int { return a.Learnt.Compare(b.Learnt) })
		var log tracking.VersionLog
		for j := range versions {
			versions[j].Change = log.Add(versions[j].Version)
		}
		t.Versions, t.Entries, t.Anomalies = versions, log.Entries(), log.Anomalies()
	}
	return nil
}

// AddRows gives a result without trackings those that the store has, as it knows
// them.
func (h *History) AddRows(ctx context.Context, res *Result) error {
	if len(res.Trackings) > 0 {
		return nil
	}
	rows, err := h.Trackings.Find(ctx, h.Account, res.Query.ReferID, res.Query.Number)
	for _, row := range rows {
		res.Trackings = append(res.Trackings, knownRow{TrackingStatus: row}.tracking())
	}
	return err
}

// answers returns what answers said of a tracking, the earliest first. Without a
// referId they are those about the rows of the number.
func (h *History) answers(ctx context.Context, referID, number string) ([]Version, error) {
	rows, err := h.Trackings.Find(ctx, h.Account, referID, number)
	if err != nil {
		return nil, err
	}
	var refs []string
	for _, row := range rows {
		if ref := row.Item.ReferID; ref != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	var all []Version
	for _, ref := range refs {
		if referID == "" { // the numbers beside this one decide what an answer without a number is about
			if rows, err = h.Trackings.Find(ctx, h.Account, ref, ""); err != nil {
				return nil, err
			}
		}
		var own []Version
		for kept, err := range h.Answers.AnswerVersions(ctx, h.Account, ref) {
			if err != nil {
				return nil, err
			}
			if v, ok := answerVersion(kept, ref, number, rows); ok {
				own = appendAnswer(own, v)
			}
		}
		all = append(all, own...)
	}
	return all, nil
}

// answerVersion returns what a kept answer says of one of the rows of a referId,
// false if it says nothing.
func answerVersion(kept ledger.AnswerVersion, referID, number string, rows []ledger.TrackingStatus) (Version, bool) {
	r := exchange{query: tracking.Query{ReferID: referID}, answer: tracking.ReadBody(kept.Raw).Answer()}
	if string(kept.Digest) == digestAbsent {
		r.err = tracking.ErrAbsent
	}
	for _, f := range matchNumbers(r, rows) {
		said := f.Phase == ledger.Processed || f.Phase == ledger.Processing || f.Phase == ledger.Absent
		if said && (f.Number == number || tracking.SameNumber(f.Number, number)) {
			return newVersion(f, kept.First, kept.Last, kept.Raw), true
		}
	}
	return Version{}, false
}

func newVersion(f Tracking, first, last time.Time, raw []byte) Version {
	v := Version{Version: tracking.Version{Tracking: f.Tracking, Learnt: first}, Phase: f.Phase, Last: last, Raw: raw}
	v.Processing = f.Phase == ledger.Processing
	return v
}

// appendAnswer appends a version unless the last one says the same: then that
// held on, and has the later answer.
func appendAnswer(all []Version, v Version) []Version {
	if n := len(all); n > 0 && all[n-1].Phase == v.Phase && bytes.Equal(all[n-1].Digest(), v.Digest()) {
		if v.Last.After(all[n-1].Last) {
			all[n-1].Last, all[n-1].Raw = v.Last, v.Raw
		}
		return all
	}
	return append(all, v)
}

// appendCurrent appends what the answer of a result says of a tracking, which is
// kept already unless there is no store or the tracking is not in it.
func appendCurrent(all []Version, res Result, t Tracking) []Version {
	if t.Older != nil { // an event shows in its place
		t.Tracking, t.Phase, t.Source = *t.Older, ledger.Processed, ledger.FromQuery
	}
	if t.Source != ledger.FromQuery || len(res.Answer.Raw) == 0 {
		return all
	}
	asked := res.Asked.Truncate(time.Millisecond)
	return appendAnswer(all, newVersion(t, asked, asked, res.Answer.Raw))
}

// events returns what verified events said of a number, the earliest first.
func (h *History) events(ctx context.Context, number string) ([]Version, error) {
	if number == "" {
		return nil, nil
	}
	var all []Version
	q := inbox.Query{TrackingNumber: number, Verified: inbox.Yes, Genuine: true, Marks: []inbox.Mark{inbox.Current}, Newest: true, Limit: maxEvents}
	for e, err := range h.Inbox.Events(ctx, q) {
		if err != nil {
			return nil, err
		}
		if h.Mask != nil {
			e = h.Mask(e)
		}
		if t := follow.Tracking(e); t.Known() {
			all = append(all, Version{
				Version: tracking.Version{Tracking: t, Learnt: e.ReceivedAt, Event: true},
				Phase:   ledger.Processed, Seq: e.Seq, ID: e.ID(), Raw: e.Raw,
			})
		}
	}
	slices.Reverse(all)
	return all, nil
}
