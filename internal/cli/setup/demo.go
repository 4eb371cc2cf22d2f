package setup

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
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
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
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
	demoProcessing = 2 * time.Second
	demoFile       = "orders.csv"
	demoTracking   = "DEMO-1006"      // the order in two parcels
	demoEvents     = 6                // shown of those received
	demoPatience   = 30 * time.Second // a busy machine takes seconds for what it shows
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

// demoResult is what the demo did, for scripts. All of it is counted where it
// happened: in the store, and by those who received it.
type demoResult struct {
	Sandbox   string `json:"sandbox"`
	Listener  string `json:"listener"`
	Accepted  int    `json:"accepted"`  // trackings
	Processed int    `json:"processed"` // of them, those with a status
	Delivered int    `json:"delivered"` // of them
	Events    int    `json:"events"`    // received
	Verified  int    `json:"verified"`  // of the events
	Forwarded int    `json:"forwarded"` // of the events: the demo's application got them
	Refused   int    `json:"refused"`   // deliveries
}

type demoOptions struct{ Keep bool }

// NewDemo returns the command that shows the program at work.
func NewDemo(f *command.Factory) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: command.GroupRest,
		Short:   "Try waybill on this computer, without an account",
		Long: `demo starts a sandbox of the service and a webhook receiver on this computer,
creates trackings from a CSV file, waits until processing has finished, shows one,
receives signed events, forwards them to an application, and refuses a forged
one. It prints the totals at the end. It does not use your settings, and removes
its files when it ends.`,
		Example: command.Example("waybill demo", "waybill demo --keep"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Started = true
			return runDemo(f, cmd, o)
		},
	}
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "keep both servers running until Ctrl-C")
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
	defer func() { err = errors.Join(err, disk.RemoveAll(d.folder)) }()
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

// start starts an application, the listener and the sandbox, and returns what
// waits for their end after ctx.
func (d *demonstration) start(ctx context.Context) (ended func() error, err error) {
	var lc net.ListenConfig
	application, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	receiving := make(chan error, 1)
	go func() {
		receiving <- serveUntil(ctx, application, http.HandlerFunc(d.takeForwarded), func() error { return nil })
	}()
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.result.Sandbox = command.ServerURL(l.Addr().String(), "")
	// Configuration and store are where they are by default, below the folder, so that
	// what the demo shows is what a user types.
	d.env = []string{"WAYBILL_API_KEY=" + demoKey, "WAYBILL_WEBHOOK_SECRET=" + demoSecret, "XDG_CONFIG_HOME=" + d.folder, "XDG_DATA_HOME=" + d.folder}
	err = errors.Join(
		os.Mkdir(filepath.Join(d.folder, "waybill"), 0o700),
		os.WriteFile(filepath.Join(d.folder, "waybill", "config.yaml"), fmt.Appendf(nil, demoConfig, d.result.Sandbox), 0o600),
		os.WriteFile(filepath.Join(d.folder, demoFile), demoOrders, 0o600))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	listening := make(chan error, 1)
	go func() { listening <- d.listen(ctx, command.ServerURL(application.Addr().String(), "")) }()
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
	go func() { serving <- serveUntil(ctx, l, d.box, d.box.Close) }()
	return func() error { return errors.Join(<-serving, <-listening, <-receiving) }, nil
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
	if code := d.f.Exec(ctx, a, words); code != command.OK {
		return fmt.Errorf("the demo's own `waybill %s` ended with status %d", strings.Join(words[:1], " "), code)
	}
	return nil
}

// listen runs the listener, which forwards to the application; what it prints is
// kept.
func (d *demonstration) listen(ctx context.Context, application string) error {
	io := term.New(strings.NewReader(""), lineWriter(d.receive), d.f.App.IO.Err, term.Facts{})
	return d.command(ctx, io, "listen", "--addr", "127.0.0.1:0", "-o", "jsonl", "-q", "--forward-to", application)
}

// takeForwarded is the application that verified events are forwarded to.
func (d *demonstration) takeForwarded(w http.ResponseWriter, r *http.Request) {
	var events []json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
		http.Error(w, "not a list of events", http.StatusBadRequest)
		return
	}
	d.count(func() { d.result.Forwarded += len(events) })
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
	d.count(func() {
		switch e.Type {
		case "ready":
			if json.Unmarshal(line, &ready) == nil {
				d.result.Listener = ready.URL
			}
		case "refused":
			d.result.Refused++
		case "forward":
		default:
			d.events = append(d.events, e)
			d.result.Events++
			if e.Verified == inbox.Yes {
				d.result.Verified++
			}
		}
	})
}

