package setup

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

type sandboxOptions struct {
	sandbox.Config

	Addr, ReadyFile, KeyFile        string
	Processing, Latency, BodyLimit  string
	Faults                          []string
	WebhookSecretFile, WebhookNamed string
}

const sandboxKeyVariable = "WAYBILL_SANDBOX_KEY"

// NewSandbox returns the command sandbox.
func NewSandbox(f *command.Factory) *cobra.Command {
	var o sandboxOptions
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a sandbox of the service on this computer",
		Long: `sandbox serves the three operations of the service on this computer, for tests
and trials. It keeps created trackings, moves shipments along realistic journeys,
sends signed webhooks, and simulates failures. Details that the interface leaves
open are flags.

Control it while it runs: GET /_sandbox/stats, and POST /_sandbox/advance
{"by":"48h"}, /_sandbox/emit {"referId":"A"}, /_sandbox/reset, /_sandbox/faults
{"name":"502-after","count":1,"operation":"createV2"}. After this line its clock, and
the times of its checkpoints, are two days ahead of this computer's:

    curl http://127.0.0.1:8640/_sandbox/advance -d '{"by":"48h"}'`,
		Example: command.Example("waybill sandbox", "waybill sandbox --addr 127.0.0.1:0 --ready-file url.txt",
			"waybill sandbox --fault 502-after=0.05 --latency 50ms",
			"waybill sandbox --webhook-url http://127.0.0.1:8377 --webhook-secret-file whsec"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runSandbox(ctx, c, o) }),
	}
	o.flags(cmd)
	return cmd
}

func (o *sandboxOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Addr, "addr", "127.0.0.1:8640", "`ADDRESS` to listen on; port 0 uses a free port")
	command.ReadyFileFlag(f, &o.ReadyFile)
	f.StringVar(&o.KeyFile, "key-file", "",
		"accept only the API key in `FILE` (or "+sandboxKeyVariable+"); default: any key")
	f.StringVar(&o.Processing, "processing", "2s", "`DURATION` that a tracking created through v2 is Processing")
	f.StringVar(&o.Latency, "latency", "0s", "wait `DURATION` before every response")
	f.Uint64Var(&o.Seed, "seed", 1, "seed `N` of journeys and faults")
	command.Choice(f, &o.CreateShape, "create-shape", "message", "`SHAPE` of responses to creates", "empty", "message",
		"items")
	command.Choice(f, &o.Absent, "absent", "404", "`ANSWER` for trackings that do not exist", "404", "message", "empty")
	f.StringVar(&o.NumberParam, "number-param", "trackingNumber", "query `PARAMETER` of a tracking number, or ignored")
	f.StringVar(&o.Reject, "reject", "", "refuse rows whose referId or number matches this `REGEX`")
	f.StringVar(&o.BodyLimit, "max-body", "8MiB", "answer 413 to a create request larger than `SIZE`")
	f.StringArrayVar(&o.Faults, "fault", nil,
		"cause fault NAME with probability P (`NAME=P`); may be repeated: "+strings.Join(sandbox.Faults(), ", "))
	f.StringVar(&o.WebhookURL, "webhook-url", "", "send events to this `URL` on this computer")
	f.StringVar(&o.WebhookSecretFile, "webhook-secret-file", "", "sign deliveries with the secret in `FILE`")
	f.StringVar(&o.WebhookNamed, "webhook-scheme", "hmac-body-hex",
		"sign with scheme `NAME`: a preset, or one of webhook.schemes")
	command.Section(f, "Answers", "create-shape", "absent", "number-param", "max-body")
	command.Section(f, command.FaultsSection, "reject", "fault")
	command.Section(f, "Webhooks", "webhook-url", "webhook-secret-file", "webhook-scheme")
}

func (o sandboxOptions) config(s *app.Session, environment func(string) string) (sandbox.Config, error) {
	c := o.Config
	var err error
	if c.Processing, err = config.ParseDuration(o.Processing); err != nil {
		return c, command.Usagef("such as 2s or 1m", "--processing: %w", err)
	}
	if c.Latency, err = config.ParseDuration(o.Latency); err != nil {
		return c, command.Usagef("such as 50ms", "--latency: %w", err)
	}
	size, err := config.ParseSize(o.BodyLimit)
	if err != nil {
		return c, command.Usagef("such as 64KiB", "--max-body: %w", err)
	}
	if size == 0 {
		return c, command.Usagef("such as 64KiB", "--max-body must be at least 1B")
	}
	c.MaxBody = int64(size)
	if c.Faults, err = parseFaults(o.Faults); err != nil {
		return c, err
	}
	c.Key = environment(sandboxKeyVariable)
	if o.KeyFile != "" {
		if c.Key, err = secretFile("--key-file", o.KeyFile); err != nil {
			return c, err
		}
	}
	if o.WebhookSecretFile == "" {
		return c, nil
	}
	if c.WebhookSecret, err = secretFile("--webhook-secret-file", o.WebhookSecretFile); err != nil {
		return c, err
	}
	c.WebhookScheme, err = s.Scheme(o.WebhookNamed)
	return c, err
}

