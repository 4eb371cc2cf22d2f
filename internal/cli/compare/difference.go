package compare

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// kind is a kind of difference. The words are those of JSON.
type kind string

// The kinds, in the order in which they are counted.
const (
	missingHere   kind = "missing_here"  // in the file, not in the store
	pending       kind = "pending"       // in the store, not sent yet
	rejected      kind = "rejected"      // the service refused it
	unknown       kind = "unknown"       // sent, outcome not known
	missingThere  kind = "missing_there" // accepted, and the service does not have it
	differs       kind = "differs"       // the sources have different values of a field
	notInFile     kind = "not_in_file"   // in the store or at the service only
	withoutStatus kind = "never_heard"   // accepted, and neither an answer nor an event had a status
	stale         kind = "stale"         // not delivered, and nothing new for long
	notCompared   kind = "not_compared"  // the service gave no usable answer
)

// kinds returns all kinds, in order.
func kinds() []kind {
	return []kind{missingHere, pending, rejected, unknown, missingThere, differs, notInFile, withoutStatus, stale, notCompared}
}

// Values of a source in a difference beside states and statuses.
const (
	present = "present"
	absent  = "absent"
)

// difference is one difference between the sources.
type difference struct {
	kind  kind
	field string // of differs: trackingNumber, carrierCode or status
	row   ledger.Row
	run   int64 // that brought the row in, 0 if none or pruned

	// What each source has: the value of field, else a state, a status or present;
	// empty if it has nothing, or was not asked.
	file, store, service, events string

	reason string // why it was rejected, is unknown or was not compared
	err    error  // of notCompared
}

// order is what the sources have of one referId.
type order struct {
	inFile []ledger.TrackingStatus // rows of the file, in order
	known  []ledger.TrackingStatus // of the store, before the service was asked
	answer *query.Result           // nil if the service was not asked
	// events are the last verified events by number.
	events map[string]inbox.Event
	// staleBefore is when the latest sign of a fresh tracking is at least; zero
	// for any time.
	staleBefore time.Time
}

