// Package signature has the commands that find out, pin and use the signature scheme of deliveries.
package signature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// WarnUncovered warns about a scheme that does not authenticate bodies.
func WarnUncovered(s *app.Session, scheme webhook.Scheme) {
	if !scheme.CoversBody() {
		s.IO.Warning("body not authenticated: %s", scheme.Strength().String())
	}
}

// MaxDeliveryFile is the maximum size of a file of deliveries, in bytes.
const MaxDeliveryFile = 64 << 20

// New returns the command group signature.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:   "signature",
		Short: "Find out and verify how deliveries are signed",
		Long: `Deliveries of the service have a signature, but the interface does not say how it
is made. learn finds out from received deliveries and the webhook secret; --pin
writes the scheme to your configuration without enforcing it; promote enforces it.`,
	}
	group.AddCommand(newLearn(f), newVerify(f), newExplain(f), newSchemes(f), newPromote(f))
	return group
}

// DeliveryHelp explains the IDs of deliveries.
const DeliveryHelp = `ID is the number of a delivery or of an event in it (12, 12.2), as listen and events
list print it, refused:3 for a refused delivery, or an eventId or its beginning.`

// selection holds the options that select deliveries and the scheme to verify them with.
type selection struct {
	IDs    []string
	Body   string   // file with the body of a delivery
	Header []string // headers of that delivery
	From   string   // file with deliveries
	Scheme string   // empty for the scheme in force
}

func (o *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Body, "body", "", "read the body of a delivery from `FILE`, byte for byte (- for standard input)")
	f.StringArrayVarP(&o.Header, "header", "H", nil, "header of that delivery, `'NAME: VALUE'`; may be repeated")
	SchemeFlag(cmd, &o.Scheme)
	command.SettingFlags(cmd, "secret-from")
}

// SchemeFlag adds --scheme, which overrides the scheme in force.
func SchemeFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "scheme", "",
		"use scheme `NAME`: a preset, or one of webhook.schemes (default webhook.scheme)")
}

// RevealFlag adds --reveal.
func RevealFlag(cmd *cobra.Command, reveal *bool) {
	cmd.Flags().BoolVar(reveal, "reveal", false, "show credentials in clear")
}

func lastFlag(cmd *cobra.Command, n *int) {
	cmd.Flags().IntVar(n, "last", 20, "use the last `N` stored deliveries")
}

func fromFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "from", "", "`FILE` with deliveries as JSON Lines (- for standard input)")
}

func (o *selection) sample(ctx context.Context, s *app.Session) (webhook.Sample, error) {
	d := webhook.Sample{At: time.Now(), Request: webhook.Request{Method: "POST", Path: "/"}}
	for _, h := range o.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return d, command.Usagef("write it as 'Name: value'", "--header without a name and a colon")
		}
		d.Header = append(d.Header, webhook.Field{Name: strings.TrimSpace(name), Value: strings.Trim(value, " \t")})
	}
	var err error
	d.Body, err = ReadDeliveryFile(ctx, s, o.Body)
	return d, err
}

// ReadDeliveryFile reads a whole file, or standard input for `-`. It stops when ctx ends.
func ReadDeliveryFile(ctx context.Context, s *app.Session, path string) ([]byte, error) {
	return term.Await(ctx, func() ([]byte, error) {
		in := s.IO.In
		if path != command.StdinName {
			f, err := os.Open(path)
			if err != nil {
				return nil, &command.UsageError{Err: err, Hint: "use a file that exists and is readable"}
			}
			defer func() { _ = f.Close() }() // only read from
			in = f
		}
		b, err := io.ReadAll(io.LimitReader(in, MaxDeliveryFile+1))
		if err != nil {
			return nil, &command.UsageError{Err: fmt.Errorf("%s: %w", path, err), Hint: "use a readable file"}
		}
		if len(b) > MaxDeliveryFile {
			return nil, command.Usagef("use fewer deliveries", "%s is larger than %d bytes", path, MaxDeliveryFile)
		}
		return b, nil
	})
}

// eachCapture calls do with every delivery of a file and the delivery's name.
func eachCapture(ctx context.Context, s *app.Session, path string, do func(name string, d webhook.Sample)) error {
	data, err := ReadDeliveryFile(ctx, s, path)
	if err != nil {
		return err
	}
	all, err := webhook.ParseCaptures(data)
	if err != nil {
		return &command.UsageError{
			Err: fmt.Errorf("%s: %w", path, err),
			Hint: "each delivery is a JSON object: " +
				`{"receivedAt": TIME, "method", "path", "query", "headers": [{"name", "value"}], "body"}`,
		}
	}
	for i, d := range all {
		do(fmt.Sprintf("%s:%d", path, i+1), d)
	}
	return nil
}

