package events

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// ofDeliveries returns --since and the store, nil if there is none, for --dead, --pending or --refused. Filters of
// events are a usage error.
func (o listOptions) ofDeliveries(ctx context.Context, c *command.Call) (time.Time, *app.Store, error) {
	ofEvents := o.Kind != "" || o.Number != "" || o.ReferID != "" || o.Filter != "" || o.Verified != "" || o.All
	if ofEvents || o.Dead && o.Pending || o.Refused && (o.Dead || o.Pending) {
		return time.Time{}, nil, command.Usagef("use one of them alone, or with --since and --limit",
			"--dead, --pending and --refused list deliveries, not events")
	}
	since, err := command.ParseSince("--since", o.Since)
	if err != nil {
		return since, nil, err
	}
	db, err := c.StoreToList(ctx, "delivery")
	return since, db, err
}

// runListOutbox lists deliveries since --since that wait to be forwarded, or with --dead those that were given up.
func runListOutbox(ctx context.Context, c *command.Call, o listOptions) error {
	entries, columns, empty := waitingEntries, pendingColumns(c.Out, time.Now()), "No delivery is queued"
	if o.Dead {
		entries, columns, empty = deadEntries, deadColumns(c.Out), "Nothing was given up"
	}
	w := command.Listing[Forwarding]{Out: c.Out, Empty: empty, Columns: columns}
	since, db, err := o.ofDeliveries(ctx, c)
	if err == nil && db == nil {
		err = w.PrintAll(nil)
	}
	if err != nil || db == nil {
		return err
	}
	sinks, err := db.Outbox.Sinks(ctx)
	if err != nil {
		return err
	}
	running, err := db.Listeners.RunningListeners(ctx)
	if err != nil {
		return err
	}
	byTarget := func(a, b inbox.Sink) int { return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.Filter, b.Filter)) }
	slices.SortFunc(sinks, byTarget)
	found := false
	err = w.Print(command.Filter(entries(ctx, db, sinks, running), func(j Forwarding) bool {
		late := !cmp.Or(j.GivenUpAt, j.QueuedAt, &time.Time{}).Before(since)
		found = found || late
		return late
	}, o.Limit))
	switch {
	case err != nil:
		return err
	case o.Dead && found:
		c.IO.Next(c.CommandLine("events", "replay", "--dead"))
	case !o.Dead:
		if unread := noteUnread(c, sinks, running); (found || unread) && len(running) == 0 {
			c.IO.Note("No listener runs on this store; `waybill listen` with the same --forward-to sends what waits")
		}
	}
	return nil
}

type forwardings = iter.Seq2[Forwarding, error]

func deadEntries(ctx context.Context, db *app.Store, sinks []inbox.Sink, running []inbox.Listener) forwardings {
	return func(yield func(Forwarding, error) bool) {
		byID := map[int64]inbox.Sink{}
		for _, k := range sinks {
			byID[k.ID] = k
		}
		for e, err := range db.Outbox.DeadEntries(ctx) {
			f := inbox.Forwarding{Sink: byID[e.Sink], Waiting: &inbox.WaitingEntry{OutboxEntry: e}}
			if !yield(NewForwarding(e.Delivery, f, running), err) {
				return
			}
		}
	}
}

func deadColumns(out *command.Output) []command.Column[Forwarding] {
	return []command.Column[Forwarding]{
		{Name: "DELIVERY", Right: true, Cell: func(j Forwarding) string { return fmt.Sprint(j.Delivery) }},
		targetColumn(out),
		view.CSVOnly("FILTER", "filter", func(j Forwarding) string { return j.Filter }),
		{Name: "ATTEMPTS", Right: true, Cell: Forwarding.attempts},
		{Name: "FAILING SINCE", Rank: 2, Time: Forwarding.failing},
		{Name: "GIVEN UP", CSV: "givenUpAt", Rank: 3, Time: Forwarding.ended},
		{Name: "PROBLEM", Flex: true, Rank: 1, Cell: Forwarding.problem},
	}
}

type forwardingState string

const (
	unread    forwardingState = "unread"    // no listener with this target has read it yet
	notQueued forwardingState = "notQueued" // it was read and not queued, or nothing is recorded
	waiting   forwardingState = "waiting"
	sendsNow  forwardingState = "sending"
	sent      forwardingState = "sent"
	dead      forwardingState = "dead"
)

