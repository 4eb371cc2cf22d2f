package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/term"
)

func (r *runner) listen() *cobra.Command {
	var readyFile string
	cmd := &cobra.Command{
		Use:     "listen",
		GroupID: groupHook,
		Short:   "Receive webhook deliveries on this computer",
		Long: `listen takes deliveries on any path, verifies them if a signature scheme is
configured, stores them whole, and only then answers. Each event is printed once.
Without a scheme everything is kept and marked unknown; with one, what does not
verify is answered 401 and kept as evidence.`,
		Example: example("waybill listen", "waybill listen --addr 127.0.0.1:0 --ready-file url.txt", "waybill listen -o jsonl"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			return r.runListen(ctx, s, readyFile)
		}),
	}
	settingFlags(cmd, "addr", "max-body")
	cmd.Flags().StringVar(&readyFile, "ready-file", "", "write the URL to `FILE` once connections are accepted")
	return cmd
}

// runListen receives until ctx ends.
func (r *runner) runListen(ctx context.Context, s *app.Session, readyFile string) error {
	db, err := s.Store(ctx)
	if err != nil {
		return err
	}
	receiver, err := s.Receiver(db)
	if err != nil {
		return err
	}
	counts, err := db.Counts(ctx)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.Config.Listen.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.Config.Listen.Addr, err)
	}
	r.warnOpen(s, l.Addr())
	if s.Config.Webhook.Scheme == "" {
		s.IO.Note("no signature scheme is configured: everything is kept and marked unknown")
	}
	p := &eventPrinter{out: r.out, io: s.IO, names: newNames(s.Config.Statuses)}
	follow, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	g, serving := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer stopFollowing() // reads to the end first
		return receiver.Serve(serving, l)
	})
	g.Go(func() error { return receiver.Follow(follow, counts.LastEvent, p.print) })
	if err := r.announceReady("listen", serverURL(l.Addr().String(), ""), readyFile); err != nil {
		stopFollowing()
		return errors.Join(err, l.Close(), g.Wait())
	}
	return g.Wait()
}

// warnOpen warns when deliveries can come from other computers and anything
// they bring is kept.
func (r *runner) warnOpen(s *app.Session, addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && s.Config.Webhook.Verify != "enforce" {
		s.IO.Warning("listening on %s, which other computers can reach, and keeping whatever arrives: set webhook.verify: enforce", addr.String())
	}
}

// eventPrinter prints what was received, one line each.
type eventPrinter struct {
	out   *result
	io    *term.IO
	names names
}

func (p *eventPrinter) print(n listen.Notice) error {
	if n.Missed > 0 {
		p.io.Warning("%d more refusals were not printed", n.Missed)
	}
	if p.out.machine() {
		if n.Type == listen.Refused {
			return p.out.object(refusedJSON(n.Refused))
		}
		j := newEventJSON(n.Event)
		j.Type = string(n.Type)
		return p.out.object(j)
	}
	if n.Type == listen.Refused {
		d := n.Refused
		return p.out.line("%s  %s  %s from %s", clock(d.ReceivedAt), p.out.Out().Style(term.Bad, "refused"), d.Reason, d.RemoteAddr)
	}
	return p.event(n)
}

// event prints one event: time, kind, number, status, latest event, mark.
func (p *eventPrinter) event(n listen.Notice) error {
	e := n.Event
	kind := e.Kind
	if n.Type != listen.Event {
		kind = string(n.Type) + " " + kind
	}
	style := term.Caution
	if e.Verified == inbox.Yes {
		style = term.Good
	}
	return p.out.line("%s  %-28s  %-24s  %-18s  %s  %s", clock(e.ReceivedAt), term.Visible(kind), term.Visible(e.TrackingNumber),
		term.Visible(p.names.status(e.Status, e.StatusLabel, e.StatusTrack)), e.LatestEvent, p.out.Out().Style(style, "verified: "+verifiedMark(e)))
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// refusedJSON is a refused delivery in the form of events.
func refusedJSON(d inbox.Delivery) eventJSON {
	return eventJSON{
		Type: string(listen.Refused), Status: literal(""), Data: literal(""),
		Verified: inbox.No, Reason: d.Reason, ReceivedAt: d.ReceivedAt.UTC(),
	}
}
