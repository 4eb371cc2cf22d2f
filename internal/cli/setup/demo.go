package setup

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

//go:embed demo/orders.csv
var demoOrders []byte

const (
	demoKey        = "demo-key"
	demoSecret     = "demo-webhook-secret" //nolint:gosec // of the demo's own sandbox, known to all
	demoProcessing = 1200 * time.Millisecond
	demoFile       = "orders.csv"
	demoTracking   = "DEMO-1006" // the order in two parcels
	demoEvents     = 6           // shown of those received
	demoPatience   = 10 * time.Second
)

// demoConfig is the configuration the demo runs with; %s is the sandbox's URL.
const demoConfig = `base_url: %s
webhook:
  scheme: demo
  secrets: [env:WAYBILL_WEBHOOK_SECRET]
  schemes:
    demo:
      kind: hmac
      algorithm: sha256
      signature: {from: "header:X-Signature", encoding: hex}
`

// demoResult is what the demo did, for scripts.
type demoResult struct {
	Sandbox  string `json:"sandbox"`
	Listener string `json:"listener"`
	Accepted int64  `json:"accepted"`
	Events   int    `json:"events"`
	Refused  int    `json:"refused"`
}

type demoOptions struct{ Keep bool }

// NewDemo returns the command that shows the program at work.
func NewDemo(f *command.Factory) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: command.GroupRest,
		Short:   "See the whole job on this computer, no account needed",
		Long: `demo starts a miniature of the service and a webhook receiver on this computer,
creates trackings from a CSV file, waits for them, shows them, receives signed
events and refuses a forged one. It reads none of your settings and leaves
nothing behind.`,
		Example: command.Example("waybill demo", "waybill demo --keep"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Started = true
			return runDemo(f, cmd, o)
		},
	}
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave both servers running until Ctrl-C")
	return cmd
}

// demonstration is one run of the demo.
type demonstration struct {
	f      *command.Factory
	out    *command.Output
	folder string
	env    []string
	box    *sandbox.Server
	result demoResult

	mu       sync.Mutex
	events   []view.Event  // that the listener printed
	received chan struct{} // something was printed
}

func runDemo(f *command.Factory, cmd *cobra.Command, o demoOptions) (err error) {
	ctx := cmd.Context()
	d := &demonstration{f: f, received: make(chan struct{}, 1)}
	if d.out, err = f.Output(cmd); err != nil {
		return err
	}
	defer d.out.Discard()
	if d.folder, err = os.MkdirTemp("", "waybill-demo-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.folder)) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended, err := d.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, ended())
	}()
	if err := d.steps(ctx); err != nil {
		return interruptedDemo(cmd.Context(), err)
	}
	if err := d.finish(); err != nil || !o.Keep {
		return err
	}
	d.say("Both servers are running; press Ctrl-C to end.")
	<-ctx.Done()
	return nil
}

// interruptedDemo returns the signal that ended the demo, else err.
func interruptedDemo(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); command.As[*command.SignalError](cause) {
		return cause
	}
	return err
}

// start starts the listener and the sandbox, and returns what waits for their
// end after ctx.
func (d *demonstration) start(ctx context.Context) (ended func() error, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.result.Sandbox = command.ServerURL(l.Addr().String(), "")
	d.env = []string{"WAYBILL_API_KEY=" + demoKey, "WAYBILL_WEBHOOK_SECRET=" + demoSecret}
	err = errors.Join(
		os.WriteFile(filepath.Join(d.folder, "config.yaml"), fmt.Appendf(nil, demoConfig, d.result.Sandbox), 0o600),
		os.WriteFile(filepath.Join(d.folder, demoFile), demoOrders, 0o600))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	listening := make(chan error, 1)
	go func() { listening <- d.listen(ctx) }()
	if err := d.waitReady(ctx, listening); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	preset, _ := webhook.PresetByName("hmac-body-hex")
	preset.Scheme.Signature.From = "header:X-Signature"
	d.box, err = sandbox.New(sandbox.Config{ //nolint:contextcheck // it ends with Close
		Key: demoKey, Processing: demoProcessing, Seed: 7,
		WebhookURL: d.result.Listener, WebhookSecret: demoSecret, WebhookScheme: preset.Scheme,
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	serving := make(chan error, 1)
	go func() { serving <- serveSandbox(ctx, d.box, l) }()
	return func() error { return errors.Join(<-serving, <-listening) }, nil
}

// command runs one command line of waybill as the demo's user.
func (d *demonstration) command(ctx context.Context, io *term.IO, words ...string) error {
	a := &app.App{
		IO:     io,
		Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: d.env, WorkDir: d.folder, Home: d.folder}
		},
	}
	words = append(words, "--config", filepath.Join(d.folder, "config.yaml"), "--store", filepath.Join(d.folder, "waybill.db"))
	if code := d.f.Exec(ctx, a, words); code != command.OK {
		return fmt.Errorf("the demo's own `waybill %s` ended with status %d", strings.Join(words[:1], " "), code)
	}
	return nil
}

// listen runs the listener; what it prints is kept.
func (d *demonstration) listen(ctx context.Context) error {
	io := term.New(strings.NewReader(""), lineWriter(d.receive), d.f.App.IO.Err, term.Facts{})
	return d.command(ctx, io, "listen", "--addr", "127.0.0.1:0", "-o", "jsonl")
}