// Forwarding is the state of forwarding a delivery to a target, in JSON output.
type Forwarding struct {
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
	Reply         string          `json:"reply,omitempty"`      // start of the last answer, if it failed
	NoListener    bool            `json:"noListener,omitempty"` // it waits, and no running listener forwards to the target
	History       []tried         `json:"history,omitempty"`    // of events show: the last attempts, oldest first
}

type tried struct {
	Attempt        int       `json:"attempt"`
	At             time.Time `json:"at"`     // when it ended
	Status         int       `json:"status"` // 0 if no answer came
	ElapsedSeconds float64   `json:"elapsedSeconds"`

	target Forwarding
}

func (a tried) answer() string {
	if a.Status == 0 {
		return "no answer"
	}
	return fmt.Sprint(a.Status)
}

func triedColumns(out *command.Output) []command.Column[tried] {
	target := targetColumn(out)
	return []command.Column[tried]{
		{Name: target.Name, Cell: func(a tried) string { return target.Cell(a.target) }},
		{Name: "ATTEMPT", Right: true, Rank: 1, Cell: func(a tried) string { return fmt.Sprint(a.Attempt) }},
		{Name: "AT", Time: func(a tried) time.Time { return a.At }},
		{Name: "ANSWER", Cell: tried.answer},
		{Name: "SECONDS", Right: true, Cell: func(a tried) string { return fmt.Sprint(a.ElapsedSeconds) }},
	}
}

// NewForwarding returns the forwarding of a delivery. running are the listeners that run now.
func NewForwarding(delivery int64, f inbox.Forwarding, running []inbox.Listener) Forwarding {
	j := Forwarding{Delivery: delivery, Target: view.Target(f.Sink), Filter: f.Sink.Filter, State: notQueued}
	switch w := f.Waiting; {
	case w != nil:
		j.State, j.Attempts, j.Status, j.Problem, j.Reply = waiting, w.Attempt, w.Status, w.Problem, string(w.Reply)
		j.QueuedAt, j.FailingSince = view.TimeOrNull(w.Added), view.TimeOrNull(w.FirstFailure)
		j.GivenUpAt = view.TimeOrNull(w.GivenUpAt)
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
	for _, a := range f.History {
		j.History = append(j.History, tried{a.Number, a.At.UTC(), a.Status, a.Took.Seconds(), j})
	}
	j.NoListener = (j.State == waiting || j.State == unread) && !isSentTo(running, f.Sink.ID)
	return j
}

// ForwardingsOf returns the forwardings of a stored delivery to all targets.
func ForwardingsOf(ctx context.Context, db *app.Store, delivery int64) ([]Forwarding, error) {
	running, err := db.Listeners.RunningListeners(ctx)
	if err != nil {
		return nil, err
	}
	known, err := db.Forwardings.ForwardingsOf(ctx, delivery)
	all := make([]Forwarding, len(known))
	for i, f := range known {
		all[i] = NewForwarding(delivery, f, running)
	}
	return all, err
}

func (j Forwarding) words(now time.Time) string {
	words := map[forwardingState]string{
		unread: "not queued yet", notQueued: "not queued", dead: "given up", sendsNow: "being sent", sent: "sent",
	}[j.State]
	switch {
	case j.State == unread && j.NoListener:
		return "not queued; start `waybill listen --forward-to URL`"
	case words != "":
		return words
	case j.HeldBy != 0:
		return fmt.Sprintf("held behind %d, same number", j.HeldBy)
	case j.NoListener:
		return "no listener forwards to it"
	case j.NextAttemptAt != nil && j.NextAttemptAt.After(now):
		return "next attempt " + render.LocalTime(*j.NextAttemptAt)
	default:
		return "due now"
	}
}

// queued returns when the delivery entered the outbox, or the zero time once it has left.
func (j Forwarding) queued() time.Time  { return *cmp.Or(j.QueuedAt, &time.Time{}) }
func (j Forwarding) failing() time.Time { return *cmp.Or(j.FailingSince, &time.Time{}) }
func (j Forwarding) ended() time.Time   { return *cmp.Or(j.SentAt, j.GivenUpAt, &time.Time{}) }
func (j Forwarding) attempts() string   { return fmt.Sprint(j.Attempts) }
func (j Forwarding) problem() string    { return j.Problem }

func (j Forwarding) answer() string {
	if j.Problem != "" || j.Status == 0 {
		return j.Problem
	}
	return fmt.Sprint(j.Status)
}

// targetColumn shows the target with its filter. A terminal gets a short form: start and end of the URL without
// http://, and the start of the filter.
func targetColumn(out *command.Output) command.Column[Forwarding] {
	const shownURL, shownFilter = 32, 16 // columns
	target := func(j Forwarding) string { return j.Target }
	return command.Column[Forwarding]{Name: "TARGET", CSVCell: target, Cell: func(j Forwarding) string {
		switch {
		case out != nil && out.Out().IsTerminal() && !out.HasColumns():
			text := cutMiddle(strings.TrimPrefix(j.Target, "http://"), shownURL)
			if j.Filter != "" {
				text += " (" + term.Truncate(j.Filter, shownFilter) + ")"
			}
			return text
		case j.Filter != "":
			return j.Filter + "=>" + j.Target
		default:
			return j.Target
		}
	}}
}

func cutMiddle(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n*2/3]) + "…" + string(r[len(r)-n+n*2/3+1:])
}

