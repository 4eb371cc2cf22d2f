// Package send is what the commands that send rows share: their flags, the
// sending of a run, and the report of its outcome.
package send

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const connectPatience = 2 * time.Minute

// PolicyOptions are the flags of commands that send a run.
type PolicyOptions struct {
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
func (o *PolicyOptions) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Wait, "wait", false, "then wait until the service has worked the trackings out")
	f.StringVar(&o.Unknown, "unknown", string(bulk.Reconcile), "`WAY` to treat rows of unknown outcome: reconcile, resend-one, resend or keep")
	f.StringVar(&o.Settle, "settle", "2m", "`TIME` between the two proofs of absence that an unknown row needs")
	f.Int64Var(&o.MaxRejects, "max-rejects", 100, "stop when more than `N` rows were rejected (0 for no limit)")
	f.BoolVar(&o.Canary, "canary", true, "an account's first row goes alone and is asked for")
	f.BoolVar(&o.SameAccount, "same-account", false, "this API key is new but belongs to the same account")
	f.BoolVar(&o.SeparateAccount, "separate-account", false, "this API key is another account's too, and this one is apart from it")
}

// Policy reads the flags.
func (o *PolicyOptions) Policy(cfg config.Config) (bulk.Policy, error) {
	settle, err := config.ParseDuration(o.Settle)
	if err != nil {
		return bulk.Policy{}, command.Usagef("--settle 2m", "--settle: %w", err)
	}
	ways := []bulk.UnknownAction{bulk.Reconcile, bulk.ResendOne, bulk.Resend, bulk.Keep}
	if !slices.Contains(ways, bulk.UnknownAction(o.Unknown)) {
		return bulk.Policy{}, command.Usagef("use one of reconcile, resend-one, resend, keep", "--unknown %s", o.Unknown)
	}
	if o.MaxRejects < 0 {
		return bulk.Policy{}, command.Usagef("use 0 for no limit", "--max-rejects %d is negative", o.MaxRejects)
	}
	if o.CheckFirst && !bulk.UnknownAction(o.Unknown).Asks() {
		return bulk.Policy{}, command.Usagef("leave --unknown away", "--check-first asks the service, --unknown %s does not", o.Unknown)
	}
	if o.RetryAbsent && !bulk.UnknownAction(o.Unknown).Asks() {
		return bulk.Policy{}, command.Usagef("leave --unknown away", "--absent asks the service, --unknown %s does not", o.Unknown)
	}
	p := bulk.Policy{
		Unknown: bulk.UnknownAction(o.Unknown), Settle: settle, MaxRejects: o.MaxRejects, RetryRejected: o.RetryRejected && !o.RetryAbsent, RetryAbsent: o.RetryAbsent, Canary: o.Canary,
		RefusedMeansNone: cfg.Bulk.RefusedMeansNone, GiveUpAfter: connectPatience, QueryTimeout: command.QueryTimeout, Workers: cfg.Concurrency,
	}
	if cfg.Timeout > 0 && !o.Wait {
		p.GiveUpAfter, p.QueryTimeout = cfg.Timeout, cfg.Timeout
	}
	return p, nil
}

