// Package inspect has the command that serves deliveries and trackings as a page on
// loopback, and the page's routes. A listener serves the same page.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inspect"
)

type inspectOptions struct {
	Place                 Place
	ReadyFile             string
	To, Headers           []string
	ReadOnly, AllowTarget bool
}

// New returns the command inspect.
func New(f *command.Factory) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Show deliveries as a live page in a browser",
		Long: `inspect serves a page on this computer that shows the deliveries of the store as
they arrive, also at other processes, and what is known of their trackings. It prints the
page's URL: anyone who has it can see and do all that the page can. It receives
nothing: ` + "`waybill listen --ui`" + ` does both.

Only browsers and programs of this computer reach the page. Deliveries can be sent
again from it to the targets of --to, and to no others. With --read-only the page
changes and sends nothing. Ctrl-C ends it with exit status 0; so does --timeout or
WAYBILL_TIMEOUT. A timeout in the configuration file is ignored.`,
		Example: command.Example("waybill inspect", "waybill inspect --to 3000",
			"waybill inspect --read-only --ready-file url.txt"),
		Args: cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runInspect(ctx, c, o) }),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&o.To, "to", nil,
		"let the page send deliveries again to `URL`, or a port of this computer; may be repeated")
	events.TargetHeaderFlag(cmd, &o.Headers)
	events.AllowTargetFlag(cmd, &o.AllowTarget)
	flags.BoolVar(&o.ReadOnly, "read-only", false, "change and send nothing")
	command.ReadyFileFlag(flags, &o.ReadyFile)
	o.Place.Flags(cmd)
	return cmd
}

// Place is the address of a page, and the file of its token.
type Place struct {
	Addr      string
	TokenFile string // token shared with pages of other processes; empty for none
}

// Flags adds the flags for the place to a command.
func (p *Place) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Addr, "ui-addr", "127.0.0.1:0",
		"serve the page on loopback `ADDRESS`; port 0 uses a free port")
	cmd.Flags().StringVar(&p.TokenFile, "ui-token-file", "",
		"keep open tabs valid when the page is served again at its address: their token is in `FILE`, made if need be")
}

func (p *Place) token() (string, error) {
	if p.TokenFile == "" {
		return "", nil
	}
	f, err := os.OpenFile(p.TokenFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		token := inspect.NewToken()
		_, err = f.WriteString(token + "\n")
		return token, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("--ui-token-file: %w", err)
	}
	const hint = "name a file that waybill made, or a new one"
	if who, fix := config.Exposed(p.TokenFile); who != "" {
		return "", command.Usagef("run `"+fix+"`, or name a new file", "--ui-token-file %s: %s can read it", p.TokenFile, who)
	}
	secret, err := config.ReadSecretFile(p.TokenFile, nil)
	if err != nil {
		return "", command.Usagef(hint, "--ui-token-file: %w", err)
	}
	if len(secret.Reveal()) != len(inspect.NewToken()) {
		return "", command.Usagef(hint, "--ui-token-file %s does not hold a token of a page", p.TokenFile)
	}
	return secret.Reveal(), nil
}

func runInspect(ctx context.Context, c *command.Call, o inspectOptions) error {
	if c.Out.IsCSV() {
		return command.Usagef("use -o jsonl", "inspect does not support %s", strings.ToUpper(string(c.Out.Format())))
	}
	targets, err := o.targets(c)
	if err != nil {
		return err
	}
	c.ReadOnly = o.ReadOnly
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	p, err := Open(ctx, o.Place, Options{Call: c, Targets: targets, AllowTarget: o.AllowTarget})
	if err != nil {
		return err
	}
	if limit := c.Config.Timeout; limit > 0 && c.Config.Origin("timeout").Level >= config.FromEnv {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ended := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- p.Run(serving) }()
	if place, _, err := c.StorePlace(); db == nil && err == nil {
		c.IO.Note("No store yet at %s; the page shows it once there is one", place)
	}
	show := func() error { return c.Out.Line("%s", p.SecretURL()) }
	if err := c.AnnounceReady(ctx, p.SecretURL(), o.ReadyFile, show); err != nil {
		stop()
		return errors.Join(err, <-ended)
	}
	return <-ended
}

func (o inspectOptions) targets(c *command.Call) ([]forward.Target, error) {
	if len(o.To) == 0 && (o.AllowTarget || len(o.Headers) > 0) {
		return nil, command.Usagef("add --to URL", "there is no target to send to")
	}
	if len(o.To) > 0 && o.ReadOnly {
		return nil, command.Usagef("leave one of them out", "--read-only and --to exclude each other")
	}
	var all []forward.Target
	for _, text := range o.To {
		u, err := forward.ParseURL(text)
		if err != nil {
			return nil, command.Usagef("such as --to 3000 or --to https://app.test/hook", "--to: %w", err)
		}
		if all, err = (events.TargetPolicy{Allow: o.AllowTarget}).AddTarget(all, forward.Target{URL: u}, "to"); err != nil {
			return nil, err
		}
	}
	events.WarnUnencrypted(c.IO, all)
	return all, events.AddTargetHeaders(c, o.Headers, all)
}

func listenOn(ctx context.Context, addr string) (net.Listener, error) {
	const hint = "such as --ui-addr 127.0.0.1:0"
	if want := config.HostPort(addr); want != "" {
		return nil, command.Usagef(hint, "--ui-addr: must be %s, not %q", want, addr)
	}
	host, _, _ := net.SplitHostPort(addr) // checked above
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return nil, command.Usagef(hint+"; to see the page from another computer, "+
			"forward that port to the same one with ssh -L", "--ui-addr %s is no loopback address", addr)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		err, hint := fmt.Errorf("listen on %s: %w", addr, err), "pass another --ui-addr; port 0 uses a free port"
		return nil, &command.ExitError{Code: command.Failed, Err: err, Hint: hint}
	}
	return l, nil
}
