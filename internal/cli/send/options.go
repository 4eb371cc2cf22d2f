package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// UnknownText is the paragraph on unknown rows in the help of commands that send a run.
const UnknownText = `A row is unknown if its request was sent and no usable response came back.
waybill checks it with the service, and sends it again only if two checks,
--settle apart, do not find it.`

// How long a run continues without a connection, or while the service only asks to pause, without --timeout.
const (
	connectTimeout = 15 * time.Second
	pauseTimeout   = 2 * time.Minute
)

// Options are the flags of commands that send a run.
type Options struct {
	Unknown, RecheckDelay string
	MaxRejects            int64
	Wait                  bool
	SameAccount           bool
	RetryRejected         bool
	RetryAbsent           bool
	CheckFirst            bool
	SkipProof             bool
}

// Flags adds the flags of every command that sends a run.
func (o *Options) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Wait, "wait", false, "wait until processing has finished")
	actions := []string{string(bulk.Reconcile), string(bulk.ResendOne), string(bulk.Resend), string(bulk.Keep)}
	command.Choice(f, &o.Unknown, "unknown", actions[0], "`ACTION` for rows with unknown outcome", actions...)
	f.StringVar(&o.RecheckDelay, "settle", "2m", "`DURATION` between the two checks that an unknown row does not exist")
	f.Int64Var(&o.MaxRejects, "max-rejects", 100, "stop after more than `N` rejected rows (0 for no limit)")
	f.BoolVar(&o.SkipProof, "skip-proof", false, "take the service's responses for what they seem to mean, unchecked")
	f.BoolVar(&o.SameAccount, "same-account", false, "the API key is new, the account is the same")
	command.Section(f, RowsSection, "unknown", "settle", "max-rejects", "skip-proof")
	command.Section(f, "Account", "same-account")
}

// CheckFirstFlag adds --check-first.
func (o *Options) CheckFirstFlag(f *pflag.FlagSet) {
	const name = "check-first"
	f.BoolVar(&o.CheckFirst, name, false, "check rows that this store never sent with the service before sending them")
	command.Section(f, RowsSection, name)
}

// RowsSection is the title of the flags about rows that were not accepted.
const RowsSection = "Rejected and unknown rows"

// Policy returns the policy that the flags and settings describe.
func (o *Options) Policy(cfg config.Config) (bulk.Policy, error) {
	recheckDelay, err := config.ParseDuration(o.RecheckDelay)
	if err != nil {
		return bulk.Policy{}, command.Usagef("--settle 2m", "--settle: %w", err)
	}
	unknown := bulk.UnknownAction(o.Unknown)
	if o.MaxRejects < 0 {
		return bulk.Policy{}, command.Usagef("use 0 for no limit", "--max-rejects %d is negative", o.MaxRejects)
	}
	if o.CheckFirst && !unknown.Queries() {
		return bulk.Policy{}, command.Usagef("omit --unknown", "--check-first can't be used with --unknown %s", o.Unknown)
	}
	if o.RetryAbsent && !unknown.Queries() {
		return bulk.Policy{}, command.Usagef("omit --unknown", "--absent can't be used with --unknown %s", o.Unknown)
	}
	p := bulk.Policy{
		Unknown: unknown, RecheckDelay: recheckDelay, MaxRejects: o.MaxRejects,
		RetryRejected: o.RetryRejected && !o.RetryAbsent, RetryAbsent: o.RetryAbsent,
		SkipProof: o.SkipProof, VerifyPending: o.CheckFirst, Workers: cfg.Concurrency,
		ConnectFor: connectTimeout, GiveUpAfter: pauseTimeout, QueryTimeout: command.QueryTimeout,
	}
	if cfg.Timeout > 0 {
		p.ConnectFor, p.GiveUpAfter, p.QueryTimeout = cfg.Timeout, cfg.Timeout, cfg.Timeout
	}
	return p, nil
}

// Hard returns a context for requests under way: it ends with a second signal or at the deadline of ctx.
func Hard(ctx context.Context, c *command.Call) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadlineCause(c.Hard(ctx), end, command.ErrTimeUp)
	}
	return context.WithCancel(c.Hard(ctx))
}

