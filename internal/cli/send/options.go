package send

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// UnknownText is part of the help of commands that send a run.
const UnknownText = `A row is unknown if its request was sent and no usable response came back.
waybill checks it with the service, and sends it again only if two checks,
--settle apart, do not find it.`

// How long a run goes on without a connection, and with pauses only, unless --timeout says otherwise.
const (
	connectTimeout = 15 * time.Second
	pauseTimeout   = 2 * time.Minute
)

// Options are the flags of commands that send a run.
type Options struct {
	Unknown, Settle string
	MaxRejects      int64
	Wait            bool
	SameAccount     bool
	RetryRejected   bool
	RetryAbsent     bool
	CheckFirst      bool
	SkipProof       bool
}

// Flags adds the flags that every command which sends has.
func (o *Options) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Wait, "wait", false, "wait until processing has finished")
	actions := []string{string(bulk.Reconcile), string(bulk.ResendOne), string(bulk.Resend), string(bulk.Keep)}
	command.Choice(f, &o.Unknown, "unknown", actions[0], "`ACTION` for rows with unknown outcome", actions...)
	f.StringVar(&o.Settle, "settle", "2m", "`DURATION` between the two checks that an unknown row does not exist")
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

// RowsSection is the title of flags about rows that were not accepted.
const RowsSection = "Rejected and unknown rows"

// Policy reads the flags.
func (o *Options) Policy(cfg config.Config) (bulk.Policy, error) {
	settle, err := config.ParseDuration(o.Settle)
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
		Unknown: unknown, RecheckDelay: settle, MaxRejects: o.MaxRejects,
		RetryRejected: o.RetryRejected && !o.RetryAbsent, RetryAbsent: o.RetryAbsent,
		SkipProof: o.SkipProof, VerifyPending: o.CheckFirst, Workers: cfg.Concurrency,
		ConnectFor: connectTimeout, GiveUpAfter: pauseTimeout, QueryTimeout: command.QueryTimeout,
	}
	if cfg.Timeout > 0 {
		p.ConnectFor, p.GiveUpAfter, p.QueryTimeout = cfg.Timeout, cfg.Timeout, cfg.Timeout
	}
	return p, nil
}

// Within returns a context that ends with --timeout, if that is set.
func Within(ctx context.Context, c *command.Call) (context.Context, context.CancelFunc) {
	if limit := c.Config.Timeout; limit > 0 {
		return context.WithTimeoutCause(ctx, limit, command.ErrTimeUp)
	}
	return context.WithCancel(ctx)
}

// Hard returns the context that ends requests under way: by a second signal, or past the deadline of ctx.
func Hard(ctx context.Context, c *command.Call) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadlineCause(c.Hard(ctx), end, command.ErrTimeUp)
	}
	return context.WithCancel(c.Hard(ctx))
}

// CheckKey refuses a key never seen on an account that has runs: created with
// the key of another account, trackings would be mixed up for good.
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
