package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Limits of one command.
const (
	maxCopies   = 1000
	maxSendings = 1_000_000
	seedLimit   = 1 << 53 // up to which all JSON readers keep integers exact
)

const sendingHelp = `Deliveries are sent one at a time. --expect-status sets which answers count as
success. The exit status is 0 if all do and 6 if some do; if none does, 5 after other
answers, 7 without an answer and 11 without a connection. Redirects are not followed.

All that is random follows from --seed, so that a run can be repeated. Ctrl-C
finishes the current request and prints the command that sends all of it again.`

type sendingOptions struct {
	To, Scheme, Expect string
	Headers, Set       []string

	forward.Faults
	AllowTarget bool
	Rate        float64
}

func (o *sendingOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	TargetHeaderFlag(cmd, &o.Headers)
	signature.SchemeFlag(cmd, &o.Scheme)
	f.IntVar(&o.Duplicate, "duplicate", 0, "send `N` extra copies of each")
	f.BoolVar(&o.Reorder, "reorder", false, "send in random order")
	f.BoolVar(&o.Corrupt, "corrupt-signature", false, "alter signatures, so that they must be refused")
	f.Uint64Var(&o.Seed, "seed", 0, "random seed `N`, to repeat a run")
	f.StringVar(&o.Expect, "expect-status", "2xx", "`STATUS` to expect, such as 401 or 2xx,409")
	f.Float64Var(&o.Rate, "rate", 0, "send at most `N` a second (0 for no limit)")
	AllowTargetFlag(cmd, &o.AllowTarget)
	command.SettingFlags(cmd, "secret-from")
	command.ColumnsFlag(cmd, sentColumns())
	command.Section(f, command.FaultsSection, "duplicate", "reorder", "corrupt-signature", "seed")
}

func (o *sendingOptions) parseSet() (all []webhook.Change, err error) {
	for _, text := range o.Set {
		c, err := webhook.ParseChange(text)
		if err != nil {
			return nil, command.Usagef("such as --set '/data/summary/latestEvent=Out for delivery'", "--set: %w", err)
		}
		all = append(all, c)
	}
	return all, nil
}

func (o *sendingOptions) target() (*url.URL, error) {
	if o.To == "" {
		return nil, nil //nolint:nilnil // no target is a valid result
	}
	u, err := forward.ParseURL(o.To)
	if err != nil {
		return nil, command.Usagef("such as --to 3000 or --to https://app.test/hook", "--to: %w", err)
	}
	return u, nil
}

type sending struct {
	forward.Series

	call    *command.Call
	kind    string                     // type of the JSON lines
	several bool                       // send to several targets
	fill    func(*Sent, int)           // adds details of the item sent
	record  func(forward.Result) error // records a result
	options sendingOptions
	chosen  []string // flags that repeat random choices

	list       *render.List         // JSON output
	rows       *command.Table[Sent] // CSV, or a table with --columns; else lines of text
	unexpected map[int]int          // number of unexpected responses by status
}

// newSending checks the flags that all sending commands share. The caller closes its Client.
func newSending(c *command.Call, o sendingOptions) (*sending, error) {
	switch {
	case o.Duplicate < 0 || o.Duplicate > maxCopies:
		return nil, command.Usagef(fmt.Sprintf("from 0 to %d", maxCopies), "--duplicate %d is out of bounds", o.Duplicate)
	case o.Rate < 0 || math.IsNaN(o.Rate):
		return nil, command.Usagef("use 0 for no limit", "--rate %v is not a rate", o.Rate)
	}
	if !c.Cmd.Flags().Changed("seed") {
		o.Seed = rand.Uint64N(seedLimit) //nolint:gosec // no secret
	}
	expect, err := forward.ParseStatuses(o.Expect)
	if err != nil {
		return nil, command.Usagef("such as 2xx, 401, or 2xx,409", "--expect-status: %w", err)
	}
	client, err := NewForwardClient(c.Session, TargetPolicy{Allow: o.AllowTarget})
	if err != nil {
		return nil, err
	}
	return &sending{
		call: c, options: o, unexpected: map[int]int{}, record: func(forward.Result) error { return nil },
		Series: forward.Series{Client: client, Gate: pace.New(1, o.Rate), Faults: o.Faults, Expect: expect},
	}, nil
}

