package query

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// match returns the trackings according to the answer, and to the answers about single parcels.
func match(r queryReply, rows []ledger.TrackingStatus) []Tracking {
	found := matchNumbers(r, rows)
	knownFirst(found)
	for i, f := range found {
		if f.Phase == Rejected || f.Phase == NotSent {
			continue
		}
		if t, ok := r.parcels[f.Number]; ok && f.Phase == Undecided {
			f = answered(t, r.query, f.Number)
		}
		if f.Phase != Undecided {
			f.Source, f.Learnt = ledger.FromQuery, r.asked
		}
		sentCarrier := func(row ledger.TrackingStatus) bool { return f.isOf(row) && row.Item.CarrierCode != "" }
		if i := slices.IndexFunc(rows, sentCarrier); i >= 0 {
			f.SentCarrier = rows[i].Item.CarrierCode
		}
		found[i] = f
	}
	return found
}

// matchNumbers returns what an answer says about each number of a query, and the further trackings in it. It never
// takes another number for the requested one.
func matchNumbers(r queryReply, rows []ledger.TrackingStatus) []Tracking {
	numbers := wanted(r.query, rows)
	var found []Tracking
	all := slices.DeleteFunc(slices.Clone(r.answer.Trackings), func(t tracking.Tracking) bool {
		return r.query.ReferID != "" && t.ReferID != "" && t.ReferID != r.query.ReferID // belongs to another order
	})
	used := make([]bool, len(all))
	for _, n := range numbers {
		f := Tracking{Tracking: tracking.Tracking{ReferID: r.query.ReferID, Number: n}, Phase: Undecided}
		for i, t := range all {
			if !used[i] && (tracking.SameNumber(t.Number, n) || (t.Number == "" && len(used) == 1 && len(numbers) == 1)) {
				used[i] = true
				f = answered(t, r.query, n)
				break
			}
		}
		if f.Phase == Undecided {
			f.Phase = wholePhase(r)
			if row := unaccepted(n, r.query, rows); row != nil {
				f = knownRow{TrackingStatus: *row}.tracking()
			}
		}
		found = append(found, f)
	}
	for i, t := range all {
		if !used[i] && r.query.ReferID != "" {
			found = append(found, answered(t, r.query, t.Number))
		}
	}
	if len(found) == 0 {
		found = append(found, Tracking{Tracking: tracking.Tracking{ReferID: r.query.ReferID}, Phase: wholePhase(r)})
	}
	return found
}

// unaccepted returns a row that was rejected or not sent, or nil if another row of the number was accepted.
func unaccepted(number string, q tracking.Query, rows []ledger.TrackingStatus) *ledger.TrackingStatus {
	var found *ledger.TrackingStatus
	for i, row := range rows {
		if !tracking.SameNumber(row.Item.Number, number) || q.ReferID != "" && q.ReferID != row.Item.ReferID {
			continue
		}
		if row.State != ledger.Rejected && row.State != ledger.Pending {
			return nil
		}
		found = &rows[i]
	}
	return found
}

func (t Tracking) isOf(row ledger.TrackingStatus) bool {
	return tracking.SameNumber(t.Number, row.Item.Number) &&
		(t.ReferID == "" || row.Item.ReferID == "" || t.ReferID == row.Item.ReferID)
}

