package listen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/listen"
)

func New(f *command.Factory) *cobra.Command {
	var o listenOptions
	cmd := &cobra.Command{
		Use:     "listen",
		GroupID: command.GroupHook,
		Short:   "Receive webhook deliveries on this computer",
		Long: `listen takes deliveries on any path, verifies them if a signature scheme is
configured, stores them whole, and only then answers. Each event is printed once.
Without a scheme everything is kept and marked unknown. With one, what does not
verify is kept and marked while webhook.verify is observe, and answered 401 and
kept as evidence when it is enforce. The first Ctrl-C lets what has arrived be
stored and ends with status 0; so does --timeout or WAYBILL_TIMEOUT, but no timeout
in a file.

--forward-to passes verified deliveries on to an application, byte for byte.
FILTER is KEY=VALUE[,KEY=VALUE], and all must hold for one of the new events: KEY
is event, status, statusTrack, number or a JSON pointer such as
/data/summary/statusLabel; a * may end VALUE. A new target gets what arrives from
now on, a known one what it missed. What fails is tried again for a day or 20
times; deliveries about the same tracking number arrive in order. --target-header
sends a target a header of its own, its value read once at the start.`,
		Example: command.Example("waybill listen", "waybill listen --addr 127.0.0.1:0 --ready-file url.txt", "waybill listen --exit-after 1 --timeout 5m -o jsonl",
			"waybill listen --forward-to 'event=router.delivered=>http://127.0.0.1:3000/hook'"),
		Args: cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			if c.Out.IsCSV() {
				return command.Usagef("use -o jsonl", "what listen tells is no table, so it can't be CSV")
			}
			if o.ExitAfter < 0 {
				return command.Usagef("use 0 for never", "--exit-after %d is negative", o.ExitAfter)
			}
			return runListen(ctx, c, o)
		}),
	}
	command.SettingFlags(cmd, "addr", "max-body", "max-unverified")
	cmd.Flags().StringVar(&o.ReadyFile, "ready-file", "", "write the URL to `FILE` once connections are accepted")
	cmd.Flags().Int64Var(&o.ExitAfter, "exit-after", 0, "end after `N` new events; with --timeout, status 8 if there were fewer")
	o.Forward.flags(cmd)
	return cmd
}

type listenOptions struct {
	ReadyFile string
	ExitAfter int64 // new events; 0 for never
	Forward   forwardOptions
}

// runListen receives until ctx ends, or its time, or there is enough.
func runListen(ctx context.Context, c *command.Call, o listenOptions) error {
	if _, err := o.Forward.targets(); err != nil {
		return err
	}
	db, err := c.Store(ctx)
	if err != nil {
		return err
	}
	receiver, err := newReceiver(c.Session, db)
	if err != nil {
		return err
	}
	counts, err := db.Inbox.Counts(ctx)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Config.Listen.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Config.Listen.Addr, err)
	}
	warnOpen(c, l.Addr())
	w := c.Config.Webhook
	if err := noteScheme(c.Session); err != nil {
		return errors.Join(err, l.Close())
	}
	told := ctx
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	if limit := c.Config.Timeout; limit > 0 && c.Config.Origin("timeout").Level >= config.FromEnv {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, command.ErrTimeUp)
		defer stop()
	}
	fw, err := openForwarding(ctx, c, db, receiver, o.Forward)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	var printing sync.Mutex
	p := &eventPrinter{out: c.Out, io: c.IO, names: view.NewStatusNames(c.Config.Statuses), hide: c.SecretMasker(), observe: w.Scheme != "" && w.Verify == "observe", enough: enough, after: o.ExitAfter, last: counts.Deliveries, place: math.MaxInt}
	arrivals := receiver.Subscribe()
	follow, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	g, serving := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer stopFollowing() // reads to the end first
		err := receiver.Serve(serving, l)
		if err == nil && errors.Is(context.Cause(ctx), context.Canceled) { // there are enough events
			fw.finish(told)
		}
		return err
	})
	g.Go(func() error {
		return receiver.Follow(follow, counts.LastEvent, func(n listen.Notification) error {
			printing.Lock()
			defer printing.Unlock()
			return p.print(n)
		})
	})
	g.Go(func() error { return fw.run(follow, c.Hard(context.WithoutCancel(ctx)), &printing) })
	g.Go(func() error {
		db.Sink().Run(follow, arrivals, func(err error) { c.IO.Warning("what events tell is not taken in for now: %v", err) })
		return nil
	})
	if err := c.AnnounceReady(ctx, "listen", command.ServerURL(l.Addr().String(), ""), o.ReadyFile); err != nil {
		stopFollowing()
		return errors.Join(err, l.Close(), g.Wait())
	}
	if err := errors.Join(g.Wait(), p.end(), fw.end(ctx)); err != nil {
		return err
	}
	if p.sum.Events < o.ExitAfter && errors.Is(context.Cause(ctx), command.ErrTimeUp) {
		return fmt.Errorf("%w: %d of %s came", command.ErrTimeUp, p.sum.Events, command.Plural(o.ExitAfter, "new event"))
	}
	return nil
}

// noteScheme says what verifying does not do as it is set up.
func noteScheme(s *app.Session) error {
	w := s.Config.Webhook
	switch {
	case w.Scheme == "":
		s.IO.Note("no signature scheme is configured: everything is kept and marked unknown")
		return nil
	case w.Verify == "off":
		s.IO.Warning("signatures are not verified, as webhook.verify is off: everything is kept and marked unknown")
		return nil
	}
	scheme, err := s.Scheme(w.Scheme)
	if err == nil {
		signature.WarnUncovered(s, scheme)
	}
	return err
}

// warnOpen warns when deliveries can come from other computers and anything
// they bring is kept.
func warnOpen(c *command.Call, addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && c.Config.Webhook.Verify != "enforce" {
		c.IO.Warning("listening on %s, which other computers can reach, and keeping whatever arrives: set webhook.verify: enforce", addr.String())
	}
}