// CheckKey refuses a key never seen on an account that has runs: created with
// the key of another account, trackings would be mixed up for good.
func (o *PolicyOptions) CheckKey(ctx context.Context, s *app.Session, keys ledger.Keys, account string) error {
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

// Execution sends one run to the service and reports the outcome.
type Execution struct {
	Call    *command.Call
	Store   *app.Store
	Run     ledger.Run
	Policy  bulk.Policy
	Wait    bool  // until the accepted rows are processed
	Invalid int64 // records of the input that were left out
	Started time.Time
	Repeat  string // this command, if repeating it continues the run; else empty

	unprovable bool // unknown rows stay so, since there is no accepted row to compare with
}

func (k *Execution) runID() string { return strconv.FormatInt(k.Run.ID, 10) }

// next is the command that continues the run.
func (k *Execution) next() string {
	return cmp.Or(k.Repeat, k.Call.CommandLine("runs", "resume", k.runID()))
}

// Execute sends the rows of the run and reports the outcome.
func (k *Execution) Execute(ctx context.Context) error {
	return WithNextCommand(k.execute(ctx), k.next())
}

func (k *Execution) execute(ctx context.Context) error {
	counts, err := k.Store.Queue.CountRows(ctx, k.Run.ID)
	if err != nil {
		return err
	}
	toSend, toQuery := k.remaining(counts)
	if err := k.announce(ctx, toSend, toQuery); err != nil {
		return err
	}
	requests, sendErr := k.send(ctx, toSend+toQuery)
	if command.As[*store.Error](sendErr) {
		return sendErr
	}
	return k.finish(ctx, requests, sendErr)
}

// remaining is how many rows are to be sent, and how many asked for.
func (k *Execution) remaining(c ledger.Counts) (send, ask int64) {
	send = c.Pending
	if k.Policy.RetryRejected {
		send += c.Rejected
	}
	switch k.Policy.Unknown {
	case bulk.Resend:
		send += c.Unknown
	case bulk.Reconcile, bulk.ResendOne:
		ask = c.Unknown
	}
	if k.Policy.RetryAbsent {
		ask += c.Accepted
	}
	return send, ask
}

// announce says, before the first request, how many rows are sent where.
func (k *Execution) announce(ctx context.Context, send, ask int64) error {
	client, err := k.Call.Client()
	if err != nil {
		return err
	}
	profile, plan := k.Call.Config.Profile, k.Run.Plan
	if profile == "" {
		profile = "none"
	}
	what := fmt.Sprintf("%s to send in %s", command.Plural(send, "row"), command.Plural(Calls(send, plan.BatchSize), "call"))
	if ask > 0 {
		what += fmt.Sprintf(", %d to ask for first", ask)
	}
	k.Call.IO.Note("profile %s, account %s, host %s, store %s: %s", profile, plan.Account, client.Host(), k.Store.Path, what)
	others, err := k.Store.History.Pending(ctx, plan.Account, k.Run.ID)
	if others > 0 {
		k.Call.IO.Note("%s pending in other runs are left alone; `%s` shows them", command.Plural(others, "row"), k.Call.CommandLine("runs", "list"))
	}
	return err
}

// Calls returns how many requests so many rows take.
func Calls(rows int64, batch int) int64 {
	return (rows + int64(batch) - 1) / int64(batch)
}

// service is the tracking service for runs of a mode.
type service struct {
	*api.Client
	mode ledger.Mode
}

// Create sends one batch, once. The reply is never nil.
func (s service) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	if s.mode == ledger.Sync {
		return s.CreateSync(ctx, items)
	}
	return s.CreateAsync(ctx, items)
}

// send sends the rows of the run that remain, and shows progress. The errors are
// those of [bulk.Job.Execute].
func (k *Execution) send(ctx context.Context, rows int64) (requests int64, err error) {
	client, err := k.Call.Client()
	if err != nil {
		return 0, err
	}
	progress := command.NewCreateProgress(k.Call.IO, rows)
	contracts := bulk.Store{Queue: k.Store.Queue, UnknownRows: k.Store.Unknown, Accounts: k.Store.Accounts, Trackings: k.Store.Trackings}
	job := bulk.Job{Ledger: contracts, Service: service{client, k.Run.Plan.Mode}, Gate: k.Call.Gate, Run: k.Run, Policy: k.Policy}
	job.Settled, job.Resolved = progress.Settled, progress.Resolved
	job.Note = func(format string, args ...any) { k.Call.IO.Note("%s", fmt.Sprintf(format, args...)) }
	job.Warn = func(format string, args ...any) { k.Call.IO.Warning("%s", fmt.Sprintf(format, args...)) }
	requests, err = job.Execute(k.Call.Hard(ctx), ctx)
	k.unprovable = job.Unprovable()
	progress.Stop()
	return requests, err
}
