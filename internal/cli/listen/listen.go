// Package listen has the command that receives webhook deliveries, prints their events and forwards them.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/inspect"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/store"
)

// heapSlack is the size of an unused allocation that makes the garbage collector run less often: collecting took a
// quarter of a listener's time. The allocation is never touched and so takes no memory.
const heapSlack = 32 << 20 // bytes

type listenOptions struct {
	ReadyFile string
	ExitAfter int64  // new events; 0 for never
	Unsigned  bool   // with webhook.verify off, accept deliveries of other computers too
	Forget    string // target to forget instead of listening
	Yes       bool   // do not ask
	Forward   forwardOptions
	UI        uiOptions
}

// New returns the command listen.
func New(f *command.Factory) *cobra.Command {
	var o listenOptions
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhook deliveries on this computer",
		Long: `listen receives deliveries on any path, verifies them if a signature scheme is
configured, stores them, and only then answers. Each event is printed once, with the
number that other commands take: 12, or 12.2 for the second event of delivery 12;
refused:3 is a refused delivery.

Without a scheme, all deliveries are kept and marked unknown. With a scheme,
deliveries that do not verify are kept and marked if webhook.verify is observe, and answered 401 and
kept separately if it is enforce. webhook.verify off is for an endpoint without a
secret: deliveries count as they come, marked unsigned; from other computers only
with --allow-unsigned. Ctrl-C stores the deliveries that have arrived and
exits with 0; so does --timeout or WAYBILL_TIMEOUT. A timeout in the configuration
file is ignored.

--forward-to forwards verified deliveries to an application, byte for byte. A
target is a URL or a port of this computer: 3000, :3000/hook, localhost:3000. FILTER
is KEY=VALUE[,KEY=VALUE]; one of the new events must match all of them. KEY is event,
status, statusTrack, number or a JSON pointer such as /data/summary/statusLabel;
VALUE may end with a *. A new target gets deliveries from now on, a known one also
those it missed. Failed attempts are repeated for a day or 20 times; deliveries about
the same tracking number are sent in order. --target-header adds a header for a
target; its value is read once at the start. --forget-target removes a target that is
not used any more, and what waits for it, and ends.

--ui also serves a live page of what arrives, at an address of its own that only this
computer reaches, and prints its URL. See ` + "`waybill inspect --help`" + `.`,
		Example: command.Example("waybill listen", "waybill listen --addr 127.0.0.1:0 --ready-file url.txt",
			"waybill listen --exit-after 1 --timeout 5m -o jsonl", "waybill listen --forward-to 3000",
			"waybill listen --forward-to 'event=router.delivered=>http://127.0.0.1:3000/hook'",
			"waybill listen --ui --forward-to 3000"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			if o.Forget != "" {
				return runForget(ctx, c, o)
			}
			return runListen(ctx, c, o)
		}),
	}
	command.SettingFlags(cmd, "addr", "max-body", "max-unverified")
	command.ReadyFileFlag(cmd.Flags(), &o.ReadyFile)
	cmd.Flags().Int64Var(&o.ExitAfter, "exit-after", 0,
		"end after `N` new events; with --timeout, status 8 if there were fewer")
	cmd.Flags().BoolVar(&o.Unsigned, "allow-unsigned", false,
		"take deliveries of other computers too while webhook.verify is off")
	o.Forward.flags(cmd)
	cmd.Flags().StringVar(&o.Forget, "forget-target", "", "forget target `[FILTER=>]URL` and what waits for it, and end")
	command.YesFlag(cmd.Flags(), &o.Yes)
	o.UI.flags(cmd)
	return cmd
}

func (o *listenOptions) check(c *command.Call) error {
	switch {
	case c.Out.IsCSV():
		return command.Usagef("use -o jsonl", "listen does not support %s", strings.ToUpper(string(c.Out.Format())))
	case o.ExitAfter < 0:
		return command.Usagef("use 0 for never", "--exit-after %d is negative", o.ExitAfter)
	}
	for _, name := range []string{"ui-addr", "ui-token-file", "ui-file"} {
		if !o.UI.On && c.Cmd.Flags().Changed(name) {
			return command.Usagef("add --ui", "--%s is of use with --ui only", name)
		}
	}
	return nil
}

