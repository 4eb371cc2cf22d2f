package listen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
)

// drainTime is the maximum time that an ending listener waits for its targets, unless it was interrupted.
const drainTime = 5 * time.Second

// forwarding is the forwarder of a listener. It may have no target.
type forwarding struct {
	*forward.Forwarder

	client   *forward.Client
	targets  []forward.Target // with their headers
	io       *term.IO
	attempts *attemptPrinter
	flags    string // flags with which a later listener continues
	skipped  bool   // the backlog was skipped
}

// openForwarding opens the sinks of all targets. ctx ends when the listener should end.
func (s *server) openForwarding(
	ctx context.Context, targets []forward.Target, o forwardOptions,
) (fw *forwarding, err error) {
	c, db := s.call, s.db
	attempts := &attemptPrinter{out: c.Out, io: c.IO, queue: make(chan forward.AttemptReport, maxQueued)}
	fw = &forwarding{targets: targets, io: c.IO, attempts: attempts, flags: "--forward-to"}
	if len(targets) == 0 {
		fw.client = forward.NewClient(forward.ClientOptions{})
		fw.Forwarder, err = forward.Open(ctx, forward.Options{})
		return fw, err
	}
	if err := events.AddTargetHeaders(c, o.Headers, targets); err != nil {
		return nil, err
	}
	withhold, err := c.SecretMatcher()
	if err != nil {
		return nil, err
	}
	if fw.client, err = events.NewForwardClient(c.Session, events.TargetPolicy{Allow: o.AllowTarget}); err != nil {
		return nil, err
	}
	if o.Unverified {
		fw.flags += " and --forward-unverified"
	}
	if len(o.Headers) > 0 {
		fw.flags += " and --target-header"
	}
	fw.Forwarder, err = forward.Open(ctx, forward.Options{
		Outbox: db.Outbox, Claims: db.Claims, Inbox: db.Inbox, Client: fw.client, Targets: targets, From: o.start,
		Unverified: o.Unverified, Withhold: withhold,
		OnAttempt: attempts.enqueue, OnStoreError: s.warnings.warn,
	})
	if err != nil {
		return nil, err
	}
	o.warn(c.Session, targets)
	if o.Skip {
		err = fw.skipBacklog(ctx, db.Outbox)
		fw.skipped = true
	}
	return fw, err
}

func (o forwardOptions) warn(s *app.Session, targets []forward.Target) {
	if w := s.Config.Webhook; !o.Unverified && w.Scheme == "" && w.Verify != "off" {
		s.IO.WarningWith(term.Failure{
			Message: "nothing is forwarded: without a signature scheme no delivery can be verified",
			Hint:    "run `waybill signature learn` to find the scheme, or add --forward-unverified",
		})
	}
	events.WarnUnencrypted(s.IO, targets)
}

// knownSinks returns the sinks that existed before or start in the past.
func (fw *forwarding) knownSinks() []inbox.Sink {
	return slices.DeleteFunc(fw.Sinks(), func(sink inbox.Sink) bool { return sink.New && sink.Unread == 0 })
}

// sent returns the number of deliveries that this listener forwarded; nil if it has no target.
func (fw *forwarding) sent() *int64 {
	if len(fw.targets) == 0 {
		return nil
	}
	return new(fw.attempts.sent.Load())
}

func (fw *forwarding) skipBacklog(ctx context.Context, outbox inbox.Outbox) error {
	for _, sink := range fw.knownSinks() {
		dropped, err := outbox.SkipBacklog(ctx, sink.ID)
		if err != nil {
			return err
		}
		fw.io.Note("%s: dropped %s", view.Sink(sink), command.Plural(dropped+sink.Unread, "older delivery"))
	}
	return nil
}

func (fw *forwarding) printBacklog(ctx context.Context) error {
	if fw.skipped {
		return nil
	}
	for _, sink := range fw.knownSinks() {
		unread, exact, err := fw.CountUnread(ctx, sink)
		if err != nil {
			return err
		}
		upTo := "up to "
		if exact {
			upTo = ""
		}
		if n := sink.Waiting + unread; n > 0 {
			fw.io.Note("%s: %s%s will be forwarded first; --skip-backlog drops them", view.Sink(sink), upTo,
				command.Plural(n, "older delivery"))
		}
		if sink.Dead > 0 {
			fw.io.Note("%s: %s given up; `waybill events list --dead` shows them", view.Sink(sink),
				command.Plural(sink.Dead, "delivery"))
		}
	}
	return nil
}

// drain waits until everything is sent, ctx ends, or drainTime is over.
func (fw *forwarding) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for {
		left, err := fw.sinksWithBacklog(ctx)
		if err != nil || len(left) == 0 || pace.Sleep(ctx, 20*time.Millisecond) != nil {
			return // a lasting error is reported at the end
		}
	}
}

func (fw *forwarding) sinksWithBacklog(ctx context.Context) ([]inbox.Sink, error) {
	if len(fw.targets) == 0 {
		return nil, nil
	}
	left, err := fw.CurrentSinks(ctx)
	return slices.DeleteFunc(left, func(k inbox.Sink) bool { return k.Waiting+k.Unread == 0 }), err
}

