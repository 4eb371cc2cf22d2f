package events

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// deadJSON is a delivery that was given up forwarding, in our output.
type deadJSON struct {
	Delivery     int64      `json:"delivery"`
	Target       string     `json:"target"` // without what may be a token
	Filter       string     `json:"filter"`
	Tries        int        `json:"tries"`
	Status       int        `json:"status"` // of the last answer; 0 if none came
	Problem      string     `json:"problem"`
	FailingSince *time.Time `json:"failingSince"`
	GivenUpAt    time.Time  `json:"givenUpAt"`
	Reply        string     `json:"reply"` // start of the last answer
}

func newDeadJSON(l inbox.OutboxEntry, k inbox.Sink) deadJSON {
	return deadJSON{
		Delivery: l.Delivery, Target: view.Target(k), Filter: k.Filter, Tries: l.Attempt, Status: l.Status, Problem: l.Problem,
		FailingSince: view.TimeOrNull(l.FirstFailure), GivenUpAt: l.GivenUpAt.UTC(), Reply: string(l.Reply),
	}
}

// ofDeliveries returns the time since which --dead, --pending or --refused lists deliveries,
// and the store, nil if there is none. Filters of events are a usage error.
func (o listOptions) ofDeliveries(ctx context.Context, c *command.Call) (time.Time, *app.Store, error) {
	if o.Kind != "" || o.Number != "" || o.ReferID != "" || o.Filter != "" || o.Verified != "" || o.All || o.Dead && o.Pending || o.Refused && (o.Dead || o.Pending) {
		return time.Time{}, nil, command.Usagef("use one of them alone, or with --since and --limit", "--dead, --pending and --refused list deliveries, not events")
	}
	since, err := command.ParseSince("--since", o.Since)
	if err != nil {
		return since, nil, err
	}
	db, err := c.ExistingStore(ctx)
	return since, db, err
}

// sinksByID returns all sinks of a store.
func sinksByID(ctx context.Context, db *app.Store) (map[int64]inbox.Sink, error) {
	all, err := db.Outbox.Sinks(ctx)
	sinks := make(map[int64]inbox.Sink, len(all))
	for _, k := range all {
		sinks[k.ID] = k
	}
	return sinks, err
}

// runListDead lists dead entries, oldest first.
func runListDead(ctx context.Context, c *command.Call, o listOptions) error {
	since, db, err := o.ofDeliveries(ctx, c)
	if err != nil {
		return err
	}
	var sinks map[int64]inbox.Sink
	if db != nil {
		if sinks, err = sinksByID(ctx, db); err != nil {
			return err
		}
	}
	w := command.Listing[inbox.OutboxEntry]{
		Out: c.Out, Empty: "Nothing was given up", Columns: deadColumns(sinks),
		JSON: func(l inbox.OutboxEntry) any { return newDeadJSON(l, sinks[l.Sink]) },
	}
	if db == nil {
		return w.Print(c.IO, nil)
	}
	found := false
	err = w.Print(c.IO, command.Filter(db.Outbox.DeadEntries(ctx), func(l inbox.OutboxEntry) bool {
		if l.GivenUpAt.Before(since) {
			return false
		}
		found = true
		return true
	}, o.Limit))
	if err == nil && found {
		c.IO.Next(c.CommandLine("events", "replay", "--dead"))
	}
	return err
}

// deadColumns returns the columns of dead entries.
func deadColumns(sinks map[int64]inbox.Sink) []command.Column[inbox.OutboxEntry] {
	return []command.Column[inbox.OutboxEntry]{
		{Column: render.Column{Name: "DELIVERY", Right: true}, Cell: func(l inbox.OutboxEntry) string { return fmt.Sprint(l.Delivery) }},
		{Column: render.Column{Name: "TARGET"}, Cell: func(l inbox.OutboxEntry) string { return view.Sink(sinks[l.Sink]) }},
		{Column: render.Column{Name: "TRIES", Right: true}, Cell: func(l inbox.OutboxEntry) string { return fmt.Sprint(l.Attempt) }},
		{Column: render.Column{Name: "FAILING SINCE", Rank: 2}, Time: func(l inbox.OutboxEntry) time.Time { return l.FirstFailure }},
		{Column: render.Column{Name: "GIVEN UP", Rank: 3}, Time: func(l inbox.OutboxEntry) time.Time { return l.GivenUpAt }},
		{Column: render.Column{Name: "PROBLEM", Flex: true, Rank: 1}, Cell: func(l inbox.OutboxEntry) string { return l.Problem }},
	}
}

