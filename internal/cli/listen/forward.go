package listen

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// Answers to deliveries, of --ack.
const (
	ackStored    = "stored"
	ackForwarded = "forwarded"
)

// untoldForwards is how many forwards wait to be printed; more are counted.
const untoldForwards = 1024

// How long a listener that ends waits for its targets.
const (
	lastAnswers  = time.Second     // for answers that senders wait for
	lastForwards = 5 * time.Second // for what is still to be sent, unless it was told to end
)

// forwardOptions is what the line of listen says of forwarding.
type forwardOptions struct {
	To, Headers                              []string
	Unverified, Skip, AllowTarget, ShowReply bool
	From, Ack                                string
}

func (o *forwardOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.To, "forward-to", nil, "forward verified deliveries to `[FILTER=>]URL`; may be repeated")
	events.TargetHeaderFlag(cmd, &o.Headers)
	f.BoolVar(&o.Unverified, "forward-unverified", false, "forward deliveries that did not verify too")
	f.StringVar(&o.From, "from", "", "begin forwarding at `WHERE`: a delivery's number, a time, an age, or beginning")
	f.BoolVar(&o.Skip, "skip-backlog", false, "forget what still waits for the targets")
	f.StringVar(&o.Ack, "ack", ackStored, "`WHEN` to answer a delivery: stored, or forwarded (with the status of the one target)")
	f.BoolVar(&o.ShowReply, "show-reply", false, "print the start of what targets answer")
	f.BoolVar(&o.AllowTarget, "allow-target", false, "forward to link-local addresses and metadata services too")
}

// targets returns the targets that the line names.
func (o forwardOptions) targets() ([]forward.Target, error) {
	var all []forward.Target
	for _, text := range o.To {
		t, err := forward.ParseTarget(text)
		if err != nil {
			return nil, command.Usagef("such as --forward-to 'event=router.delivered=>http://127.0.0.1:3000/hook'", "--forward-to: %w", err)
		}
		if t.Forbidden() && !o.AllowTarget {
			return nil, command.Usagef("add --allow-target if that is meant", "--forward-to %s is a link-local address or a metadata service", t.Show())
		}
		for _, other := range all {
			if other.Key() == t.Key() {
				return nil, command.Usagef("name it once", "--forward-to %s stands there twice", t.Show())
			}
		}
		all = append(all, t)
	}
	switch {
	case o.Ack != ackStored && o.Ack != ackForwarded:
		return nil, command.Usagef("use stored or forwarded", "--ack %q is neither", o.Ack)
	case o.Ack == ackForwarded && len(all) != 1:
		return nil, command.Usagef("name one --forward-to", "--ack forwarded gives the status of one target, and there are %d", len(all))
	case len(all) == 0 && (o.Unverified || o.Skip || o.AllowTarget || o.ShowReply || o.From != "" || len(o.Headers) > 0):
		return nil, command.Usagef("name one with --forward-to URL", "there is no target to forward to")
	case o.Skip && o.From != "":
		return nil, command.Usagef("leave one of them out", "--skip-backlog and --from contradict each other")
	}
	_, err := parseFrom(o.From)
	return all, err
}

// parseFrom reads where a sink begins; nil for where it stopped, or now.
func parseFrom(text string) (*inbox.StartPosition, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil is a place of its own
	}
	if text == "beginning" {
		return &inbox.StartPosition{}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return &inbox.StartPosition{Delivery: n}, nil
	}
	since, err := command.ParseSince("--from", text)
	if err != nil {
		return nil, command.Usagef("a delivery's number, a time such as 2026-11-20T08:00:00Z, an age such as 48h, or beginning", "--from %q is no place to begin", text)
	}
	return &inbox.StartPosition{Since: since}, nil
}

// forwarding is the forwarder of a listener; nil forwards nothing.
type forwarding struct {
	*forward.Forwarder
	client    *forward.Client
	out       *command.Output
	io        *term.IO
	showReply bool
	flags     string // that it takes to go on

	notices chan forward.AttemptReport
	mu      sync.Mutex
	missed  int // notices that were not printed
}