func runListen(ctx context.Context, c *command.Call, o listenOptions) error {
	if err := o.check(c); err != nil {
		return err
	}
	targets, err := o.Forward.targets()
	if err != nil {
		return err
	}
	db, err := c.Store(ctx)
	if err != nil {
		return err
	}
	until, end := context.WithCancelCause(ctx)
	defer end(nil)
	warnings := &storeWarnings{io: c.IO, end: end}
	receiver, err := newReceiver(c.Session, db, warnings, o.Forward)
	if err != nil {
		return err
	}
	counts, err := db.Inbox.Counts(ctx)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Config.Listen.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Config.Listen.Addr, err)
	}
	if err = checkExposed(c, l.Addr(), o); err == nil {
		err = warnScheme(c.Session)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s := &server{
		call: c, db: db, receiver: receiver, warnings: warnings, end: end,
		url: listenerURL(l.Addr()), mode: c.Config.Webhook.Verify,
		printer: newEventPrinter(c, counts, o, func() { end(nil) }),
	}
	if s.forwarding, err = s.openForwarding(until, targets, o.Forward); err == nil {
		receiver.OnStored(s.forwarding.Wake)
		err = s.warnOthers(ctx)
	}
	if err == nil && o.UI.On {
		s.page, err = inspect.Open(ctx, o.UI.Place, inspect.Options{
			Call: c, Targets: targets, AllowTarget: o.Forward.AllowTarget, Listener: s.url, Arrivals: receiver.Subscribe(),
		})
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	err = s.serve(ctx, until, l, counts.LastEvent, o)
	cause := context.Cause(until)
	if lost, ok := errors.AsType[*store.Error](cause); ok {
		return errors.Join(lost, err)
	}
	if n := s.printer.summary.Events; err == nil && n < o.ExitAfter && errors.Is(cause, command.ErrTimeUp) {
		err = fmt.Errorf("%w: %d of %s received", command.ErrTimeUp, n, command.Plural(o.ExitAfter, "new event"))
	}
	return err
}

type server struct {
	call       *command.Call
	db         *app.Store
	receiver   *listen.Receiver
	forwarding *forwarding
	page       *inspect.Page // nil for none
	printer    *eventPrinter
	warnings   *storeWarnings
	end        context.CancelCauseFunc // ends serve
	url        string                  // to which deliveries are sent
	mode       string                  // webhook.verify in force
	identity   string                  // of the store
	verify     atomic.Value            // string: how it verifies, see [app.Session.VerifyPrint]
	printing   sync.Mutex              // held while a goroutine of serve prints
}

// serve receives until the context until ends or the time limit, counted from the announcement, is over. After enough
// events it waits for the targets until ctx ends. It prints events after lastEvent.
func (s *server) serve(ctx, until context.Context, l net.Listener, lastEvent int64, o listenOptions) error {
	defer runtime.KeepAlive(make([]byte, heapSlack))
	arrivals, offers := s.receiver.Subscribe(), s.receiver.Subscribe()
	follow, stopFollowing := context.WithCancel(context.WithoutCancel(until))
	g, serving := errgroup.WithContext(until)
	g.Go(func() error {
		defer stopFollowing() // reads to the end first
		err := s.receiver.Serve(serving, l)
		if err == nil && errors.Is(context.Cause(until), context.Canceled) { // enough events
			s.forwarding.drain(ctx)
		}
		return err
	})
	g.Go(func() error {
		return s.receiver.Follow(follow, lastEvent, func(n listen.Notification) error {
			s.printing.Lock()
			defer s.printing.Unlock()
			return s.printer.print(n)
		})
	})
	g.Go(func() error {
		return s.forwarding.run(follow, s.call.Hard(context.WithoutCancel(until)), &s.printing)
	})
	background := func(run func()) {
		g.Go(func() error {
			run()
			return nil
		})
	}
	warn := func(err error) { s.warnings.warn("events do not update trackings for now", err) }
	background(func() { s.db.Follower().Run(follow, arrivals, warn) })
	if err := s.register(ctx); err != nil {
		s.warnings.warn("other commands can't find this listener", err)
	}
	background(func() { s.stayRegistered(serving) })
	background(func() { s.wakeOnChanges(follow) })
	background(func() { s.followSettings(serving) })
	background(func() { s.offerScheme(serving, offers) })
	if s.page != nil {
		background(func() {
			if err := s.page.Run(serving); err != nil {
				s.call.IO.Warning("the inspector stopped: %v; deliveries are still received; "+
					"restart `waybill listen` to have the page again", err)
			}
		})
	}
	url := "http://" + shownAddr(s.call.Config.Listen.Addr, l.Addr())
	if err := s.announce(ctx, url, o); err != nil {
		g.Go(func() error { return err }) // ends the other goroutines
		return g.Wait()
	}
	if limit := s.call.Config.Timeout; limit > 0 && s.call.Config.Origin("timeout").Level >= config.FromEnv {
		defer time.AfterFunc(limit, func() { s.end(command.ErrTimeUp) }).Stop()
	}
	return errors.Join(g.Wait(), s.printer.printSummary(s.receiver.Stored(), s.forwarding.sent()),
		s.forwarding.printRemaining(until))
}

func listenerURL(addr net.Addr) string {
	here := "127.0.0.1:0"
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.To4() == nil {
		here = "[::1]:0"
	}
	return "http://" + shownAddr(here, addr)
}

func warnScheme(s *app.Session) error {
	w := s.Config.Webhook
	switch {
	case w.Verify == "off":
		s.IO.Warning("webhook.verify is off: nothing is verified, and whatever arrives changes trackings and is forwarded")
		return nil
	case w.Scheme == "":
		return nil
	}
	scheme, err := s.Scheme(w.Scheme)
	if err == nil {
		signature.WarnUncovered(s, scheme)
	}
	return err
}

// checkExposed warns if other computers can reach addr. With webhook.verify off, that takes --allow-unsigned.
func checkExposed(c *command.Call, addr net.Addr, o listenOptions) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return nil
	}
	shown, verify := shownAddr(c.Config.Listen.Addr, addr), c.Config.Webhook.Verify
	switch {
	case verify == "off" && !o.Unsigned:
		return command.Usagef("listen on 127.0.0.1, or set webhook.verify: enforce; "+
			"--allow-unsigned takes deliveries from anybody",
			"other computers can reach %s, and webhook.verify is off: anybody could change trackings", shown)
	case verify == "enforce":
		c.IO.Warning("listening on %s, which other computers can reach", shown)
	default:
		c.IO.Warning("listening on %s, which other computers can reach, and keeping whatever arrives: "+
			"set webhook.verify: enforce", shown)
	}
	return nil
}