func (k *sending) run(ctx context.Context, n int) error {
	if n > maxSendings/(1+k.Faults.Duplicate) {
		return command.Usagef("send fewer at once, such as with IDs or a smaller --count",
			"these are more than %d sendings", maxSendings)
	}
	ctx, stop := k.call.Within(ctx)
	defer stop()
	began, out := time.Now(), k.call.Out
	var err error
	switch {
	case out.Machine():
		k.list = out.BeginList()
	case out.IsCSV() || out.HasColumns():
		if k.rows, err = command.BeginTable(out, sentColumns()); err != nil {
			return err
		}
	}
	k.OnResult = func(r forward.Result) error { return errors.Join(k.record(r), k.print(r)) }
	tally, err := k.Run(ctx, k.call.Hard(ctx), n)
	return errors.Join(k.outcome(tally, err), k.printSummary(tally, time.Since(began)))
}

func (k *sending) outcome(t forward.Tally, err error) error {
	e := &command.ExitError{Code: sendingCode(t), Hint: sendingHint(t)}
	sent := fmt.Sprintf("%s of %s sent", command.Number(int64(t.Tried())), command.Plural(t.Planned, "delivery"))
	switch wrong := t.Tried() - t.Expected; {
	case err == nil && wrong == 0:
		return nil
	case err == nil:
		verb := "were"
		if wrong == 1 {
			verb = "was"
		}
		of := command.Plural(t.Tried(), "delivery")
		e.Err = fmt.Errorf("%s of %s %s not answered with %s", command.Number(int64(wrong)), of, verb, k.Expect)
		return e
	case errors.Is(err, forward.ErrForbidden):
		return &command.ExitError{Code: command.Usage, Err: err, Hint: "--allow-target allows it"}
	case errors.Is(err, forward.ErrUnreachable):
		e.Err, e.Next = fmt.Errorf("stopped: %w", err), k.repeatCommand()
		return e
	case errors.Is(err, command.ErrTimeUp):
		code := command.Worst(e.Code, command.Pending)
		return &command.ExitError{Code: code, Err: fmt.Errorf("%w: %s", err, sent), Next: k.repeatCommand()}
	case command.As[*command.SignalError](err), errors.Is(err, context.Canceled):
		return errors.Join(err, &command.ExitError{Code: command.Interrupted, Err: errors.New(sent), Next: k.repeatCommand()})
	default:
		return err
	}
}

func sendingCode(t forward.Tally) command.Code {
	switch {
	case t.Expected == t.Tried():
		return command.OK
	case t.Expected > 0:
		return command.Partial
	}
	met := map[command.Code]int{
		command.Refused: t.Unexpected, command.Unknown: t.Unanswered,
		command.Unreachable: t.Unreachable, command.Partial: t.Unsent,
	}
	maps.DeleteFunc(met, func(_ command.Code, n int) bool { return n == 0 })
	return command.Worst(slices.Collect(maps.Keys(met))...)
}

func sendingHint(t forward.Tally) string {
	switch {
	case t.Unreachable > 0:
		return "check that the target runs, and its certificate; repeating is safe if the target recognizes duplicates"
	case t.Unanswered > 0:
		return "the target may have received them; --request-timeout sets how long to wait for an answer"
	case t.Unexpected > 0:
		return "see the target's answers above; set the expected ones with --expect-status"
	default:
		return "see the reasons above"
	}
}

// noteSeed prints how to repeat random choices. at is the time of made-up events, or "" for none.
func (k *sending) noteSeed(at string) {
	f := k.Faults
	if k.call.Cmd.Flags().Changed("seed") || at == "" && !f.Reorder && !f.Corrupt {
		return
	}
	k.chosen = []string{"--seed", strconv.FormatUint(f.Seed, 10)}
	if at != "" {
		k.chosen = append(k.chosen, "--at", at)
	}
	k.call.IO.Note("To repeat this run: %s", strings.Join(k.chosen, " "))
}