// SchemeInForce returns the scheme named by --scheme, else the configured scheme, and its name.
func SchemeInForce(s *app.Session, named string) (string, webhook.Scheme, error) {
	named = cmp.Or(named, s.Config.Webhook.Scheme)
	if named == "" {
		return "", webhook.Scheme{}, command.Usagef("find it with `waybill signature learn --pin NAME`, or pass --scheme; "+
			"list schemes with `waybill signature schemes`",
			"no signature scheme is set")
	}
	scheme, err := s.Scheme(named)
	return named, scheme, err
}

// NewVerifier returns a verifier for the named scheme, else for the configured scheme.
func NewVerifier(s *app.Session, named string) (app.SchemeVerifier, error) {
	name, _, err := SchemeInForce(s, named)
	if err != nil {
		return app.SchemeVerifier{}, err
	}
	return s.VerifierBy(name)
}

func unverified(hint, next, format string, args ...any) error {
	return &command.ExitError{Code: command.Unverified, Err: fmt.Errorf(format, args...), Hint: hint, Next: next}
}

// newestUnverified returns the newest unverified or refused delivery, or a usage error if there is none.
func newestUnverified(ctx context.Context, s *app.Session) (replay.Delivery, error) {
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return replay.Delivery{}, err
	}
	var newest replay.Delivery
	for d, err := range replay.Whole(ctx, db.Received()) {
		if err != nil {
			return newest, err
		}
		if d.Verified != inbox.Yes {
			newest = d
			break
		}
	}
	refused, err := replay.Refused(ctx, db.Received())
	if err != nil {
		return newest, err
	}
	if len(refused) > 0 && refused[0].ReceivedAt.After(newest.ReceivedAt) {
		newest = refused[0]
	}
	if newest.Seq == 0 {
		return newest, command.Usagef("pass an ID, or --body and --header", "all stored deliveries verified")
	}
	return newest, nil
}

func onlyOneOf(ids []string, files ...string) error {
	n := min(len(ids), 1)
	for _, f := range files {
		if f != "" {
			n++
		}
	}
	if n > 1 {
		return command.Usagef("use one of them", "IDs, --body and --from can't be combined")
	}
	return nil
}

// SchemeUsage turns the error of an unusable scheme into a usage error.
func SchemeUsage(name string, err error) error {
	if _, ok := errors.AsType[*webhook.SchemeError](err); ok {
		return command.Usagef("`waybill signature schemes` lists the schemes", "scheme %q: %w", name, err)
	}
	return err
}

type schemeJSON struct {
	Name    string         `json:"name"`
	Origin  string         `json:"origin"` // configured or preset
	InForce bool           `json:"inForce"`
	About   string         `json:"about"`
	Scheme  map[string]any `json:"scheme"` // its settings
}

func newSchemes(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schemes",
		Short: "List presets and configured schemes",
		Long: `schemes lists the schemes that have a name: those under webhook.schemes of your
configuration, and presets. With -o json each has its settings.`,
		Example: command.Example("waybill signature schemes",
			"waybill signature schemes -o json --jq '.[] | select(.inForce)'"),
		RunE: f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
			w := command.Listing[schemeJSON]{Out: c.Out, Empty: "No schemes", Columns: schemeColumns()}
			return w.PrintAll(schemesOf(c.Session))
		}),
	}
	command.ColumnsFlag(cmd, schemeColumns())
	return cmd
}

func schemesOf(s *app.Session) []schemeJSON {
	var all []schemeJSON
	add := func(name, origin, about string, scheme webhook.Scheme) {
		if err := scheme.Check(); err != nil {
			about = "can't be used: " + err.Error()
		}
		all = append(all, schemeJSON{name, origin, name == s.Config.Webhook.Scheme, about, config.SchemeSettings(scheme)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Config.Webhook.Schemes)) {
		if scheme, err := s.Scheme(name); err == nil {
			add(name, "configured", Describe(scheme), scheme)
		}
	}
	for _, p := range webhook.Presets() {
		if _, hidden := s.Config.Webhook.Schemes[p.Name]; !hidden {
			add(p.Name, "preset", p.About, p.Scheme)
		}
	}
	return all
}

func schemeColumns() []command.Column[schemeJSON] {
	return []command.Column[schemeJSON]{
		{Name: "NAME", Cell: func(j schemeJSON) string { return j.Name }},
		{Name: "ORIGIN", Rank: 1, Cell: func(j schemeJSON) string {
			if j.InForce {
				return j.Origin + ", in force"
			}
			return j.Origin
		}, CSVCell: func(j schemeJSON) string { return j.Origin }},
		view.CSVOnly("IN FORCE", "inForce", func(j schemeJSON) string { return strconv.FormatBool(j.InForce) }),
		{Name: "ABOUT", Flex: true, Cell: func(j schemeJSON) string { return j.About }},
	}
}