// forwardingState is what became of a delivery at a target.
type forwardingState string

const (
	unread    forwardingState = "unread"    // no listener with this target has read it yet
	notQueued forwardingState = "notQueued" // it was read and not queued, or nothing is recorded
	waiting   forwardingState = "waiting"
	sendsNow  forwardingState = "sending"
	sent      forwardingState = "sent"
	dead      forwardingState = "dead"
)

// forwardingJSON is what became of a delivery at a target, in our output.
type forwardingJSON struct {
	Delivery      int64           `json:"delivery"`
	Target        string          `json:"target"` // without what may be a token
	Filter        string          `json:"filter"`
	State         forwardingState `json:"state"`
	Attempts      int             `json:"attempts"`
	Status        int             `json:"status"` // of the last answer; 0 if none came
	Problem       string          `json:"problem,omitempty"`
	HeldBy        int64           `json:"heldBy,omitempty"`       // the delivery that must be sent before
	HeldByNumber  string          `json:"heldByNumber,omitempty"` // of that: the tracking number they share
	QueuedAt      *time.Time      `json:"queuedAt,omitempty"`
	FailingSince  *time.Time      `json:"failingSince,omitempty"`
	NextAttemptAt *time.Time      `json:"nextAttemptAt,omitempty"`
	SentAt        *time.Time      `json:"sentAt,omitempty"`
	GivenUpAt     *time.Time      `json:"givenUpAt,omitempty"`
	Reply         string          `json:"reply,omitempty"` // start of the last answer, if it failed
}

func newForwardingJSON(delivery int64, f inbox.Forwarding) forwardingJSON {
	j := forwardingJSON{Delivery: delivery, Target: view.Target(f.Sink), Filter: f.Sink.Filter, State: notQueued}
	switch w := f.Waiting; {
	case w != nil:
		j.State, j.Attempts, j.Status, j.Problem, j.Reply = waiting, w.Attempt, w.Status, w.Problem, string(w.Reply)
		j.QueuedAt, j.FailingSince, j.GivenUpAt = view.TimeOrNull(w.Added), view.TimeOrNull(w.FirstFailure), view.TimeOrNull(w.GivenUpAt)
		switch {
		case j.GivenUpAt != nil:
			j.State = dead
		case w.Sending:
			j.State = sendsNow
		default:
			j.NextAttemptAt, j.HeldBy, j.HeldByNumber = view.TimeOrNull(w.Due), w.HeldBy, w.Number
		}
	case !f.SentAt.IsZero():
		j.State, j.Attempts, j.Status, j.SentAt = sent, f.Attempts, f.Status, view.TimeOrNull(f.SentAt)
	case !f.Read:
		j.State = unread
	}
	return j
}

// words says what became of the delivery, or what it waits for.
func (j forwardingJSON) words(now time.Time) string {
	switch {
	case j.State == unread:
		return "not read yet"
	case j.State == notQueued:
		return "not queued"
	case j.State == dead:
		return "given up"
	case j.State == sendsNow:
		return "being sent"
	case j.State == sent:
		return "sent"
	case j.HeldBy != 0:
		return fmt.Sprintf("held behind %d, same number", j.HeldBy)
	case j.NextAttemptAt != nil && j.NextAttemptAt.After(now):
		return "next attempt " + render.LocalTime(*j.NextAttemptAt)
	default:
		return "due now"
	}
}

// at is when that became so: when it was sent, given up or queued.
func (j forwardingJSON) at() time.Time {
	for _, t := range []*time.Time{j.SentAt, j.GivenUpAt, j.QueuedAt} {
		if t != nil {
			return *t
		}
	}
	return time.Time{}
}

// answer is the last answer of the target, in few words.
func (j forwardingJSON) answer() string {
	switch {
	case j.Problem != "":
		return j.Problem
	case j.Status != 0:
		return fmt.Sprint(j.Status)
	default:
		return ""
	}
}