// lineWriter is called with whole lines.
type lineWriter func(line []byte)

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		w(line)
	}
	return len(p), nil
}

// receive takes one line of the listener.
func (d *demonstration) receive(line []byte) {
	var e view.Event
	var ready command.Ready
	if json.Unmarshal(line, &e) != nil {
		return
	}
	d.mu.Lock()
	switch e.Type {
	case "ready":
		if json.Unmarshal(line, &ready) == nil {
			d.result.Listener = ready.URL
		}
	case "refused":
		d.result.Refused++
	default:
		d.events = append(d.events, e)
	}
	d.mu.Unlock()
	select {
	case d.received <- struct{}{}:
	default:
	}
}

// until waits for enough output of the listener.
func (d *demonstration) until(ctx context.Context, what string, enough func() bool) error {
	limit := time.NewTimer(demoPatience)
	defer limit.Stop()
	for {
		d.mu.Lock()
		ok := enough()
		d.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-d.received:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("the demo waited in vain for %s", what)
		}
	}
}

func (d *demonstration) waitReady(ctx context.Context, listening chan error) error {
	err := d.until(ctx, "the listener", func() bool { return d.result.Listener != "" })
	if err == nil {
		return nil
	}
	select {
	case e := <-listening:
		return errors.Join(e, err)
	default:
		return err
	}
}

// steps runs the main job, step by step.
func (d *demonstration) steps(ctx context.Context) error {
	d.say("# A miniature of the service runs at %s,", d.result.Sandbox)
	d.say("# a receiver of its webhooks at %s.", d.result.Listener)
	d.say("# A file of 24 orders by seven carriers is created. One order has two")
	d.say("# parcels, and one row stands in the file twice.")
	for _, words := range [][]string{
		{"create", demoFile, "--wait"},
		{"list"},
		{"show", demoTracking},
	} {
		if err := d.step(ctx, words...); err != nil {
			return err
		}
	}
	d.result.Accepted = d.box.Stats().Distinct
	d.say("# Four weeks pass in the sandbox: all is delivered, signed events arrive.")
	d.box.Advance(28 * 24 * time.Hour)
	all := int(d.result.Accepted)
	err := d.until(ctx, "the events", func() bool { return delivered(d.events) >= all })
	if err != nil {
		return err
	}
	if err := d.printEvents(); err != nil {
		return err
	}
	d.say("# Somebody sends a forged delivery.")
	if err := d.box.Emit(sandbox.Emission{ReferID: demoTracking, Event: "router.delivered", Forge: true}); err != nil {
		return err
	}
	if err := d.until(ctx, "the forged delivery", func() bool { return d.result.Refused > 0 }); err != nil {
		return err
	}
	d.say("refused with 401: signature_mismatch. It is kept as evidence, no more.")
	return nil
}

func delivered(events []view.Event) int {
	n := 0
	for _, e := range events {
		if e.Event == "router.delivered" {
			n++
		}
	}
	return n
}

// step shows a command as it would be typed, and runs it.
func (d *demonstration) step(ctx context.Context, words ...string) error {
	d.say("\n$ %s", shell.Line(append([]string{"waybill"}, words...)...))
	io := d.f.App.IO
	if d.out.Machine() {
		io = term.New(strings.NewReader(""), discard{}, discard{}, term.Facts{})
	}
	for i, w := range words {
		if w == demoFile {
			words[i] = filepath.Join(d.folder, demoFile)
		}
	}
	err := d.command(ctx, io, words...)
	if e := d.f.App.IO.Configure(term.Options{Color: "auto", JSON: d.out.Machine()}); e != nil {
		return errors.Join(err, e)
	}
	d.say("")
	return err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// printEvents prints the last events in the listener's own form.
func (d *demonstration) printEvents() error {
	d.mu.Lock()
	events := d.events
	d.result.Events = len(events)
	d.mu.Unlock()
	if d.out.Machine() {
		return nil
	}
	if more := len(events) - demoEvents; more > 0 {
		d.say("(%d events, the last %d of them:)", len(events), demoEvents)
		events = events[more:]
	}
	rows := d.out.Table(render.Column{Name: "NUMBER", ID: true}, render.Column{Name: "LATEST EVENT", Flex: true, From: 80},
		render.Column{Name: "EVENT", Flex: true}, render.Column{Name: "VERIFIED"})
	for _, e := range events {
		if err := rows.Row(e.TrackingNumber, e.LatestEvent, e.Event, string(e.Verified)); err != nil {
			return err
		}
	}
	return rows.Flush()
}

// say prints a line for people.
func (d *demonstration) say(format string, args ...any) {
	if !d.out.Machine() {
		_ = d.out.Line(format, args...) // the next result fails likewise
	}
}

// finish prints what to try next, or the result as JSON.
func (d *demonstration) finish() error {
	if d.out.Machine() {
		return d.out.End(d.out.Object(d.result))
	}
	d.say("\n# Try it yourself:")
	d.say("#   waybill sandbox          the service in miniature, until Ctrl-C")
	d.say("# and in another terminal:")
	d.say("#   export WAYBILL_BASE_URL=http://127.0.0.1:8640")
	d.say("#   export WAYBILL_API_KEY=any")
	d.say("#   waybill create YOUR.csv --dry-run")
	d.say("#   waybill --help")
	return d.out.End(nil)
}
