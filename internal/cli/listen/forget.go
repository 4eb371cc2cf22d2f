package listen

import (
	"context"
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// forgottenJSON is a target that was forgotten.
type forgottenJSON struct {
	Target  string `json:"target"` // without what may be a token
	Filter  string `json:"filter"`
	Waiting int64  `json:"waiting"` // deliveries that will not be forwarded, up to
	GivenUp int64  `json:"givenUp"` // that can't be replayed to it with --dead any more
}

// runForget removes a target and what waits for it, once the user has agreed.
func runForget(ctx context.Context, c *command.Call, o listenOptions) error {
	t, err := forward.ParseTarget(o.Forget)
	if err != nil {
		return command.Usagef("such as --forget-target 3000", "--forget-target %s: %w", command.Quoted(showTarget(o.Forget)), err)
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var known []inbox.Sink
	if db != nil {
		if known, err = db.Outbox.Sinks(ctx); err != nil {
			return err
		}
	}
	var found *inbox.Sink
	var others []string
	for _, k := range known {
		if k.SinkKey == t.Key() {
			found = &k
		}
		others = append(others, view.Sink(k))
	}
	if found == nil {
		hint := "no target is known"
		if len(others) > 0 {
			hint = "known targets: " + strings.Join(others, ", ")
		}
		return &command.ExitError{Code: command.NotFound, Err: fmt.Errorf("no target %s is known", view.Sink(inbox.Sink{SinkKey: t.Key()})), Hint: hint}
	}
	j := forgottenJSON{view.Target(*found), found.Filter, found.Waiting + found.Unread, found.Dead}
	c.IO.Note("%s: %s will not be forwarded, %s given up", view.Sink(*found), command.Plural(j.Waiting, "delivery"), command.Plural(j.GivenUp, "delivery"))
	if !o.Yes {
		if !c.IO.Interactive() {
			return command.Usagef("add --yes", "no terminal to confirm it")
		}
		yes, err := c.IO.Confirm(ctx, "Forget %s? This can't be undone.", view.Sink(*found))
		if err != nil || !yes {
			return err
		}
	}
	if err := db.Outbox.ForgetSink(ctx, found.ID); err != nil {
		return err
	}
	return c.Out.Result(j, "Forgot %s", view.Sink(*found))
}