func parseFaults(list []string) (map[string]float64, error) {
	faults := map[string]float64{}
	for _, f := range list {
		name, p, ok := strings.Cut(f, "=")
		chance, err := strconv.ParseFloat(p, 64)
		if !ok || err != nil {
			return nil, command.Usagef("such as --fault 502-after=0.05", "--fault %q is not NAME=PROBABILITY", f)
		}
		faults[name] = chance
	}
	return faults, nil
}

func secretFile(flag, path string) (string, error) {
	secret, err := config.ReadSecretFile(path, nil)
	if err != nil {
		return "", command.Usagef(command.HintOf(err), "%s: %w", flag, err)
	}
	return secret.Reveal(), nil
}

func runSandbox(ctx context.Context, call *command.Call, o sandboxOptions) error {
	c, err := o.config(call.Session, call.Getenv)
	if err != nil {
		return err
	}
	c.WebhookTrouble = func(err error) {
		call.IO.Warning("deliveries to %s fail and are retried (shown once): %v", c.WebhookURL, err)
	}
	box, err := sandbox.New(c) //nolint:contextcheck // it ends with Close
	if wrong, ok := errors.AsType[*sandbox.ConfigError](err); ok {
		return command.Usagef("run `waybill sandbox --help` for the valid values", "--%s: %s", wrong.Setting, wrong.Problem)
	}
	if err != nil {
		return err
	}
	if want := config.HostPort(o.Addr); want != "" {
		return errors.Join(command.Usagef("such as --addr 127.0.0.1:0", "--addr: must be %s, not %q", want, o.Addr),
			box.Close())
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return errors.Join(fmt.Errorf("listen on %s: %w", o.Addr, err), box.Close())
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		call.IO.Warning("other computers can reach the sandbox on %s", l.Addr().String())
	}
	g, serving := errgroup.WithContext(ctx)
	g.Go(func() error { return serveUntil(serving, l, box, box.Close) })
	url := "http://" + l.Addr().String()
	show := func() error {
		call.IO.Note("sandbox ready: %s", url)
		return nil
	}
	if err := call.AnnounceReady(ctx, url, o.ReadyFile, show); err != nil {
		g.Go(func() error { return err }) // ends the other server
	}
	return g.Wait()
}

func serveUntil(ctx context.Context, l net.Listener, handler http.Handler, end func() error) error {
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return errors.Join(err, end())
	case <-ctx.Done():
	}
	err := errors.Join(end(), srv.Close())
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

//go:embed demo/orders.csv
var demoOrders []byte

//go:embed demo/script.txt
var demoScript string // texts and commands of the demo

// NewDemo returns the command demo.
func NewDemo(f *command.Factory) *cobra.Command {
	d := &demonstration{f: f}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try waybill on this computer, without an account",
		Long: `demo starts a sandbox of the service and a webhook receiver on this computer, and
runs the commands that it prints: it creates trackings from a CSV file, waits until
processing has finished, shows one, receives signed events, forwards them to an
application, and refuses a forged one. It does not use your settings, and removes
its files when it ends.`,
		Example: command.Example("waybill demo", "waybill demo --keep"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Started = true
			return d.run(cmd)
		},
	}
	cmd.Flags().BoolVar(&d.keep, "keep", false, "keep both servers running until Ctrl-C")
	return cmd
}

type demonstration struct {
	f                    *command.Factory
	keep                 bool // keep both servers running until a signal
	out                  *command.Output
	folder               string
	env                  []string     // the user's environment
	forwarded, delivered atomic.Int64 // events that the demo's application received
}

func (d *demonstration) run(cmd *cobra.Command) (err error) {
	if d.out, err = d.f.Output(cmd); err != nil {
		return err
	}
	defer d.out.Discard()
	if d.out.Machine() {
		return command.Usagef("run it without --output", "demo prints for people")
	}
	if d.folder, err = os.MkdirTemp("", "waybill-demo-*"); err != nil {
		return &disk.TempError{Err: err}
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(d.folder)) }()
	ctx, stop := context.WithCancel(cmd.Context())
	servers, ctx := errgroup.WithContext(ctx)
	err = d.steps(ctx, servers)
	if err == nil && d.keep {
		d.say("Both servers are running; press Ctrl-C to end.")
		<-ctx.Done()
	}
	stop()
	served := servers.Wait() // a failing server ends the steps
	if cause := context.Cause(cmd.Context()); err != nil && command.As[*command.SignalError](cause) {
		return cause
	}
	return d.out.End(cmp.Or(served, err))
}

