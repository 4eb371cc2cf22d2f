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
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

//go:embed demo/orders.csv
var demoOrders []byte

//go:embed demo/script.txt
var demoScript string // what the demo says and runs

// NewDemo returns the command that shows the program at work.
func NewDemo(f *command.Factory) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try waybill on this computer, without an account",
		Long: `demo starts a sandbox of the service and a webhook receiver on this computer, and
runs the commands that it prints: it creates trackings from a CSV file, waits until
processing has finished, shows one, receives signed events, forwards them to an
application, and refuses a forged one. It does not use your settings, and removes
its files when it ends.`,
		Example: command.Example("waybill demo", "waybill demo --keep"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Started = true
			return runDemo(f, cmd, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep both servers running until Ctrl-C")
	return cmd
}

type demonstration struct {
	f                    *command.Factory
	out                  *command.Output
	folder               string
	env                  []string     // what its user has set
	forwarded, delivered atomic.Int64 // events that its application got
}

func runDemo(f *command.Factory, cmd *cobra.Command, keep bool) (err error) {
	d := &demonstration{f: f}
	if d.out, err = f.Output(cmd); err != nil {
		return err
	}
	defer d.out.Discard()
	if d.out.Machine() {
		return command.Usagef("run it without --output", "demo prints for people")
	}
	if d.folder, err = os.MkdirTemp("", "waybill-demo-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(d.folder)) }()
	ctx, stop := context.WithCancel(cmd.Context())
	servers, ctx := errgroup.WithContext(ctx)
	err = d.steps(ctx, servers)
	if err == nil && keep {
		d.say("Both servers are running; press Ctrl-C to end.")
		<-ctx.Done()
	}
	stop()
	served := servers.Wait() // one that fails ends the steps
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
	listener, err := d.serve(ctx, servers, "listen", "--forward-to", command.ServerURL(application.Addr().String(), ""))
	if err != nil {
		return err
	}
	service, err := d.serve(ctx, servers, "sandbox", "--seed", "7", "--webhook-url", listener, "--webhook-secret-file", secret)
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

// command runs one command line of waybill as the demo's user.
func (d *demonstration) command(ctx context.Context, streams *term.IO, env []string, words ...string) error {
	a := &app.App{
		IO:     streams,
		Getenv: func(string) string { return "" },
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
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
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
		err = errors.Join(err, d.f.App.IO.Configure(term.Options{Color: "auto"}))
		if err != nil {
			return err
		}
	}
	if err := d.until(ctx, "events of all 25 parcels", func() bool { return d.delivered.Load() >= 25 }); err != nil {
		return err
	}
	d.say("\n# Total: %d trackings delivered, %d events received, verified and forwarded.", d.delivered.Load(), d.forwarded.Load())
	d.say("\n# Try it:\n#   waybill sandbox          a sandbox of the service, until Ctrl-C")
	d.say("# In another terminal:\n#   %s", shell.Export("WAYBILL_BASE_URL", "http://127.0.0.1:8640"))
	d.say("#   %s\n#   waybill create YOUR.csv --dry-run", shell.Export("WAYBILL_API_KEY", "any"))
	d.say("# With an account of the service:\n#   waybill init             asks for its address and your API key\n#   waybill --help")
	return nil
}

func (d *demonstration) say(format string, args ...any) { _ = d.out.Line(format, args...) }
