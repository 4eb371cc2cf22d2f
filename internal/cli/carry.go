package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const connectPatience = 2 * time.Minute

// policyOptions are the flags of commands that carry a run to the service.
type policyOptions struct {
	Unknown, Settle string
	MaxRejects      int64
	NoCanary        bool
	RetryRejected   bool
	CheckFirst      bool
}

// flags adds the flags that every command which sends has.
func (o *policyOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Unknown, "unknown", string(bulk.Reconcile), "rows of unknown outcome: `reconcile` asks the service and sends again only what it proves not to have; resend sends them again, which may create them twice; keep leaves them")
	f.StringVar(&o.Settle, "settle", "2m", "how long after its first proof of absence a row must be proven absent again before it is sent again")
	f.Int64Var(&o.MaxRejects, "max-rejects", 100, "stop when more than `N` rows were rejected (0 for no limit)")
	f.Bool("canary", true, "before the first run of an account with more than one batch, send one row alone and ask for it")
}

// policy reads the flags.
func (o *policyOptions) policy(cmd *cobra.Command, cfg config.Config) (bulk.Policy, error) {
	settle, err := config.ParseDuration(o.Settle)
	if err != nil {
		return bulk.Policy{}, usagef("--settle 2m", "--settle: %w", err)
	}
	ways := []bulk.Unknown{bulk.Reconcile, bulk.Resend, bulk.Keep}
	if !slices.Contains(ways, bulk.Unknown(o.Unknown)) {
		return bulk.Policy{}, usagef("use one of reconcile, resend, keep", "--unknown %s", o.Unknown)
	}
	if o.MaxRejects < 0 {
		return bulk.Policy{}, usagef("use 0 for no limit", "--max-rejects %d is negative", o.MaxRejects)
	}
	if o.CheckFirst && bulk.Unknown(o.Unknown) != bulk.Reconcile {
		return bulk.Policy{}, usagef("leave --unknown away", "--check-first asks the service, --unknown %s does not", o.Unknown)
	}
	canary, err := cmd.Flags().GetBool("canary")
	p := bulk.Policy{
		Unknown: bulk.Unknown(o.Unknown), Settle: settle, MaxRejects: o.MaxRejects, RetryRejected: o.RetryRejected, Canary: canary,
		NoneTaken: cfg.Bulk.RefusedMeansNone, GiveUp: connectPatience, Query: queryPatience, Workers: cfg.Concurrency,
	}
	return p, err
}

// carriage is a run on its way to the service.
type carriage struct {
	s      *app.Session
	db     *store.DB
	run    ledger.Run
	policy bulk.Policy
}

// carry carries the run as far as it can be, and shows how it goes. The
// errors are those of [bulk.Job.Carry].
func (k *carriage) carry(ctx context.Context) (requests int64, err error) {
	service, err := k.s.Service(k.run.Plan.Mode)
	if err != nil {
		return 0, err
	}
	progress := newCarryProgress(k.s.IO, k.run)
	learned := k.learner(ctx)
	job := bulk.Job{Ledger: k.db, Service: service, Gate: k.s.Gate, Run: k.run, Policy: k.policy}
	job.Settled = func(b ledger.Batch, r *tracking.Reply) {
		progress.settled(b, r)
		learned.add(b, r)
	}
	job.Resolved = progress.resolved
	job.Say = func(format string, args ...any) { k.s.IO.Note("%s", fmt.Sprintf(format, args...)) }
	requests, err = job.Carry(k.s.Hard(ctx), ctx)
	progress.stop()
	learned.end()
	return requests, err
}

// learner records what the answers to synchronous creates said of each
// tracking, beside the sending.
type learner struct {
	answers chan created
	ended   chan struct{}
}

type created struct {
	items []tracking.Item
	reply *tracking.Reply
}

// mostUnlearned is how many answers may wait to be recorded.
const mostUnlearned = 64

func (k *carriage) learner(ctx context.Context) *learner {
	l := &learner{}
	if k.run.Plan.Mode != ledger.Sync {
		return l
	}
	l.answers, l.ended = make(chan created, mostUnlearned), make(chan struct{})
	go func() {
		defer close(l.ended)
		for c := range l.answers {
			if err := k.s.LearnCreated(context.WithoutCancel(ctx), k.db, k.run.Plan.Account, c.items, c.reply); err != nil {
				k.s.IO.Warning("the rows are recorded as accepted, but not what the answer said of them: %v", err)
			}
		}
	}()
	return l
}

func (l *learner) add(b ledger.Batch, r *tracking.Reply) {
	if l.answers != nil && r.Outcome == tracking.OutcomeAccepted {
		l.answers <- created{b.Items(), r}
	}
}

func (l *learner) end() {
	if l.answers != nil {
		close(l.answers)
		<-l.ended
	}
}