// find returns what a list has of a number, nil for nothing.
func find(list []ledger.TrackingStatus, number string) *ledger.TrackingStatus {
	i := slices.IndexFunc(list, func(st ledger.TrackingStatus) bool { return st.Item.Number == number && st.State != "" })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// onlyKnown returns the rows of the store whose numbers the file does not have.
func (o *order) onlyKnown() []ledger.TrackingStatus {
	var rest []ledger.TrackingStatus
	for _, st := range o.known {
		if st.State != "" && st.State != ledger.Rejected && find(o.inFile, st.Item.Number) == nil {
			rest = append(rest, st)
		}
	}
	return rest
}

// onlyThere returns the trackings of the answer that neither file nor store has.
func (o *order) onlyThere() []query.Tracking {
	if o.answer == nil {
		return nil
	}
	var rest []query.Tracking
	for _, t := range o.answer.Trackings {
		same := func(st ledger.TrackingStatus) bool { return tracking.SameNumber(st.Item.Number, t.Number) }
		if t.Number != "" && decided(t) && !slices.ContainsFunc(o.inFile, same) && !slices.ContainsFunc(o.known, same) {
			rest = append(rest, t)
		}
	}
	return rest
}

func decided(t query.Tracking) bool {
	return t.Phase == ledger.Processed || t.Phase == ledger.Processing
}

// isHere reports whether the store holds a row of the file, other than as rejected.
func (o *order) isHere(number string) bool {
	st := find(o.known, number)
	return st != nil && st.State != ledger.Rejected
}

// isSettledThere reports whether the answer speaks of an accepted row; others need
// not be there.
func (o *order) isSettledThere(number string) bool {
	st, t := find(o.known, number), o.answered(number)
	return st == nil || st.State != ledger.Accepted || t != nil && (decided(*t) || t.Phase == ledger.Absent)
}

// answered returns what the answer says of a number, nil if nothing. Of an order
// in processing it says so of every number.
func (o *order) answered(number string) *query.Tracking {
	if o.answer == nil {
		return nil
	}
	for i, t := range o.answer.Trackings {
		if tracking.SameNumber(t.Number, number) || t.Number == "" && len(o.inFile) == 1 {
			return &o.answer.Trackings[i]
		}
	}
	return nil
}

// place returns the place of a number among those of the file that lack something,
// and false if it does not lack it.
func (o *order) place(number string, has func(string) bool) (int, bool) {
	n := 0
	for _, st := range o.inFile {
		switch {
		case st.Item.Number == number:
			return n, !has(number)
		case !has(st.Item.Number):
			n++
		}
	}
	return n, false
}

// lacking counts the numbers of the file that lack something.
func (o *order) lacking(has func(string) bool) int {
	n := 0
	for _, st := range o.inFile {
		if !has(st.Item.Number) {
			n++
		}
	}
	return n
}

// differences returns those of one row of the file. What stands beside the rows of
// the file is told with the first of them.
func (o *order) differences(row ledger.Row) []difference {
	base := difference{row: row}
	here := find(o.known, row.Item.Number)
	if here != nil {
		base.run = here.Run
	}
	ds := o.ofRow(base, here)
	if o.inFile[0].Item.Number == row.Item.Number {
		ds = append(ds, o.beside(row)...)
	}
	if o.answer != nil && !answeredAtAll(o.answer.Err) {
		d := base
		d.kind, d.file, d.store, d.reason, d.err = notCompared, present, storeValue(here), o.answer.Err.Error(), o.answer.Err
		ds = append(ds, d)
	}
	return ds
}

// answeredAtAll reports whether an error of a result is an answer.
func answeredAtAll(err error) bool { return err == nil || errors.Is(err, tracking.ErrAbsent) }

func storeValue(st *ledger.TrackingStatus) string {
	if st == nil {
		return ""
	}
	return string(st.State)
}

// ofRow returns the differences of a row; here is what the store has of it.
func (o *order) ofRow(base difference, here *ledger.TrackingStatus) []difference {
	d := base
	d.file, d.store, d.service, d.events = present, storeValue(here), o.serviceValue(base.row.Item.Number), o.eventValue(base.row.Item.Number)
	if here == nil || here.State == ledger.Rejected {
		if here != nil && !here.Dismissed.IsZero() {
			return nil // the user settled it
		}
		if i, lacks := o.place(d.row.Item.Number, o.isHere); lacks && i < len(o.onlyKnown()) {
			other := o.onlyKnown()[i]
			d.kind, d.field, d.file, d.store, d.run = differs, "trackingNumber", d.row.Item.Number, other.Item.Number, other.Run
			if t := o.answered(other.Item.Number); t != nil && decided(*t) {
				d.service = t.Number
			}
			return []difference{d}
		}
	}
	switch {
	case here == nil:
		d.kind = missingHere
	case here.State == ledger.Rejected:
		d.kind = rejected
	case here.State == ledger.Unknown:
		d.kind = unknown
	case here.State != ledger.Accepted:
		d.kind = pending
	default:
		return o.ofAccepted(base, d, here)
	}
	if here != nil {
		d.reason = here.Reason
	}
	return []difference{d}
}

// ofAccepted returns the differences of an accepted row; d has the values of the
// sources.
func (o *order) ofAccepted(base, d difference, here *ledger.TrackingStatus) []difference {
	ds := o.ofCarrier(base, here)
	t, number := o.answered(here.Item.Number), here.Item.Number
	i, unresolved := o.place(number, o.isSettledThere)
	others := o.onlyThere()
	switch {
	case o.isAbsent(t, here):
		d.kind = missingThere
		return append(ds, d)
	case o.answer != nil && unresolved && i < len(others):
		d.kind, d.field, d.file, d.store, d.service = differs, "trackingNumber", number, number, others[i].Number
		return append(ds, d)
	}
	ds = append(ds, o.ofStatus(base, t, here)...)
	last, delivered := o.lastSign(t, here)
	switch {
	case o.answer != nil && !answeredAtAll(o.answer.Err):
	case last.IsZero():
		d.kind = withoutStatus
		ds = append(ds, d)
	case !delivered && last.Before(o.staleBefore):
		d.kind = stale
		ds = append(ds, d)
	}
	return ds
}

// isAbsent reports whether the service does not have an accepted row: by its
// answer or, if it was not asked, by what it said last.
func (o *order) isAbsent(t *query.Tracking, here *ledger.TrackingStatus) bool {
	switch {
	case o.answer == nil:
		return here.Sighting != nil && here.Sighting.Phase == ledger.Absent
	case t != nil:
		return t.Phase == ledger.Absent
	}
	return errors.Is(o.answer.Err, tracking.ErrAbsent)
}

// ofCarrier compares the carrier code of the file, if it has one.
func (o *order) ofCarrier(base difference, here *ledger.TrackingStatus) []difference {
	d := base
	d.kind, d.field, d.file, d.store = differs, "carrierCode", base.row.Item.CarrierCode, here.Item.CarrierCode
	if t := o.answered(here.Item.Number); t != nil && t.Source == ledger.FromQuery && t.Phase == ledger.Processed {
		d.service = t.CarrierCode
	}
	if d.file == "" || d.file == d.store && (d.service == "" || d.service == d.file) {
		return nil
	}
	return []difference{d}
}

// ofStatus compares the status of the service's answer, the last one if it was not
// asked, with that of the last verified event, unless one of them is newer.
func (o *order) ofStatus(base difference, t *query.Tracking, here *ledger.TrackingStatus) []difference {
	e, ok := o.events[here.Item.Number]
	if !ok || e.Status == "" {
		return nil
	}
	event := follow.Tracking(e)
	var said tracking.Tracking
	var times tracking.Times
	switch seen := here.Sighting; {
	case o.answer != nil:
		said = ofService(*o.answer, t)
		times = said.Times()
	case seen != nil && seen.Source != ledger.FromEvent:
		said, times = tracking.Tracking{Status: seen.Status, StatusLabel: seen.StatusLabel, StatusTrack: seen.StatusTrack}, seen.Times
	}
	if said.Status == "" || sameStatus(said, event) || times.Compare(event.Times()) != 0 {
		return nil
	}
	base.kind, base.field, base.store = differs, "status", sightingValue(here.Sighting)
	base.service, base.events = statusValue(said.Status, said.StatusLabel, said.StatusTrack), o.eventValue(here.Item.Number)
	return []difference{base}
}

// ofService returns a tracking as the answer has it, whatever events say of it.
func ofService(res query.Result, t *query.Tracking) tracking.Tracking {
	switch {
	case t == nil:
		return tracking.Tracking{}
	case t.Older != nil:
		return *t.Older
	case t.Source == ledger.FromQuery:
		return t.Tracking
	}
	for _, a := range res.Answer.Trackings {
		if tracking.SameNumber(a.Number, t.Number) || a.Number == "" && len(res.Answer.Trackings) == 1 {
			return a
		}
	}
	return tracking.Tracking{}
}

func sameStatus(a, b tracking.Tracking) bool {
	return slices.ContainsFunc([]string{view.Unquote(a.Status), a.StatusLabel, a.StatusTrack}, func(want string) bool {
		return tracking.NamesStatus(want, b.Status, b.StatusLabel, b.StatusTrack)
	})
}

// lastSign returns when something was last heard of a shipment, by the times that
// the service gave, else by when it was learnt; zero if nothing was. It also
// reports whether the shipment has arrived.
//
// Interface: States and transitions.
func (o *order) lastSign(t *query.Tracking, here *ledger.TrackingStatus) (last time.Time, delivered bool) {
	add := func(number, label, track string, times tracking.Times, learnt time.Time) {
		delivered = delivered || tracking.NamesStatus("1", number, label, track) || tracking.NamesStatus("delivered", number, label, track)
		at := learnt
		if latest := later(times.Checkpoint, times.Updated); !latest.IsZero() {
			at = latest
		}
		last = later(last, at)
	}
	if s := here.Sighting; s != nil && s.Phase == ledger.Processed {
		add(s.Status, s.StatusLabel, s.StatusTrack, s.Times, s.Seen)
	}
	if t != nil && t.Phase == ledger.Processed {
		learnt := t.Learnt
		if !last.IsZero() {
			learnt = time.Time{} // that it was asked for now is no sign
		}
		add(t.Status, t.StatusLabel, t.StatusTrack, t.Times(), learnt)
	}
	if e, ok := o.events[here.Item.Number]; ok {
		add(e.Status, e.StatusLabel, e.StatusTrack, follow.Tracking(e).Times(), e.ReceivedAt)
	}
	return last, delivered
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// beside returns what the store and the service have beside the rows of the file.
func (o *order) beside(row ledger.Row) []difference {
	var ds []difference
	known := o.onlyKnown()
	for _, st := range known[min(len(known), o.lacking(o.isHere)):] {
		d := difference{kind: notInFile, row: row, run: st.Run, store: string(st.State), service: o.serviceValue(st.Item.Number)}
		d.row.Item = st.Item
		ds = append(ds, d)
	}
	there := o.onlyThere()
	for _, t := range there[min(len(there), o.lacking(o.isSettledThere)):] {
		d := difference{kind: notInFile, row: row, service: trackingValue(t)}
		d.row.Item = tracking.Item{ReferID: row.Item.ReferID, Number: t.Number, CarrierCode: t.CarrierCode}
		ds = append(ds, d)
	}
	return ds
}

// serviceValue returns what the service says of a number.
func (o *order) serviceValue(number string) string {
	t := o.answered(number)
	switch {
	case o.answer == nil:
		return ""
	case t != nil && (decided(*t) || t.Phase == ledger.Absent):
		if said := ofService(*o.answer, t); said.Status != "" {
			return statusValue(said.Status, said.StatusLabel, said.StatusTrack)
		}
		return trackingValue(*t)
	case errors.Is(o.answer.Err, tracking.ErrAbsent):
		return absent
	}
	return ""
}

func trackingValue(t query.Tracking) string {
	if t.Phase == ledger.Processed {
		return statusValue(t.Status, t.StatusLabel, t.StatusTrack)
	}
	return string(t.Phase)
}

func (o *order) eventValue(number string) string {
	e, ok := o.events[number]
	if !ok {
		return ""
	}
	return cmp.Or(statusValue(e.Status, e.StatusLabel, e.StatusTrack), e.Kind)
}

func sightingValue(s *ledger.Sighting) string {
	if s == nil {
		return ""
	}
	return cmp.Or(statusValue(s.Status, s.StatusLabel, s.StatusTrack), string(s.Phase))
}

func statusValue(number, label, track string) string {
	return cmp.Or(label, track, view.Unquote(number))
}
