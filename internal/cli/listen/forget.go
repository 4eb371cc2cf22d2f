package listen

import (
	"context"
	"fmt"
	"slices"

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
	at := slices.IndexFunc(known, func(k inbox.Sink) bool { return k.SinkKey == t.Key() })
	if at < 0 {
		return &command.ExitError{
			Code: command.NotFound, Err: fmt.Errorf("no target %s is known", view.Sink(inbox.Sink{SinkKey: t.Key()})),
			Hint: "`waybill events list --pending` shows targets",
		}
	}
	found := &known[at]
	j := forgottenJSON{view.Target(*found), found.Filter, found.Waiting + found.Unread, found.Dead}
	c.IO.Note("%s: %s will not be forwarded, %s given up", view.Sink(*found), command.Plural(j.Waiting, "delivery"), command.Plural(j.GivenUp, "delivery"))
	if !o.Yes {
		if err := command.Confirm(ctx, c, "remove", "nothing was removed", "Forget "+view.Sink(*found)+"? This can't be undone."); err != nil {
			return err
		}
	}
	if err := db.Outbox.ForgetSink(ctx, found.ID); err != nil {
		return err
	}
	return c.Out.Result(j, "Forgot %s", view.Sink(*found))
}