func knownFirst(ts []Tracking) {
	rank := func(t Tracking) int {
		switch t.Phase {
		case ledger.Processed, ledger.InError:
			return 0
		case ledger.Processing:
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(ts, func(a, b Tracking) int { return rank(a) - rank(b) })
}

func answered(t tracking.Tracking, q tracking.Query, number string) Tracking {
	t.ReferID, t.Number = cmp.Or(t.ReferID, q.ReferID), cmp.Or(number, t.Number)
	phase := Undecided
	switch {
	case t.Error != "":
		phase = ledger.InError
	case t.Known():
		phase = ledger.Processed
	case t.Processing:
		phase = ledger.Processing
	}
	return Tracking{Tracking: t, Phase: phase}
}

// wholePhase returns what an answer as a whole says about a number that it does not name.
func wholePhase(r queryReply) ledger.Phase {
	switch {
	case errors.Is(r.err, tracking.ErrAbsent):
		return ledger.Absent
	case r.answer.Processing:
		return ledger.Processing // of the order: it does not say of which parcel
	}
	return Undecided
}

// wanted returns the numbers that belong to a query, as far as the ledger knows.
func wanted(q tracking.Query, rows []ledger.TrackingStatus) []string {
	if q.ReferID == "" {
		return []string{q.Number}
	}
	var numbers []string
	for _, r := range rows {
		if !slices.Contains(numbers, r.Item.Number) {
			numbers = append(numbers, r.Item.Number)
		}
	}
	return numbers
}

// sightings returns what the ledger should remember: of rows, and of trackings that were not created here.
func sightings(res Result, rows []ledger.TrackingStatus) []ledger.Sighting {
	var seen []ledger.Sighting
	for _, t := range res.Trackings {
		if t.Phase == Undecided || t.Phase == Rejected || t.Phase == NotSent {
			continue
		}
		known := false
		for _, r := range rows {
			if tracking.SameNumber(r.Item.Number, t.Number) {
				seen = append(seen, ledger.NewSighting(t.Tracking, t.Phase, r.Item.Key(), res.Asked, ledger.FromQuery))
				known = true
			}
		}
		if !known && t.Phase.Reported() && t.ReferID != "" && t.Number != "" {
			key := tracking.Key{ReferID: t.ReferID, Number: t.Number}
			seen = append(seen, ledger.NewSighting(t.Tracking, t.Phase, key, res.Asked, ledger.FromQuery))
		}
	}
	return seen
}

// knownRow is a row with the event that reported it; nil if there is none or it was pruned.
type knownRow struct {
	ledger.TrackingStatus
	event *inbox.Event
}

func byEvent(row ledger.TrackingStatus) bool {
	return row.Sighting != nil && row.Sighting.Phase.Reported() && row.Sighting.Source == ledger.FromEvent
}

// merge replaces answers with rows learnt from events. The ledger has already compared the two.
func merge(res Result, rows []knownRow) []Tracking {
	found := slices.Clone(res.Trackings)
	for _, row := range rows {
		i := slices.IndexFunc(found, func(t Tracking) bool { return t.isOf(row.TrackingStatus) })
		if i >= 0 && byEvent(row.TrackingStatus) {
			found[i] = found[i].supersededBy(row.tracking(), res.Asked)
		}
	}
	knownFirst(found)
	return found
}

// supersededBy returns the tracking as the event reports it, plus the data that only the answer has.
func (t Tracking) supersededBy(event Tracking, asked time.Time) Tracking {
	event.Checkpoints = event.WithOlder(t.Checkpoints)
	event.Older = t.Older
	if t.Source == ledger.FromQuery && t.Phase.Reported() && event.Learnt.Before(asked) {
		event.Older = &t.Tracking
	}
	return event
}

// tracking returns the row as its event or else the ledger has it.
func (k knownRow) tracking() Tracking {
	t := FromStore(k.TrackingStatus)
	if t.Phase == Undecided && k.State == ledger.Accepted {
		t.Phase = ledger.Processing // it was queried, and no answer reports it yet
	}
	if k.event == nil {
		return t
	}
	reported := follow.Tracking(*k.event)
	reported.ReferID, reported.Number = t.ReferID, t.Number
	reported.CarrierCode, reported.Error = cmp.Or(reported.CarrierCode, t.CarrierCode), cmp.Or(reported.Error, t.Error)
	t.Tracking = reported
	return t
}

// FromStore returns a tracking as the store knows it, with the reason why its row was rejected.
func FromStore(st ledger.TrackingStatus) Tracking {
	t := Tracking{
		Tracking: tracking.Tracking{ReferID: st.Item.ReferID, Number: st.Item.Number, CarrierCode: st.Carrier()},
		Phase:    Unreported(st.State), CloseReason: st.CloseReason, Reason: st.Reason, SentCarrier: st.Item.CarrierCode,
	}
	if t.Phase == NotAsked && !st.Unchecked() {
		t.Phase = Undecided
	}
	if s := st.Sighting; s != nil {
		t.Phase, t.Source, t.Learnt, t.Event = s.Phase, s.Source, s.Seen, s.Event
		t.CloseReason = ledger.CloseReason{}
		t.Report = s.Report
	}
	return t
}

// Unreported returns the phase of a tracking without a report, from the state of its row.
func Unreported(s ledger.State) ledger.Phase {
	switch s {
	case ledger.Rejected:
		return Rejected
	case ledger.Pending:
		return NotSent
	case ledger.Accepted:
		return NotAsked
	case "":
		return Undecided
	}
	return ledger.Phase(s) // unknown, sending, superseded or dismissed
}