// repeatCommand returns the command that sends everything again. Possible tokens in URLs are masked.
func (k *sending) repeatCommand() string {
	var words []string
	without := []string{"to", targetHeader}
	if len(k.chosen) > 0 {
		without = append(without, "seed", "at")
	}
	if k.options.To != "" {
		words = append(words, "--to", forward.ShowAddress(k.options.To))
	}
	for _, value := range k.options.Headers {
		if to, field, ok := strings.Cut(value, "=>"); ok {
			value = forward.ShowAddress(to) + "=>" + field
		}
		words = append(words, "--"+targetHeader, value)
	}
	return k.call.Again(without, append(words, k.chosen...)...)
}

// Signer signs deliveries; nil leaves them as they are.
type Signer struct {
	name   string
	scheme webhook.Scheme
	secret webhook.Secret
}

// NewSigner returns a signer for the named scheme, else for the configured one, or an error if the scheme can't sign.
func NewSigner(s *app.Session, named string) (*Signer, error) {
	name, scheme, err := signature.SchemeInForce(s, named)
	if err != nil {
		return nil, err
	}
	secrets, err := s.WebhookSecrets()
	if err != nil {
		return nil, err
	}
	g := &Signer{name, scheme, secrets[0]}
	_, err = webhook.Sign(scheme, g.secret, webhook.Request{Method: "POST", Path: "/", Body: []byte("{}")}, time.Now())
	if err != nil && !errors.Is(err, webhook.ErrUnsignedPart) {
		return nil, g.usageError(err)
	}
	return g, nil
}

// Sign returns a request signed with the current time.
func (g *Signer) Sign(m webhook.Request) (webhook.Request, error) {
	if g == nil {
		return m, nil
	}
	out, err := webhook.Sign(g.scheme, g.secret, m, time.Now())
	if err != nil {
		return m, g.usageError(err)
	}
	return out.Apply(m), nil
}

func (g *Signer) usageError(err error) error {
	if errors.Is(err, webhook.ErrUnsignable) {
		return command.Usagef("pass another --scheme; `waybill signature schemes` lists them", "scheme %q: %w", g.name, err)
	}
	return signature.SchemeUsage(g.name, err)
}

// Sent is one sending in JSON output.
type Sent struct {
	Type              string  `json:"type"` // replay or send
	view.DeliveryName         // of replay
	Attempt           int     `json:"attempt,omitempty"` // of replay
	EventID           string  `json:"eventId,omitempty"` // of send: the first event's
	Copy              int     `json:"copy"`              // above 0: sent before, by --duplicate
	Target            string  `json:"target"`            // without its query
	Status            int     `json:"status"`            // 0 if no answer came
	Expected          bool    `json:"expected"`
	ElapsedSeconds    float64 `json:"elapsedSeconds"`
	Problem           string  `json:"problem,omitempty"`
	Location          string  `json:"location,omitempty"` // of a redirect, which was not followed
	Reply             string  `json:"reply"`              // start of the answer
}

type sendingSummaryJSON struct {
	Type string `json:"type"` // summary
	Seed uint64 `json:"seed"`
	forward.Tally
	Left           int     `json:"left"` // planned and not done
	ElapsedSeconds float64 `json:"elapsedSeconds"`
}

func sentColumns() []command.Column[Sent] {
	return []command.Column[Sent]{
		{
			Name: "DELIVERY", CSV: "id", ID: true, Cell: func(j Sent) string { return j.ID + j.EventID },
			CSVCell: func(j Sent) string { return j.ID },
		},
		view.CSVIdentifier("EVENT ID", "eventId", func(j Sent) string { return j.EventID }),
		{Name: "COPY", Right: true, Cell: func(j Sent) string { return fmt.Sprint(j.Copy) }},
		{Name: "TARGET", Cell: func(j Sent) string { return j.Target }},
		{Name: "STATUS", Right: true, Cell: func(j Sent) string { return fmt.Sprint(j.Status) }},
		{Name: "EXPECTED", Cell: func(j Sent) string { return fmt.Sprint(j.Expected) }},
		{
			Name: "SECONDS", CSV: "elapsedSeconds", Right: true,
			Cell: func(j Sent) string { return fmt.Sprint(j.ElapsedSeconds) },
		},
		{Name: "PROBLEM", Flex: true, Cell: func(j Sent) string { return j.Problem }},
	}
}

