package signature

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type learnOptions struct {
	IDs                  []string
	From, Pin, PublicURL string
	AcceptWeak           bool
	Last                 int
}

type candidateJSON struct {
	Scheme            map[string]any   `json:"scheme"`
	Preset            string           `json:"preset"` // the name of one that is the same, else empty
	Strength          webhook.Strength `json:"strength"`
	Meaning           string           `json:"meaning"`
	BodyAuthenticated bool             `json:"bodyAuthenticated"`
	Secrets           []string         `json:"secrets"` // names of those that matched
	Matched           int              `json:"matched"`
	Misses            []string         `json:"misses"` // deliveries that do not match
	Obstacle          string           `json:"obstacle"`
	AgeChecked        bool             `json:"ageChecked"` // by a signed time
	Stale             string           `json:"stale"`      // why it verifies no delivery, if their times are all too old
	Open              []string         `json:"open"`       // what the deliveries do not decide
}

type pinnedJSON struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Verify string `json:"verify"`
}

type learnJSON struct {
	Deliveries      int                `json:"deliveries"`
	DifferentBodies int                `json:"differentBodies"`
	Secrets         []string           `json:"secrets"`
	Candidates      []candidateJSON    `json:"candidates"`
	Partial         []candidateJSON    `json:"partial"`
	Untried         []string           `json:"untried"` // places that were not tried, as there are too many
	Pinned          *pinnedJSON        `json:"pinned"`
	Reverified      *replay.Reverified `json:"rejudged"`
}

