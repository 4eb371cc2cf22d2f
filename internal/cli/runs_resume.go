package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
)

func (r *runner) runsResume() *cobra.Command {
	var o policyOptions
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Go on with a run: ask for its unknown rows, send its pending ones",
		Long: `resume does for the input of a run what the same create again does, from what
the ledger holds: also when the input came from standard input or is gone.
Rejected rows stay as they are. A run that another waybill is working on is
shared with it.

` + unknownText,
		Example: example("waybill runs resume 3", "waybill runs resume 3 --unknown keep"),
	}
	r.resuming(cmd, &o)
	return cmd
}

func (r *runner) runsRetry() *cobra.Command {
	o := policyOptions{RetryRejected: true}
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Send a run's rejected rows again as they are, or those that got lost",
		Long: `retry makes the rejected rows of a run's input pending, then goes on as "waybill
runs resume" does. Rows that are wrong in themselves are better mended: see
"waybill runs rows --help".

With --absent it asks the service for the accepted rows instead. Those that it
says it does not have are unknown from then on, and sent again by the same proof
as all unknown rows ("waybill help rows").`,
		Example: example("waybill runs retry 3", "waybill runs retry 3 --max-rejects 0", "waybill runs retry 3 --absent"),
	}
	cmd.Flags().BoolVar(&o.RetryAbsent, "absent", false, "not the rejected rows, but accepted ones that the service proves not to have")
	r.resuming(cmd, &o)
	return cmd
}

// resuming adds to a command what resume and retry share.
func (r *runner) resuming(cmd *cobra.Command, o *policyOptions) {
	cmd.Args = oneRun()
	cmd.Flags().SortFlags = false
	settingFlags(cmd, "concurrency", "rate")
	o.flags(cmd)
	cmd.RunE = r.run(func(ctx context.Context, s *app.Session, args []string) error {
		return r.resumeRun(ctx, s, cmd, *o, args[0])
	})
}

// resumeRun carries a run that is in the ledger already.
func (r *runner) resumeRun(ctx context.Context, s *app.Session, cmd *cobra.Command, o policyOptions, id string) error {
	policy, err := o.policy(cmd, s.Config)
	if err != nil {
		return err
	}
	k := &carriage{r: r, s: s, policy: policy, wait: o.Wait, started: time.Now()}
	if k.db, k.run.ID, err = openRun(ctx, s, id); err != nil {
		return err
	}
	found, err := k.db.Run(ctx, k.run.ID)
	if err != nil {
		return err
	}
	k.run = found.Run
	if _, err := s.Client(); err != nil {
		return err
	}
	if account := k.run.Plan.Account; account != s.Account(ctx) {
		return usagef("use the profile or --base-url of that account; if it is the same one by another name, add --account "+shellWord(account),
			"run %d belongs to account %s, and this is account %s", k.run.ID, quoted(account), quoted(s.Account(ctx)))
	}
	if err := o.checkKey(ctx, s, k.db, s.Account(ctx)); err != nil {
		return err
	}
	k.again, k.same = r.command("runs", "resume", k.id()), false
	if !policy.RetryRejected {
		k.again, k.same = commandLine(append([]string{"waybill"}, r.args...)...), true
	}
	return goesOn(k.through(ctx), k.again)
}