// shownAddr returns the address for deliveries, with the host of --addr.
func shownAddr(asked string, addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	host, _, err := net.SplitHostPort(asked)
	if !ok || !tcp.IP.IsUnspecified() || err != nil || host == "" {
		return addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// newReceiver returns a receiver that verifies as the settings say. It returns the errors of [app.Session.Verifier].
func newReceiver(
	s *app.Session, opened *app.Store, warnings *storeWarnings, forwarding forwardOptions,
) (*listen.Receiver, error) {
	o, err := verification(s)
	if err != nil {
		return nil, err
	}
	o.Store, o.MaxBody, o.Withholds = opened.Inbox, int64(s.Config.Listen.MaxBody), forwarding.withholds()
	o.Unverified = &listen.UnverifiedLimit{
		MaxBytes: int64(s.Config.Listen.MaxUnverified), CountBytes: opened.Retention.UnverifiedBytes,
	}
	o.Probe = func(ctx context.Context) error {
		err := opened.DB.Probe(ctx)
		if command.As[*store.Error](err) {
			warnings.warn("", err)
		}
		return err
	}
	o.Report = warnings.report
	return listen.New(o), nil
}

// verification returns the options for verifying by the settings. It returns the errors of [app.Session.Verifier].
func verification(s *app.Session) (o listen.Options, err error) {
	w := s.Config.Webhook
	verifier, err := s.Verifier()
	switch {
	case err != nil:
		return o, err
	case verifier != nil:
		o.Verify, o.Scheme, o.Enforce = verifier.Verify, w.Scheme, w.Verify == "enforce"
	case w.Verify == "off":
		o.Unverifiable = inbox.Unsigned
	case w.Verify == "enforce":
		return o, s.Config.Refuse("webhook.verify", "enforce needs a scheme to verify with",
			"set webhook.scheme, or webhook.verify: observe")
	}
	return o, nil
}

type uiOptions struct {
	On    bool
	Place inspect.Place
	File  string // file for the page's URL
}

func (o *uiOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.On, "ui", false, "show what arrives as a live page in a browser, and print its URL")
	o.Place.Flags(cmd)
	cmd.Flags().StringVar(&o.File, "ui-file", "", "write the page's URL to `FILE`, and print it without its token")
	command.Section(cmd.Flags(), "Page", "ui", "ui-addr", "ui-token-file", "ui-file")
}