// openForwarding opens the sinks of all targets, and tells what waits for them.
// ctx ends when the listener is to end.
func openForwarding(ctx context.Context, c *command.Call, db *app.Store, receiver *listen.Receiver, o forwardOptions) (*forwarding, error) {
	targets, err := o.targets()
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	if err := events.AddTargetHeaders(c, o.Headers, targets); err != nil {
		return nil, err
	}
	from, err := parseFrom(o.From)
	if err != nil {
		return nil, err
	}
	withhold, err := c.SecretMatcher()
	if err != nil {
		return nil, err
	}
	client, err := events.NewForwardClient(c.Session, o.AllowTarget)
	if err != nil {
		return nil, err
	}
	fw := &forwarding{client: client, out: c.Out, io: c.IO, showReply: o.ShowReply, flags: "--forward-to", notices: make(chan forward.AttemptReport, untoldForwards)}
	if o.Unverified {
		fw.flags += " and --forward-unverified"
	}
	if len(o.Headers) > 0 {
		fw.flags += " and --target-header"
	}
	fw.Forwarder, err = forward.Open(ctx, forward.Options{
		Outbox: db.Outbox, Inbox: db.Inbox, Client: client, Targets: targets, From: from, Unverified: o.Unverified, Withhold: withhold,
		Answers: o.Ack == ackForwarded, OnAttempt: fw.tell,
		OnStoreError: func(what string, err error) { c.IO.Warning("%s: %v", what, err) },
	})
	if err != nil {
		return nil, err
	}
	receiver.AnswerWith(func(asked context.Context, delivery int64) int {
		if o.Ack == ackForwarded {
			asked, cancel := context.WithCancel(asked)
			defer cancel()
			defer context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswers, cancel) })()
			return fw.Answer(asked, delivery)
		}
		fw.Wake()
		return 200
	})
	warnForwarding(c.Session, targets, o.Unverified)
	if err := fw.backlog(ctx, db.Outbox, o.Skip); err != nil {
		return nil, err
	}
	return fw, nil
}

// warnForwarding says what is odd about forwarding as it is set up.
func warnForwarding(s *app.Session, targets []forward.Target, unverified bool) {
	if w := s.Config.Webhook; !unverified && (w.Scheme == "" || w.Verify == "off") {
		s.IO.WarningWith(term.Failure{
			Message: "nothing will be forwarded: no delivery can be verified without a signature scheme",
			Hint:    "set webhook.scheme (`waybill signature learn` finds it), or add --forward-unverified",
		})
	}
	events.WarnUnencrypted(s.IO, targets)
}

// backlog tells what waits for targets that were known before, or drops it.
func (fw *forwarding) backlog(ctx context.Context, outbox inbox.Outbox, skip bool) error {
	for _, k := range fw.Sinks() {
		to := view.Sink(k)
		if k.New && k.Unread == 0 {
			continue
		}
		if skip {
			dropped, err := outbox.SkipBacklog(ctx, k.ID)
			if err != nil {
				return err
			}
			fw.io.Note("%s: forgot %s", to, backlog(dropped, "", k.Unread))
			continue
		}
		if k.Waiting+k.Unread > 0 {
			since := ""
			if !k.Oldest.IsZero() {
				since = " (the oldest since " + render.LocalTime(k.Oldest) + ")"
			}
			fw.io.Note("%s: begins with %s; --skip-backlog forgets them", to, backlog(k.Waiting, since, k.Unread))
		}
		if k.Dead > 0 {
			fw.io.Note("%s: %s given up; see `waybill events list --dead`", to, command.Plural(k.Dead, "delivery"))
		}
	}
	return nil
}

// backlog is what waits for a target, in words.
func backlog(waiting int64, since string, behind int64) string {
	switch {
	case behind == 0:
		return command.Plural(waiting, "delivery") + " still to be sent" + since
	case waiting == 0:
		return command.Plural(behind, "delivery") + " not looked at yet"
	default:
		return fmt.Sprintf("%s still to be sent%s and %d not looked at yet", command.Plural(waiting, "delivery"), since, behind)
	}
}

// drain waits until everything was sent, or ctx ends, or for a few seconds.
func (fw *forwarding) drain(ctx context.Context) {
	if fw == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastForwards)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if left, err := fw.waiting(ctx); err != nil || len(left) == 0 {
			return // an error is reported at the end, if it is still there
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}

// waiting returns the sinks that something waits for.
func (fw *forwarding) waiting(ctx context.Context) ([]inbox.Sink, error) {
	left, err := fw.CurrentSinks(ctx)
	return slices.DeleteFunc(left, func(k inbox.Sink) bool { return k.Waiting+k.Unread == 0 }), err
}