// CheckKey returns an error for a new API key on an account that has runs: trackings created with the key of another
// account would be mixed up for good.
func (o *Options) CheckKey(ctx context.Context, s *app.Session, keys ledger.Keys) error {
	key, err := s.Key()
	if err != nil {
		return err
	}
	known, err := keys.LookUpKey(ctx, key)
	if err != nil {
		return err
	}
	if known.HasRuns && !known.Seen && !o.SameAccount {
		return command.Usagef("mistyped? `waybill auth login`; if it is the same account: --same-account; "+
			"if it is another one: --account NAME and --store FILE",
			"this API key differs from the last one of account %q", s.Account(ctx))
	}
	if known.Seen {
		return nil
	}
	return keys.TrustKey(ctx, key)
}

// Gate holds the conditions of --fail-if on the counts of a result.
type Gate []gateCondition

type gateCondition struct {
	text, name, operator string
	than                 float64
	percent              bool // of the rows read
}

// ParseGate parses the values of --fail-if.
func ParseGate(texts []string) (Gate, error) {
	var g Gate
	names, _ := Result{}.namedCounts()
	form := regexp.MustCompile(`^\s*([A-Za-z]+)\s*(>=|<=|==|!=|>|<)\s*(\d{1,15}(?:\.\d{1,6})?)\s*(%?)\s*$`)
	for _, text := range texts {
		m := form.FindStringSubmatch(text)
		if m == nil {
			return nil, command.Usagef("such as --fail-if 'rejected>10', or 'rejected>2%' of the rows read; "+
				"in quotes, since > means a file to the shell",
				"--fail-if %q is no count, operator (> >= < <= == !=) and number or percentage", text)
		}
		if !slices.Contains(names, m[1]) {
			return nil, command.Usagef("counts are "+strings.Join(names, ", "), "--fail-if: %q is no count of the result", m[1])
		}
		than, _ := strconv.ParseFloat(m[3], 64) // the form allows numbers only
		g = append(g, gateCondition{text, m[1], m[2], than, m[4] != ""})
	}
	return g, nil
}

// namedCounts returns the result's counts by their JSON names, and the names in order. A missing count is 0.
func (res Result) namedCounts() (names []string, counts map[string]int64) {
	counts = map[string]int64{}
	for f, v := range reflect.ValueOf(res).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type != reflect.TypeFor[*int64]() && (f.Type != reflect.TypeFor[int64]() || name == "") {
			continue
		}
		names = append(names, name)
		if v = reflect.Indirect(v); v.IsValid() {
			counts[name] = v.Int()
		}
	}
	return names, counts
}

// Covers reports whether a condition is about the named count: then only the gate decides whether the count is a
// failure.
func (g Gate) Covers(name string) bool {
	return slices.ContainsFunc(g, func(c gateCondition) bool { return c.name == name })
}

// operators maps each operator to the results of cmp.Compare(count, number) for which it holds.
var operators = map[string][]int{">": {1}, ">=": {0, 1}, "<": {-1}, "<=": {-1, 0}, "==": {0}, "!=": {-1, 1}}

// Check returns the outcome of a command joined with an error for the conditions that hold.
func (g Gate) Check(res Result, outcome error) error {
	var failed []string
	_, counts := res.namedCounts()
	for _, c := range g {
		count, n, of := counts[c.name], float64(counts[c.name]), ""
		if c.percent {
			n, of = 100*n/float64(max(res.Read, 1)), " of "+command.Number(res.Read)
		}
		if slices.Contains(operators[c.operator], cmp.Compare(n, c.than)) {
			failed = append(failed, fmt.Sprintf("%s is %s%s (--fail-if '%s')", c.name, command.Number(count), of, c.text))
		}
	}
	if failed == nil {
		return outcome
	}
	e := &command.ExitError{Code: command.Partial, Err: errors.New(strings.Join(failed, "; "))}
	if own, ok := errors.AsType[*command.ExitError](outcome); ok {
		e.Code, e.Hint, e.Next = command.Worst(own.Code, e.Code), own.Hint, own.Next
		e.Err = fmt.Errorf("%w; %w", outcome, e.Err)
	} else if outcome != nil {
		return errors.Join(outcome, e)
	}
	return e
}