func (fw *forwarding) printRemaining(ctx context.Context) error {
	left, err := fw.sinksWithBacklog(context.WithoutCancel(ctx))
	for _, sink := range left {
		fw.io.Note("%s: %s to be sent; `waybill listen` with the same %s sends them", view.Sink(sink),
			command.Plural(sink.Waiting+sink.Unread, "delivery"), fw.flags)
	}
	return err
}

// run forwards, and prints each attempt, until ctx ends. Requests under way are cancelled when hard ends. It holds
// printing while it prints.
func (fw *forwarding) run(ctx, hard context.Context, printing sync.Locker) error {
	defer fw.client.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(fw.attempts.queue)
		return fw.Run(ctx, hard)
	})
	g.Go(func() error { return fw.attempts.run(printing) })
	return g.Wait()
}

type forwardOptions struct {
	To, Headers                   []string
	Unverified, Skip, AllowTarget bool
	From                          string

	start *inbox.StartPosition // parsed from From by targets
}

func (o *forwardOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.To, "forward-to", nil,
		"forward verified deliveries to `[FILTER=>]URL`, or a port of this computer; may be repeated")
	events.TargetHeaderFlag(cmd, &o.Headers)
	events.ForwardUnverifiedFlag(cmd, &o.Unverified)
	f.StringVar(&o.From, "from", "", "begin forwarding at `WHERE`: a delivery's number, a time, an age, or beginning")
	f.BoolVar(&o.Skip, "skip-backlog", false, "drop deliveries that are not forwarded yet")
	events.AllowTargetFlag(cmd, &o.AllowTarget)
	command.Section(f, "Forwarding", "forward-to", "target-header", "forward-unverified", "from", "skip-backlog",
		"allow-target")
}

// targets returns the targets without their headers, and parses where they start.
func (o *forwardOptions) targets() (all []forward.Target, err error) {
	for _, text := range o.To {
		t, err := forward.ParseTarget(text)
		if err != nil {
			return nil, command.Usagef("such as --forward-to 3000 or --forward-to "+
				"'event=router.delivered=>https://app.test/hook'", "--forward-to %s: %w", command.Quoted(showTarget(text)), err)
		}
		if all, err = (events.TargetPolicy{Allow: o.AllowTarget}).AddTarget(all, t, "forward-to"); err != nil {
			return nil, err
		}
	}
	switch {
	case len(all) == 0 && (o.Unverified || o.Skip || o.AllowTarget || o.From != "" || len(o.Headers) > 0):
		return nil, command.Usagef("add --forward-to URL", "there is no target to forward to")
	case o.Skip && o.From != "":
		return nil, command.Usagef("leave one of them out", "--skip-backlog and --from exclude each other")
	}
	o.start, err = parseFrom(o.From)
	return all, err
}

// withholds reports whether deliveries that did not verify are kept from targets.
func (o *forwardOptions) withholds() bool { return len(o.To) > 0 && !o.Unverified }

// showTarget returns a value of --forward-to with possible tokens masked.
func showTarget(text string) string {
	if filter, address, ok := strings.Cut(text, "=>"); ok {
		return filter + "=>" + forward.ShowAddress(address)
	}
	return forward.ShowAddress(text)
}

// parseFrom parses where a sink starts; nil means where it stopped, or now for a new sink.
func parseFrom(text string) (*inbox.StartPosition, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil is a position of its own
	}
	if text == "beginning" {
		return &inbox.StartPosition{}, nil
	}
	if n, _, ok := replay.ParseNumber(text); ok && n > 0 {
		return &inbox.StartPosition{Delivery: n}, nil
	}
	since, err := command.ParseSince("--from", text)
	if err != nil {
		return nil, command.Usagef("a delivery's number, a time such as 2026-11-20T08:00:00Z, an age such as 48h, "+
			"or beginning", "--from %q is not a place to start", text)
	}
	return &inbox.StartPosition{Since: since}, nil
}

type forgottenJSON struct {
	Target  string `json:"target"` // without what may be a token
	Filter  string `json:"filter"`
	Waiting int64  `json:"waiting"` // deliveries that will not be forwarded, up to
	GivenUp int64  `json:"givenUp"` // that can't be replayed to it with --dead any more
}

func runForget(ctx context.Context, c *command.Call, o listenOptions) error {
	t, err := forward.ParseTarget(o.Forget)
	if err != nil {
		shown := command.Quoted(showTarget(o.Forget))
		return command.Usagef("such as --forget-target 3000", "--forget-target %s: %w", shown, err)
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
	c.IO.Note("%s: %s will not be forwarded, %s given up", view.Sink(*found), command.Plural(j.Waiting, "delivery"),
		command.Plural(j.GivenUp, "delivery"))
	if !o.Yes {
		question := "Forget " + view.Sink(*found) + "? This can't be undone."
		if err := command.Confirm(ctx, c, "remove", "nothing was removed", question); err != nil {
			return err
		}
	}
	if err := db.Outbox.ForgetSink(ctx, found.ID); err != nil {
		return err
	}
	return c.Out.Result(j, "Forgot %s", view.Sink(*found))
}
