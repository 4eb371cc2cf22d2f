package events

import (
	"context"
	"fmt"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
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

// runListDead lists dead entries, oldest first.
func runListDead(ctx context.Context, c *command.Call, o listOptions) error {
	if o.Kind != "" || o.Number != "" || o.ReferID != "" || o.Filter != "" || o.Verified != "" || o.All {
		return command.Usagef("only --since and --limit narrow it", "--dead lists deliveries, not events")
	}
	q, err := o.query()
	if err != nil {
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	sinks := map[int64]inbox.Sink{}
	w := command.Listing[inbox.OutboxEntry]{
		Out: c.Out, Empty: "nothing was given up", Columns: deadColumns(sinks),
		JSON: func(l inbox.OutboxEntry) any { return newDeadJSON(l, sinks[l.Sink]) },
	}
	if db == nil {
		return w.Print(c.IO, nil)
	}
	all, err := db.Outbox.Sinks(ctx)
	if err != nil {
		return err
	}
	for _, k := range all {
		sinks[k.ID] = k
	}
	found := false
	err = w.Print(c.IO, command.Filter(db.Outbox.DeadEntries(ctx), func(l inbox.OutboxEntry) bool {
		if l.GivenUpAt.Before(q.Since) {
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
