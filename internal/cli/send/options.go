package send

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
)

// UnknownText is part of the help of commands that send a run.
const UnknownText = `A row whose outcome nobody knows (the request left, no answer came that can be
believed) is unknown. The service is asked for it, and it is sent again only
when the service has said twice, --settle apart, that it does not have it.`

// connectTimeout is how long a run goes on without a connection, unless
// --timeout says otherwise.
const connectTimeout = 2 * time.Minute

// Options are the flags of commands that send a run.
type Options struct {
	Unknown, Settle string
	MaxRejects      int64
	Wait            bool
	SameAccount     bool
	SeparateAccount bool
	RetryRejected   bool
	RetryAbsent     bool
	CheckFirst      bool
	Canary          bool
}

// Flags adds the flags that every command which sends has.
func (o *Options) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Wait, "wait", false, "then wait until the service has worked the trackings out")
	command.Choice(f, &o.Unknown, "unknown", string(bulk.Reconcile), "`ACTION` for rows of unknown outcome", string(bulk.Reconcile), string(bulk.ResendOne), string(bulk.Resend), string(bulk.Keep))
	f.StringVar(&o.Settle, "settle", "2m", "`DURATION` between the two proofs of absence that an unknown row needs")
	f.Int64Var(&o.MaxRejects, "max-rejects", 100, "stop when more than `N` rows were rejected (0 for no limit)")
	f.BoolVar(&o.Canary, "canary", true, "an account's first row goes alone and is asked for")
	f.BoolVar(&o.SameAccount, "same-account", false, "this API key is new but belongs to the same account")
	f.BoolVar(&o.SeparateAccount, "separate-account", false, "this API key is another account's too, and this one is apart from it")
}

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
		return bulk.Policy{}, command.Usagef("leave --unknown away", "--check-first asks the service, --unknown %s does not", o.Unknown)
	}
	if o.RetryAbsent && !unknown.Queries() {
		return bulk.Policy{}, command.Usagef("leave --unknown away", "--absent asks the service, --unknown %s does not", o.Unknown)
	}
	p := bulk.Policy{
		Unknown: unknown, Settle: settle, MaxRejects: o.MaxRejects, RetryRejected: o.RetryRejected && !o.RetryAbsent, RetryAbsent: o.RetryAbsent, Canary: o.Canary,
		AskFirst: !o.CheckFirst, CheckFirst: o.CheckFirst, RefusedMeansNone: cfg.Bulk.RefusedMeansNone, GiveUpAfter: connectTimeout, QueryTimeout: command.QueryTimeout, Workers: cfg.Concurrency,
	}
	if cfg.Timeout > 0 && !o.Wait {
		p.GiveUpAfter, p.QueryTimeout = cfg.Timeout, cfg.Timeout
	}
	return p, nil
}

// CheckKey refuses a key never seen on an account that has runs: created with
// the key of another account, trackings would be mixed up for good.
func (o *Options) CheckKey(ctx context.Context, s *app.Session, keys ledger.Keys, account string) error {
	key, err := s.Key()
	if err != nil {
		return err
	}
	known, err := keys.LookUpKey(ctx, account, key)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(known.Others, func(other string) bool { return config.OtherPort(account, other) })
	if len(others) > 0 && !known.Seen && !o.SeparateAccount {
		return command.Usagef("pass --account "+shell.Word(others[0])+" if it is the same account under another name, or --separate-account if it is another one: every row is then sent to it",
			"this API key was used for account %q, which has runs in this store, and not for account %q", others[0], account)
	}
	if known.HasRuns && !known.Seen && !o.SameAccount {
		return command.Usagef("pass --same-account if the key was renewed, or --account NAME if it is another account's",
			"this API key was never used for account %q, which has runs in this store", account)
	}
	if known.Seen {
		return nil
	}
	return keys.TrustKey(ctx, account, key)
}