// count changes what was received, and wakes who waits for it.
func (d *demonstration) count(change func()) {
	d.mu.Lock()
	change()
	d.mu.Unlock()
	select {
	case d.received <- struct{}{}:
	default:
	}
}

// until waits for enough output of the listener, as long as there is some now and then.
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
			limit.Reset(demoPatience)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return fmt.Errorf("the demo timed out waiting for %s", what)
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
	d.say("# A sandbox of the service runs at %s,", d.result.Sandbox)
	d.say("# and a receiver of its webhooks at %s.", d.result.Listener)
	d.say("# Create 24 orders from a file. One order has two parcels, and one row")
	d.say("# appears twice.")
	for _, words := range [][]string{{"create", demoFile}, {"show", demoTracking}} {
		if err := d.step(ctx, words...); err != nil {
			return err
		}
	}
	if err := d.waitOut(ctx); err != nil {
		return err
	}
	d.say("# Four weeks pass in the sandbox: everything is delivered, and signed")
	d.say("# events arrive and are forwarded to an application.")
	d.box.Advance(28 * 24 * time.Hour)
	err := d.until(ctx, "the events", func() bool {
		return delivered(d.events) >= d.result.Accepted && d.result.Forwarded >= d.result.Verified
	})
	if err != nil {
		return err
	}
	if err := d.printEvents(); err != nil {
		return err
	}
	if err := d.step(ctx, "show", demoTracking); err != nil {
		return err
	}
	d.say("# A forged delivery arrives.")
	if err := d.box.Emit(sandbox.Emission{ReferID: demoTracking, Event: "router.delivered", Forge: true}); err != nil {
		return err
	}
	if err := d.until(ctx, "the forged delivery", func() bool { return d.result.Refused > 0 }); err != nil {
		return err
	}
	d.say("Refused with 401: signature_mismatch. It is kept, but changes nothing.")
	return d.countTrackings(ctx)
}

// waitOut shows how Processing is waited out.
func (d *demonstration) waitOut(ctx context.Context) error {
	if err := d.countTrackings(ctx); err != nil {
		return err
	}
	d.say("# The service is still processing: %d of %d trackings have a status.", d.result.Processed, d.result.Accepted)
	began := time.Now()
	if err := d.step(ctx, "wait", "--run", "1"); err != nil {
		return err
	}
	if err := d.countTrackings(ctx); err != nil {
		return err
	}
	d.say("# After %.1f s: %d of %d.\n", time.Since(began).Seconds(), d.result.Processed, d.result.Accepted)
	return nil
}

// countTrackings counts what the store knows of trackings.
func (d *demonstration) countTrackings(ctx context.Context) error {
	var out bytes.Buffer
	if err := d.command(ctx, term.New(strings.NewReader(""), &out, discard{}, term.Facts{}), "list", "-o", "json"); err != nil {
		return err
	}
	var all []view.TrackingStatus
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return fmt.Errorf("read the demo's own list: %w", err)
	}
	d.result.Accepted, d.result.Processed, d.result.Delivered = 0, 0, 0
	for _, t := range all {
		d.result.Accepted += one(t.State == ledger.Accepted)
		d.result.Processed += one(t.Phase == ledger.Processed)
		d.result.Delivered += one(t.StatusTrack == "delivered")
	}
	return nil
}

func one(counts bool) int {
	if counts {
		return 1
	}
	return 0
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
	d.mu.Unlock()
	if d.out.Machine() {
		return nil
	}
	if more := len(events) - demoEvents; more > 0 {
		d.say("(%d events, the last %d:)", len(events), demoEvents)
		events = events[more:]
	}
	rows := d.out.Table(render.Column{Name: "NUMBER", ID: true}, render.Column{Name: "LATEST EVENT", Flex: true, Rank: 1},
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
	r := d.result
	d.say("\n# Total: %s created, %d processed, %d delivered;", command.Plural(r.Accepted, "tracking"), r.Processed, r.Delivered)
	d.say("# %s received, %d verified, %d forwarded; %s refused.", command.Plural(r.Events, "event"), r.Verified, r.Forwarded, command.Plural(r.Refused, "forged delivery"))
	d.say("\n# Try it:")
	d.say("#   waybill sandbox          a sandbox of the service, until Ctrl-C")
	d.say("# In another terminal:")
	d.say("#   %s", shell.Export("WAYBILL_BASE_URL", "http://127.0.0.1:8640"))
	d.say("#   %s", shell.Export("WAYBILL_API_KEY", "any"))
	d.say("#   waybill create YOUR.csv --dry-run")
	d.say("# With an account of the service:")
	d.say("#   waybill init             asks for its address and your API key")
	d.say("#   waybill --help")
	return d.out.End(nil)
}