// targetText shows the target with its filter.
func (j forwardingJSON) targetText() string {
	if j.Filter == "" {
		return j.Target
	}
	return j.Filter + "=>" + j.Target
}

// forwardingColumns returns the columns of what became of deliveries.
func forwardingColumns(now time.Time) []command.Column[forwardingJSON] {
	return []command.Column[forwardingJSON]{
		{Column: render.Column{Name: "TARGET", Flex: true}, Cell: forwardingJSON.targetText},
		{Column: render.Column{Name: "STATE"}, Cell: func(j forwardingJSON) string { return j.words(now) }, Style: func(j forwardingJSON) term.Style {
			return map[forwardingState]term.Style{sent: term.Good, dead: term.Bad, waiting: term.Caution}[j.State]
		}},
		{Column: render.Column{Name: "ATTEMPTS", Right: true, Rank: 2}, Cell: func(j forwardingJSON) string { return fmt.Sprint(j.Attempts) }},
		{Column: render.Column{Name: "TIME", Rank: 1}, Time: forwardingJSON.at},
		{Column: render.Column{Name: "LAST ANSWER", Flex: true, Rank: 3}, Cell: forwardingJSON.answer},
	}
}

// pendingColumns returns the columns of what waits for targets.
func pendingColumns(now time.Time) []command.Column[forwardingJSON] {
	return []command.Column[forwardingJSON]{
		{Column: render.Column{Name: "DELIVERY", Right: true}, Cell: func(j forwardingJSON) string { return fmt.Sprint(j.Delivery) }},
		{Column: render.Column{Name: "TARGET", Flex: true}, Cell: forwardingJSON.targetText},
		{Column: render.Column{Name: "WAITS FOR"}, Cell: func(j forwardingJSON) string { return j.words(now) }},
		{Column: render.Column{Name: "ATTEMPTS", Right: true, Rank: 2}, Cell: func(j forwardingJSON) string { return fmt.Sprint(j.Attempts) }},
		{Column: render.Column{Name: "LAST ANSWER", Flex: true, Rank: 1}, Cell: forwardingJSON.answer},
		{Column: render.Column{Name: "QUEUED", Rank: 3}, Time: forwardingJSON.at},
		{Column: render.Column{Name: "SAME NUMBER", ID: true, Rank: 4}, Cell: func(j forwardingJSON) string { return j.HeldByNumber }},
	}
}

// runListPending lists what waits for targets, in the order in which it was queued.
func runListPending(ctx context.Context, c *command.Call, o listOptions) error {
	since, db, err := o.ofDeliveries(ctx, c)
	if err != nil {
		return err
	}
	w := command.Listing[forwardingJSON]{
		Out: c.Out, Empty: "Nothing waits for a target", Columns: pendingColumns(time.Now()), JSON: func(j forwardingJSON) any { return j },
	}
	if db == nil {
		return w.Print(c.IO, nil)
	}
	sinks, err := sinksByID(ctx, db)
	if err != nil {
		return err
	}
	found := false
	entries := command.Filter(db.Forwardings.WaitingEntries(ctx), func(e inbox.WaitingEntry) bool {
		found = found || !e.Added.Before(since)
		return !e.Added.Before(since)
	}, o.Limit)
	if err := w.Print(c.IO, func(yield func(forwardingJSON, error) bool) {
		for e, err := range entries {
			if !yield(newForwardingJSON(e.Delivery, inbox.Forwarding{Sink: sinks[e.Sink], Waiting: &e}), err) {
				return
			}
		}
	}); err != nil {
		return err
	}
	return notePending(ctx, c, db, sinks, found)
}

// notePending notes what no listener has read yet for a target, and whether a
// listener runs at all.
func notePending(ctx context.Context, c *command.Call, db *app.Store, sinks map[int64]inbox.Sink, found bool) error {
	for _, id := range slices.Sorted(maps.Keys(sinks)) {
		if k := sinks[id]; k.Unread > 0 {
			found = true
			c.IO.Note("%s: %s not read yet", view.Sink(k), command.Plural(k.Unread, "delivery"))
		}
	}
	running, err := db.Listeners.RunningListeners(ctx)
	if err == nil && found && len(running) == 0 {
		c.IO.Note("No listener runs on this store; `waybill listen` with the same --forward-to sends what waits")
	}
	return err
}