func (d *demonstration) start(ctx context.Context, servers *errgroup.Group) error {
	application, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	takes := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.forwarded.Add(int64(bytes.Count(body, []byte(`"eventId"`))))
		d.delivered.Add(int64(bytes.Count(body, []byte(`"router.delivered"`))))
	})
	servers.Go(func() error { return serveUntil(ctx, application, takes, func() error { return nil }) })
	d.env = []string{
		"XDG_CONFIG_HOME=" + d.folder, "XDG_DATA_HOME=" + d.folder, "WAYBILL_API_KEY=demo-key",
		"WAYBILL_WEBHOOK_SECRET=demo-webhook-secret", "WAYBILL_WEBHOOK_SCHEME=hmac-body-hex",
	}
	secret := filepath.Join(d.folder, "webhook.secret")
	if err := os.WriteFile(secret, []byte("demo-webhook-secret"), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.folder, "orders.csv"), demoOrders, 0o600); err != nil {
		return err
	}
	listener, err := d.serve(ctx, servers, "listen", "--forward-to", "http://"+application.Addr().String())
	if err != nil {
		return err
	}
	service, err := d.serve(ctx, servers,
		"sandbox", "--seed", "7", "--webhook-url", listener, "--webhook-secret-file", secret)
	d.env = append(d.env, "WAYBILL_BASE_URL="+service)
	d.say("# A sandbox of the service runs at %s,\n# and a receiver of its webhooks at %s.", service, listener)
	return err
}

func (d *demonstration) serve(ctx context.Context, servers *errgroup.Group, words ...string) (url string, err error) {
	ready := filepath.Join(d.folder, words[0]+".url")
	streams := term.New(strings.NewReader(""), io.Discard, d.f.App.IO.Err, term.Facts{})
	words = append(words, "--addr", "127.0.0.1:0", "--ready-file", ready, "-q")
	env := d.env
	servers.Go(func() error { return d.command(ctx, streams, env, words...) })
	err = d.until(ctx, "`waybill "+words[0]+"`", func() bool {
		text, _ := os.ReadFile(ready)
		url = strings.TrimSpace(string(text))
		return url != ""
	})
	return url, err
}

func (d *demonstration) command(ctx context.Context, streams *term.IO, env []string, words ...string) error {
	a := &app.App{
		IO:      streams,
		Getenv:  func(string) string { return "" },
		Keyring: d.f.App.Keyring,
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: env, WorkDir: d.folder, Home: d.folder}
		},
	}
	if code := d.f.Exec(ctx, a, words); code != command.OK {
		return fmt.Errorf("the demo's own `waybill %s` ended with status %d", words[0], code)
	}
	return nil
}

func (d *demonstration) until(ctx context.Context, what string, done func() bool) error {
	const patience = 30 * time.Second // a busy machine takes seconds for the events
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the demo timed out waiting for "+what))
	defer cancel()
	for !done() {
		if err := pace.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (d *demonstration) steps(ctx context.Context, servers *errgroup.Group) error {
	if err := d.start(ctx, servers); err != nil {
		return err
	}
	for line := range strings.Lines(demoScript) {
		typed, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ waybill ")
		if !isCommand {
			d.say("%s", strings.TrimSpace(line))
			continue
		}
		d.say("\n$ waybill %s", typed)
		words := strings.Fields(typed)
		words[len(words)-1] = strings.Replace(words[len(words)-1], "orders.csv", filepath.Join(d.folder, "orders.csv"), 1)
		err := d.command(ctx, d.f.App.IO, d.env, words...)
		d.f.App.IO.Configure(term.Options{})
		if err != nil {
			return err
		}
	}
	if err := d.until(ctx, "events of all 25 parcels", func() bool { return d.delivered.Load() >= 25 }); err != nil {
		return err
	}
	d.say("\n# Total: %d trackings delivered, %d events received, verified and forwarded.", d.delivered.Load(),
		d.forwarded.Load())
	d.say("\n# Try it:\n#   waybill sandbox          a sandbox of the service, until Ctrl-C")
	d.say("# In another terminal:\n#   %s", shell.Export("WAYBILL_BASE_URL", "http://127.0.0.1:8640"))
	d.say("#   %s\n#   waybill create YOUR.csv --dry-run", shell.Export("WAYBILL_API_KEY", "any"))
	d.say("# With an account of the service:\n" +
		"#   waybill init             asks for its address and your API key\n#   waybill --help")
	return nil
}

func (d *demonstration) say(format string, args ...any) { _ = d.out.Line(format, args...) }
