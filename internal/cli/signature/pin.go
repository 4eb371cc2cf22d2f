package signature

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type promotionJSON struct {
	Promoted bool      `json:"promoted"`
	Scheme   string    `json:"scheme"`
	File     string    `json:"file"` // empty if nothing was written
	Checked  int       `json:"checked"`
	Failing  []Verdict `json:"failing"`
	Open     []string  `json:"open"` // what other schemes read that fit the deliveries as well
}

func newPromote(f *command.Factory) *cobra.Command {
	var last int
	cmd := &cobra.Command{
		Use:   "promote",
		Short: "Enforce the scheme if recent deliveries verify",
		Long: `promote writes verify: enforce to your configuration if the last 20 stored
deliveries verify. Then listen answers 401 to deliveries that do not verify. If
one of them does not verify, promote lists it, changes nothing and exits with 9;
so it does while another scheme fits them as well.`,
		Example: command.Example("waybill signature promote", "waybill signature promote --last 5"),
		RunE:    f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runPromote(ctx, c, last) }),
	}
	lastFlag(cmd, &last)
	return cmd
}

func runPromote(ctx context.Context, c *command.Call, last int) error {
	if last < webhook.MinLearnBodies {
		return command.Usagef("use a larger number", "--last %d must be at least %d", last, webhook.MinLearnBodies)
	}
	v, err := NewVerifier(c.Session, "")
	if err != nil {
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	j := promotionJSON{Scheme: v.Name, Failing: []Verdict{}, Open: []string{}}
	var samples []webhook.Sample
	for d, err := range replay.Whole(ctx, db.Received()) {
		if err != nil {
			return err
		}
		if d.IsSynthetic() {
			continue // made up: it shows only how waybill signs
		}
		j.Checked++
		samples = append(samples, d.Sample())
		if verdict := v.Verify(d.Request(), d.ReceivedAt); !verdict.OK {
			j.Failing = append(j.Failing, NewVerdict(d.ID(), v.Name, d.Sample(), verdict))
		}
		if j.Checked == last {
			break
		}
	}
	if j.Checked == 0 {
		return command.Usagef("receive deliveries with `waybill listen`", "no stored deliveries to check")
	}
	lesson, err := webhook.Learn(ctx, samples, v.Secrets, v.Scheme.PublicURL)
	if err != nil {
		return err
	}
	j.Open = append(j.Open, lesson.RivalsOf(v.Scheme)...)
	failed := j.failure(c)
	if failed == nil {
		if j.File, err = c.EditUser(edit.Change{Key: "webhook.verify", Value: "enforce"}); err != nil {
			return err
		}
		j.Promoted = true
		warnOverridden(c.Session, "webhook.scheme", "webhook.verify")
		if _, err := replay.Reverify(ctx, db.Inbox, db.Verdicts, v.Name, v); err != nil {
			return err
		}
	}
	if err := printPromotion(c, j, v.Scheme); err != nil {
		return err
	}
	return failed
}

func (j promotionJSON) failure(c *command.Call) error {
	switch {
	case len(j.Failing) > 0:
		return unverified("find out why with `waybill signature explain ID`",
			c.CommandLine("signature", "explain", j.Failing[0].ID),
			"not promoted: %d of the last %s did not verify", len(j.Failing), command.Plural(j.Checked, "delivery"))
	case j.Checked < webhook.MinLearnBodies:
		return unverified("wait for more deliveries", "", "not promoted: %s verified, at least %d needed",
			command.Plural(j.Checked, "delivery"), webhook.MinLearnBodies)
	case len(j.Open) > 0:
		return unverified("receive deliveries that match only one of them; "+
			"or enforce it anyway with `waybill config set webhook.verify enforce`", "",
			"not promoted: another scheme fits the last %s as well: %s",
			command.Plural(j.Checked, "delivery"), strings.Join(j.Open, "; "))
	default:
		return nil
	}
}

func printPromotion(c *command.Call, j promotionJSON, scheme webhook.Scheme) error {
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	if !j.Promoted {
		if len(j.Failing) == 0 {
			return nil
		}
		return command.Listing[Verdict]{Out: c.Out, Columns: verdictColumns()}.PrintAll(j.Failing)
	}
	checked := command.Plural(j.Checked, "delivery")
	if err := c.Out.Line("%s verified; scheme %s is now enforced (%s)", checked, j.Scheme, j.File); err != nil {
		return err
	}
	WarnUncovered(c.Session, scheme)
	c.IO.Note("A running `waybill listen` enforces it within seconds")
	return nil
}

func pin(ctx context.Context, call *command.Call, o learnOptions, l learning, result *learnJSON) error {
	c := l.Candidates[0]
	settings := c.Scheme.WithDefaults()
	if old, ok := call.Config.Webhook.Schemes[o.Pin]; ok && old.WithDefaults() != settings {
		return command.Existsf("choose another name, or remove webhook.schemes."+o.Pin+" from the configuration first",
			"another scheme named %q is already configured", o.Pin)
	}
	changes := []edit.Change{
		{Key: "webhook.schemes." + o.Pin, Value: settings},
		{Key: "webhook.scheme", Value: o.Pin},
		{Key: "webhook.verify", Value: "observe"},
	}
	places, secrets, err := l.places(call.Session, c)
	if err != nil {
		return err
	}
	if places != nil {
		changes = append(changes, edit.Change{Key: "webhook.secrets", Value: places})
	}
	v, err := webhook.NewVerifier(c.Scheme, secrets)
	if err != nil {
		return command.Usagef("pass the matching secrets with --secret-from", "not pinned: %w", err)
	}
	file, err := call.EditUser(changes...)
	if err != nil {
		return err
	}
	result.Pinned = &pinnedJSON{o.Pin, file, "observe"}
	warnOverridden(call.Session, "webhook.scheme", "webhook.verify", "webhook.schemes."+o.Pin)
	db, err := call.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	n, err := replay.Reverify(ctx, db.Inbox, db.Verdicts, o.Pin, v)
	result.Reverified = &n
	return err
}

// places returns the value of webhook.secrets for a candidate, nil to leave it, and the secrets then in force.
func (l *learning) places(s *app.Session, c webhook.Candidate) ([]string, []webhook.Secret, error) {
	var matched []webhook.Secret
	for _, i := range c.Secrets {
		matched = append(matched, l.secrets[i])
	}
	configured := slices.Clone(l.secrets)
	if key, ok := s.APIKeySecret(); ok {
		configured = configured[:len(configured)-1]
		isKey := func(s webhook.Secret) bool { return s.Name == key.Name }
		if slices.ContainsFunc(matched, isKey) && !slices.ContainsFunc(configured, isKey) {
			configured = nil
		}
	}
	if len(configured) > 0 && s.Config.Origin("webhook.secrets").Level != config.FromFlag {
		return nil, configured, nil
	}
	var places []string
	for _, m := range matched {
		if kind, _, _ := strings.Cut(m.Name, ":"); kind != "env" && kind != "file" {
			return nil, nil, command.Usagef("put it into a file or variable and pass that with --secret-from",
				"not pinned: the deliveries are signed with %s, which can't be set in webhook.secrets", m.Name)
		}
		places = append(places, m.Name)
	}
	return places, matched, nil
}

// warnOverridden warns about keys written to the user file that the environment overrides.
func warnOverridden(s *app.Session, keys ...string) {
	for _, key := range keys {
		if o := s.Config.Origin(key); o.Level == config.FromEnv {
			s.IO.Warning("%s is set in the environment, which overrides the file: unset it", o.Name)
		}
	}
}