// printRemaining says what was not forwarded when the listener has ended.
func (fw *forwarding) printRemaining(ctx context.Context) error {
	if fw == nil {
		return nil
	}
	left, err := fw.waiting(context.WithoutCancel(ctx))
	for _, k := range left {
		fw.io.Note("%s: %s to be sent; `waybill listen` with the same %s goes on", view.Sink(k), command.Plural(k.Waiting+k.Unread, "delivery"), fw.flags)
	}
	return err
}

// tell keeps a notice to be printed. It never blocks: forwarding goes on
// whatever the reader of the output does.
func (fw *forwarding) tell(n forward.AttemptReport) {
	select {
	case fw.notices <- n:
	default:
		fw.mu.Lock()
		fw.missed++
		fw.mu.Unlock()
	}
}

// run forwards, and prints what came of it, until ctx ends; requests under way
// end at once when hard does. printing is held while something is printed.
func (fw *forwarding) run(ctx, hard context.Context, printing sync.Locker) error {
	if fw == nil {
		return nil
	}
	defer fw.client.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(fw.notices)
		return fw.Run(ctx, hard)
	})
	g.Go(func() error {
		var failed error
		for n := range fw.notices {
			if failed == nil {
				printing.Lock()
				failed = fw.print(n)
				printing.Unlock()
			}
		}
		return failed
	})
	return g.Wait()
}

// forwardJSON is a try to forward a delivery, in our output.
type forwardJSON struct {
	Type           string            `json:"type"`   // forward
	Target         string            `json:"target"` // without what may be a token
	Filter         string            `json:"filter"`
	Delivery       int64             `json:"delivery"`
	Attempt        int               `json:"attempt"`
	Outcome        inbox.Disposition `json:"outcome"` // sent, retry or dead
	Status         int               `json:"status"`  // 0 if no answer came
	ElapsedSeconds float64           `json:"elapsedSeconds"`
	Problem        string            `json:"problem,omitempty"`
	NextAttemptAt  *time.Time        `json:"nextAttemptAt,omitempty"`
	FailingSince   *time.Time        `json:"failingSince"`            // of the target; null if it is fine
	FailedSeconds  float64           `json:"failedSeconds,omitempty"` // how long the target had failed before this
	Reply          *string           `json:"reply,omitempty"`
}

func (fw *forwarding) print(n forward.AttemptReport) error {
	fw.mu.Lock()
	missed := fw.missed
	fw.missed = 0
	fw.mu.Unlock()
	if missed > 0 {
		fw.io.Warning("%d forwards before this one were not printed", missed)
	}
	if !fw.out.Machine() {
		return fw.line(n)
	}
	j := forwardJSON{
		Type: "forward", Target: n.Target.Show(), Filter: n.Target.Filter.String(), Delivery: n.Delivery, Attempt: n.Attempt, Outcome: n.Disposition,
		Status: n.Status, ElapsedSeconds: n.Elapsed.Round(time.Millisecond).Seconds(), Problem: n.Problem,
		NextAttemptAt: view.TimeOrNull(n.Due), FailingSince: view.TimeOrNull(n.FailingSince), FailedSeconds: n.FailedFor.Round(time.Millisecond).Seconds(),
	}
	if fw.showReply {
		reply := string(n.Reply)
		j.Reply = &reply
	}
	return fw.out.Object(j)
}

// line prints a try for people.
func (fw *forwarding) line(n forward.AttemptReport) error {
	what, style, how := "forwarded", term.Good, fmt.Sprintf("%d in %v", n.Status, n.Elapsed.Round(time.Millisecond))
	if n.FailedFor > 0 {
		how += fmt.Sprintf(", fine again after %v", n.FailedFor.Round(time.Second))
	}
	switch n.Disposition {
	case inbox.Retry:
		what, style = "not forwarded", term.Caution
		how = fmt.Sprintf("%s, again at %s; the target fails since %s", n.Problem, view.Clock(n.Due), view.Clock(n.FailingSince))
	case inbox.GivenUp:
		what, style = "given up", term.Bad
		how = n.Problem + "; see `waybill events list --dead`"
	case inbox.Sent, inbox.Returned:
	}
	err := fw.out.Line("%s  %s  delivery %d, attempt %d, to %s: %s", view.Clock(time.Now()), fw.out.Out().Style(style, what), n.Delivery, n.Attempt, n.Target.Show(), how)
	if err == nil && fw.showReply && len(n.Reply) > 0 {
		err = fw.out.Line("          %s", term.Visible(string(n.Reply)))
	}
	return err
}