func newLearn(f *command.Factory) *cobra.Command {
	var o learnOptions
	cmd := &cobra.Command{
		Use:   "learn [ID...|--from FILE]",
		Short: "Find out how deliveries are signed",
		Long: fmt.Sprintf(`learn finds the signature scheme that all deliveries match, from stored deliveries
or those of --from and the webhook secret. To pin a scheme, %d deliveries with
different bodies are needed; with fewer, learn shows candidates. --pin writes the
scheme to your configuration with verify: observe, and verifies the stored
deliveries again.

Secrets are those of the configuration and of --secret-from env:NAME or file:PATH;
the API key is tried as well.

%s`, webhook.MinLearnBodies, DeliveryHelp),
		Example: command.Example("waybill signature learn", "waybill signature learn --pin mine",
			"waybill signature learn 3 4 7 --secret-from file:secret.txt",
			"waybill signature learn --from captures.jsonl --public-url https://hooks.example.com/in"),
		RunE: f.WithArgs(&o.IDs, func(ctx context.Context, c *command.Call) error { return runLearn(ctx, c, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Pin, "pin", "", "write the scheme as `NAME` to your configuration, with verify: observe")
	flags.BoolVar(&o.AcceptWeak, "accept-weak", false, "pin even a hash without a key, which proves nothing")
	fromFlag(cmd, &o.From)
	flags.StringVar(&o.PublicURL, "public-url", "", "the `URL` that the sender was given, if it may be signed")
	lastFlag(cmd, &o.Last)
	command.SettingFlags(cmd, "secret-from")
	return cmd
}

type learning struct {
	webhook.LearnResult

	names   []string // of the deliveries
	secrets []webhook.Secret
	keyOnly bool // the API key is the only secret to try
}

func runLearn(ctx context.Context, c *command.Call, o learnOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	l := learning{}
	samples, err := l.samples(ctx, c.Session, o)
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		return command.Usagef("receive deliveries with `waybill listen`, or pass --from FILE", "no deliveries to learn from")
	}
	if l.secrets, err = c.AnyWebhookSecrets(); err != nil {
		return err
	}
	if key, ok := c.APIKeySecret(); ok {
		l.keyOnly = len(l.secrets) == 0
		l.secrets = append(l.secrets, key)
	}
	if len(l.secrets) == 0 {
		return command.Usagef("set WAYBILL_WEBHOOK_SECRET, or pass --secret-from env:NAME or file:PATH",
			"no webhook secret is set")
	}
	o.PublicURL = cmp.Or(o.PublicURL, c.Config.Webhook.Schemes[c.Config.Webhook.Scheme].PublicURL)
	if l.LearnResult, err = webhook.Learn(ctx, samples, l.secrets, o.PublicURL); err != nil {
		return err
	}
	result := l.json()
	failed := l.failure(c, o)
	if failed == nil && o.Pin != "" {
		if err := pin(ctx, c, o, l, &result); err != nil {
			return err
		}
	}
	if err := printResult(c, l, result); err != nil {
		return err
	}
	return failed
}

// Fitting returns the scheme that the last deliveries in s match with a secret of settings; false if none fits.
func Fitting(ctx context.Context, s, settings *app.Session) (webhook.Scheme, bool, error) {
	var l learning
	samples, err := l.samples(ctx, s, learnOptions{Last: 20})
	if err != nil {
		return webhook.Scheme{}, false, err
	}
	if l.secrets, err = settings.AnyWebhookSecrets(); err != nil || len(l.secrets) == 0 {
		return webhook.Scheme{}, false, err
	}
	l.LearnResult, err = webhook.Learn(ctx, samples, l.secrets, "")
	if err != nil || len(l.Candidates) == 0 || l.Bodies < webhook.MinLearnBodies {
		return webhook.Scheme{}, false, err
	}
	c := l.Candidates[0]
	return c.Scheme, c.Obstacle == "" && c.Stale == "" && c.Strength != webhook.StrengthKeyless, nil
}

// check returns errors that need no reading of deliveries.
func (o learnOptions) check() error {
	if err := onlyOneOf(o.IDs, o.From); err != nil {
		return err
	}
	if o.Last < 1 {
		return command.Usagef("use 1 or more", "--last %d must be at least 1", o.Last)
	}
	if o.PublicURL != "" {
		if err := (webhook.Scheme{PublicURL: o.PublicURL}).Check(); err != nil {
			return command.Usagef("write it as https://HOST/PATH", "--public-url: %q is not an http or https address",
				o.PublicURL)
		}
	}
	return nil
}

func (l *learning) samples(ctx context.Context, s *app.Session, o learnOptions) ([]webhook.Sample, error) {
	var all []webhook.Sample
	add := func(name string, d webhook.Sample) { all, l.names = append(all, d), append(l.names, name) }
	if o.From != "" {
		err := eachCapture(ctx, s, o.From, add)
		return all, err
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	addStored := func(d replay.Delivery) (more bool) {
		if len(o.IDs) == 0 && d.IsSynthetic() {
			return true // made up: it shows only how waybill signs
		}
		if body := string(d.Body); len(o.IDs) > 0 || !seen[body] {
			seen[body] = true
			add(d.ID(), d.Sample())
		}
		return len(all) < o.Last
	}
	for d, err := range replay.Whole(ctx, db.Received(), o.IDs...) {
		if err != nil {
			return nil, err
		}
		if !addStored(d) && len(o.IDs) == 0 {
			break
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	// Genuine deliveries were refused if a wrong scheme was enforced.
	refused, err := replay.Refused(ctx, db.Received())
	for _, d := range refused {
		if !addStored(d) {
			break
		}
	}
	return all, err
}

func (l *learning) json() learnJSON {
	j := learnJSON{
		Deliveries: len(l.names), DifferentBodies: l.Bodies, Untried: append([]string{}, l.Untried...),
		Candidates: []candidateJSON{}, Partial: []candidateJSON{},
		Secrets: command.Texts(len(l.secrets), func(i int) string { return l.secrets[i].Name }),
	}
	for _, c := range l.Candidates {
		one := l.candidate(c)
		for _, rival := range l.RivalsOf(c.Scheme) {
			one.Open = append(one.Open, "fits as well: "+rival)
		}
		j.Candidates = append(j.Candidates, one)
	}
	for _, c := range l.Partial {
		j.Partial = append(j.Partial, l.candidate(c))
	}
	return j
}

func (l *learning) candidate(c webhook.Candidate) candidateJSON {
	j := candidateJSON{
		Scheme: config.SchemeSettings(c.Scheme), Strength: c.Strength, Meaning: c.Strength.String(),
		BodyAuthenticated: c.Scheme.CoversBody(), AgeChecked: c.Scheme.Timestamp.From != "", Secrets: []string{},
		Misses: []string{}, Obstacle: c.Obstacle, Stale: c.Stale, Open: append([]string{}, c.Undecided...),
	}
	if c.Strength != webhook.StrengthKeyless { // any secret matches such a scheme
		j.Secrets = command.Texts(len(c.Secrets), func(i int) string { return l.secrets[c.Secrets[i]].Name })
	}
	for i, matched := range c.Matched {
		if matched {
			j.Matched++
		} else {
			j.Misses = append(j.Misses, l.names[i])
		}
	}
	for _, p := range webhook.Presets() {
		if p.Scheme.WithDefaults() == c.Scheme {
			j.Preset = p.Name
		}
	}
	return j
}

func (l *learning) failure(call *command.Call, o learnOptions) error {
	switch {
	case len(l.Candidates) == 0 && len(l.Partial) > 0:
		c := l.candidate(l.Partial[0])
		return unverified("pass the IDs of the service's deliveries: waybill signature learn ID…", l.repeatCommand(call, o),
			"no scheme matches all %d deliveries; one matches %d, but not %s", len(l.names), c.Matched,
			strings.Join(c.Misses, ", "))
	case len(l.Candidates) == 0:
		hint := "check the secret; pass --public-url if the address may be signed; " +
			"configure schemes over several fields of the body by hand"
		switch {
		case l.keyOnly:
			hint = "no webhook secret is set, only the API key was tried: set WAYBILL_WEBHOOK_SECRET, " +
				"or pass --secret-from env:NAME or file:PATH"
		case l.Incomplete:
			hint = "the search was stopped early: learn from deliveries with smaller bodies"
		case len(l.Untried) > 0:
			hint = l.untried() +
				"; describe a scheme over one of them under webhook.schemes, or learn from deliveries with fewer headers"
		}
		return unverified(hint, "", "no scheme found: %s with %s are unsigned, changed, or signed in an unknown way",
			command.Plural(len(l.names), "delivery"), command.Plural(len(l.secrets), "secret"))
	case o.Pin == "":
		return nil
	case l.Bodies < webhook.MinLearnBodies:
		return unverified("receive more deliveries, then re-run the same command", "",
			"not pinned: %d deliveries with different bodies needed, %d received", webhook.MinLearnBodies, l.Bodies)
	case l.Candidates[0].Obstacle != "":
		return unverified("fix that first", "", "not pinned: it would verify nothing, as %s", l.Candidates[0].Obstacle)
	case l.Candidates[0].Strength == webhook.StrengthKeyless && !o.AcceptWeak:
		return unverified("pass --accept-weak to pin it anyway", "", "not pinned: %s", webhook.StrengthKeyless)
	default:
		return nil
	}
}

// repeatCommand returns the command that learns from the deliveries of the best partial match; "" with --from.
func (l *learning) repeatCommand(c *command.Call, o learnOptions) string {
	if o.From != "" {
		return ""
	}
	words := []string{"signature", "learn"}
	for i, matched := range l.Partial[0].Matched {
		if matched {
			words = append(words, l.names[i])
		}
	}
	return c.CommandLineWith([]string{"public-url", "accept-weak", "secret-from", "pin"}, words...)
}

func (l *learning) untried() string {
	const named = 5
	names := strings.Join(l.Untried[:min(len(l.Untried), named)], ", ")
	if len(l.Untried) > named {
		names += ", …"
	}
	return command.Plural(len(l.Untried), "place") + " not tried, too many: " + names
}

func printResult(call *command.Call, l learning, j learnJSON) error {
	if call.Out.Machine() {
		return call.Out.Object(j)
	}
	if len(l.Candidates) == 0 {
		return nil
	}
	c, first := l.Candidates[0], j.Candidates[0]
	err := call.Out.Fields([]render.Field{
		{
			Name:  "Deliveries",
			Value: fmt.Sprintf("%s, different bodies: %d", command.Plural(j.Deliveries, "delivery"), j.DifferentBodies),
		},
		{Name: "Signed", Value: Describe(c.Scheme)},
		{Name: "Secret", Value: strings.Join(first.Secrets, ", ")},
		{Name: "Strength", Value: first.Meaning},
		{Name: "But", Value: cmp.Or(c.Obstacle, c.Stale)},
		{Name: "Age", Value: map[bool]string{false: "not checked: no time that waybill can read " +
			"is signed"}[first.AgeChecked]},
		{Name: "Open", Value: strings.Join(first.Open, "; ")},
	})
	if err != nil {
		return err
	}
	if err := printScheme(call, "Configuration:", c.Scheme); err != nil {
		return err
	}
	WarnUncovered(call.Session, c.Scheme)
	for _, other := range l.Candidates[1:] {
		call.IO.Detail("Also matches: %s (%s)", Describe(other.Scheme), other.Strength.String())
	}
	if len(j.Partial) > 0 {
		other := j.Partial[0]
		call.IO.Note("%d of %d deliveries match another scheme, but not %s: pass the IDs of the service's deliveries",
			other.Matched, j.Deliveries, strings.Join(other.Misses, ", "))
	}
	provesLittle := []webhook.Strength{webhook.StrengthNothing, webhook.StrengthToken, webhook.StrengthKeyless}
	if len(l.Untried) > 0 && slices.Contains(provesLittle, c.Strength) {
		call.IO.Note("%s", l.untried())
	}
	if len(l.Candidates) > 1 {
		call.IO.Note("%s; -v shows them",
			command.Plural(len(l.Candidates)-1, "further scheme")+" matched, with no more proof")
	}
	printNextStep(call, l, j)
	return nil
}

func printNextStep(call *command.Call, l learning, j learnJSON) {
	c := l.Candidates[0]
	switch {
	case j.Pinned != nil:
		call.IO.Note("Pinned as %s in %s, with verify: observe", j.Pinned.Name, j.Pinned.File)
		if j.Reverified != nil {
			madeUp := ""
			if n := j.Reverified.MadeUp; n > 0 {
				madeUp = fmt.Sprintf("; %d made up, left out", n)
			}
			call.IO.Note("Stored deliveries: %d verified, %d not verified%s%s", j.Reverified.Verified, j.Reverified.Refused,
				reasons(j.Reverified.Reasons), madeUp)
			if j.Reverified.Verified == 0 && c.Stale != "" {
				call.IO.Note("%s: receive new deliveries, or raise timestamp.tolerance of %s if deliveries always arrive this late",
					c.Stale, j.Pinned.Name)
			}
		}
		if slices.ContainsFunc(l.names, func(n string) bool { return strings.HasPrefix(n, replay.RefusedPrefix) }) {
			call.IO.Note("The scheme matches refused deliveries; accept them with `waybill events readmit`")
		}
		call.IO.Hint("`waybill listen` uses it from now on; " +
			"enforce it with `waybill signature promote` once deliveries verify")
	case c.Obstacle != "":
		call.IO.Hint("fix that first; with these settings nothing would verify")
	case c.Stale != "":
		call.IO.Hint("receive new deliveries, then re-run the same command; these deliveries would not verify")
	case l.Bodies < webhook.MinLearnBodies:
		call.IO.Note("This is a candidate: %d deliveries with different bodies are needed to pin it", webhook.MinLearnBodies)
	default:
		words := append([]string{"signature", "learn"}, call.Cmd.Flags().Args()...)
		kept := []string{"from", "last", "public-url", "accept-weak", "secret-from"}
		call.IO.Hint("pin it with `" + call.CommandLineWith(kept, words...) + " --pin NAME`")
	}
}

func reasons(all map[webhook.Reason]int) string {
	if len(all) == 0 {
		return ""
	}
	whys := slices.Sorted(maps.Keys(all))
	words := command.Texts(len(whys), func(i int) string { return fmt.Sprintf("%s: %d", whys[i], all[whys[i]]) })
	return " (" + strings.Join(words, ", ") + ")"
}

// Describe returns a line that says what is signed and where the signature is.
func Describe(s webhook.Scheme) string {
	s = s.WithDefaults()
	if s.Kind == webhook.KindToken {
		return "the secret in clear at " + s.Signature.From
	}
	what := strings.ToUpper(s.Algorithm)
	if s.Kind == webhook.KindHMAC {
		what = "HMAC-" + what
	}
	return fmt.Sprintf("%s of %s, in %s at %s", what, s.Signed, s.Signature.Encoding, s.Signature.From)
}