// NewSent returns the JSON form of a result. kind is its type.
func NewSent(kind string, r forward.Result) Sent {
	j := Sent{
		Type: kind, Copy: r.Copy, Status: r.Status, Expected: r.Expected, Reply: string(r.Reply),
		ElapsedSeconds: r.Took.Round(time.Microsecond).Seconds(), Location: forward.ShowAddress(r.Location),
	}
	if r.To != nil {
		j.Target = forward.ShowURL(r.To)
	}
	if r.Err != nil {
		j.Problem = forward.Problem(r.Answer, r.Err)
	}
	return j
}

func (k *sending) print(r forward.Result) error {
	j := NewSent(k.kind, r)
	if r.Err == nil && !r.Expected {
		k.unexpected[r.Status]++
	}
	k.fill(&j, r.Index)
	switch {
	case k.list != nil:
		return k.list.Add(j)
	case k.rows != nil:
		return k.rows.Add(j)
	default:
		return k.line(r, j)
	}
}

func (k *sending) line(r forward.Result, j Sent) error {
	what, style := "as expected", term.Good
	how := fmt.Sprintf("%d in %v", r.Status, r.Took.Round(time.Millisecond))
	switch {
	case r.Unsent():
		what, style, how = "not sent", term.Bad, j.Problem
	case r.Err != nil:
		what, style, how = "no answer", term.Bad, j.Problem
	case !r.Expected:
		what, style = "not expected", term.Bad
	}
	if r.Err == nil && r.Location != "" {
		how += ", a redirect to " + command.Quoted(j.Location) + ", which is not followed"
	}
	if reply := firstLine(r.Reply); reply != "" {
		how += ": " + reply
	}
	id, to := cmp.Or(j.ID, strconv.Itoa(r.Index+1)), ""
	if r.Copy > 0 {
		id += fmt.Sprintf(" copy %d", r.Copy)
	}
	if k.several && j.Target != "" {
		to = "to " + j.Target + ": "
	}
	mark := k.call.Out.Out().Style(style, fmt.Sprintf("%-12s", what))
	return k.call.Out.Line("%s  %-4s  %s  %s%s", view.Clock(time.Now()), id, mark, to, how)
}

func firstLine(reply []byte) string {
	const limit = 100 // characters
	line, _, _ := strings.Cut(strings.TrimSpace(string(reply)), "\n")
	if r := []rune(line); len(r) > limit {
		line = string(r[:limit]) + "…"
	}
	return line
}

func (k *sending) printSummary(t forward.Tally, took time.Duration) error {
	left := t.Planned - t.Tried()
	if k.list != nil {
		return errors.Join(k.list.Add(sendingSummaryJSON{
			Type: "summary", Seed: k.Faults.Seed, Tally: t, Left: left, ElapsedSeconds: took.Round(time.Millisecond).Seconds(),
		}), k.list.Close())
	}
	number := func(n int) string { return command.Number(int64(n)) }
	parts := []string{fmt.Sprintf("%s answered %s as expected", number(t.Expected), k.Expect)}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, number(n)+" "+what)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(k.unexpected)) {
		add(k.unexpected[status], fmt.Sprintf("answered %d", status))
	}
	add(t.Unreachable, "without a connection")
	add(t.Unanswered, "without an answer")
	add(t.Unsent, "not sent")
	add(left, "left")
	k.call.IO.Note("%s sent: %s", number(t.Expected+t.Unexpected+t.Unanswered), strings.Join(parts, ", "))
	if k.rows != nil {
		return k.rows.Flush()
	}
	return nil
}