func answerColumn(rank int) command.Column[Forwarding] {
	return command.Column[Forwarding]{
		Name: "LAST ANSWER", CSV: "problem", Flex: true, Rank: rank,
		Cell: Forwarding.answer, CSVCell: Forwarding.problem,
	}
}

func forwardingColumns(out *command.Output, now time.Time) []command.Column[Forwarding] {
	styles := map[forwardingState]term.Style{sent: term.Good, dead: term.Bad, waiting: term.Caution}
	return []command.Column[Forwarding]{
		targetColumn(out),
		{
			Name: "STATE", Cell: func(j Forwarding) string { return j.words(now) },
			CSVCell: func(j Forwarding) string { return string(j.State) },
			Style:   func(j Forwarding) term.Style { return styles[j.State] },
		},
		{Name: "ATTEMPTS", Right: true, Rank: 2, Cell: Forwarding.attempts},
		{Name: "QUEUED", CSV: "queuedAt", Rank: 4, Time: Forwarding.queued},
		{Name: "ENDED", CSV: "-", Rank: 1, Time: Forwarding.ended},
		answerColumn(3),
	}
}

func pendingColumns(out *command.Output, now time.Time) []command.Column[Forwarding] {
	return []command.Column[Forwarding]{
		{Name: "DELIVERY", Right: true, Cell: func(j Forwarding) string { return fmt.Sprint(j.Delivery) }},
		targetColumn(out),
		{Name: "WAITS FOR", CSV: "-", Cell: func(j Forwarding) string { return j.words(now) }},
		{Name: "ATTEMPTS", Right: true, Rank: 2, Cell: Forwarding.attempts},
		answerColumn(1),
		{Name: "QUEUED", CSV: "queuedAt", Rank: 3, Time: Forwarding.queued},
		{
			Name: "SAME NUMBER", CSV: "heldByNumber", ID: true, Rank: 4,
			Cell: func(j Forwarding) string { return j.HeldByNumber },
		},
	}
}

func waitingEntries(ctx context.Context, db *app.Store, sinks []inbox.Sink, running []inbox.Listener) forwardings {
	return func(yield func(Forwarding, error) bool) {
		for _, sink := range sinks {
			if sink.Waiting == 0 {
				continue
			}
			for e, err := range db.Forwardings.WaitingEntries(ctx) {
				if err == nil && e.Sink != sink.ID {
					continue
				}
				if !yield(NewForwarding(e.Delivery, inbox.Forwarding{Sink: sink, Waiting: &e}, running), err) || err != nil {
					return
				}
			}
		}
	}
}

// noteUnread prints how many deliveries targets have not read yet, and reports whether there are any.
func noteUnread(c *command.Call, sinks []inbox.Sink, running []inbox.Listener) (found bool) {
	for _, k := range sinks {
		switch to, n := view.Sink(k), command.Plural(k.Unread, "delivery"); {
		case k.Unread == 0:
			continue
		case isSentTo(running, k.ID):
			c.IO.Note("%s: %s not queued yet", to, n)
		default:
			c.IO.Note("%s: %s not queued, since no listener forwards there now; start `waybill listen --forward-to URL`", to, n)
		}
		found = true
	}
	return found
}
