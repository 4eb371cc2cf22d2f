package runs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/send"
)

func newResume(f *command.Factory) *cobra.Command {
	var o send.PolicyOptions
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Go on with a run: ask for its unknown rows, send its pending ones",
		Long: `resume does for the input of a run what the same create again does, from what
the ledger holds: also when the input came from standard input or is gone.
Rejected rows stay as they are. A run that another waybill is working on is
shared with it.

` + send.UnknownText,
		Example: command.Example("waybill runs resume 3", "waybill runs resume 3 --unknown keep"),
	}
	resuming(f, cmd, &o)
	return cmd
}

func newRetry(f *command.Factory) *cobra.Command {
	o := send.PolicyOptions{RetryRejected: true}
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Send a run's rejected rows again as they are, or those that got lost",
		Long: `retry makes the rejected rows of a run's input pending, then goes on as "waybill
runs resume" does. Rows that are wrong in themselves are better mended: see
"waybill runs rows --help".

With --absent it asks the service for the accepted rows instead. Those that it
says it does not have are unknown from then on, and sent again by the same proof
as all unknown rows ("waybill help rows").`,
		Example: command.Example("waybill runs retry 3", "waybill runs retry 3 --max-rejects 0", "waybill runs retry 3 --absent"),
	}
	cmd.Flags().BoolVar(&o.RetryAbsent, "absent", false, "not the rejected rows, but accepted ones that the service proves not to have")
	resuming(f, cmd, &o)
	return cmd
}

// resuming adds to a command what resume and retry share.
func resuming(f *command.Factory, cmd *cobra.Command, o *send.PolicyOptions) {
	cmd.Args = oneRun()
	cmd.Flags().SortFlags = false
	command.SettingFlags(cmd, "concurrency", "rate")
	o.Flags(cmd)
	cmd.RunE = f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
		return resumeRun(ctx, c, *o, args[0])
	})
}

// resumeRun carries a run that is in the ledger already.
func resumeRun(ctx context.Context, c *command.Call, o send.PolicyOptions, id string) error {
	policy, err := o.Policy(c.Cmd, c.Config)
	if err != nil {
		return err
	}
	k := &send.Execution{Call: c, Policy: policy, Wait: o.Wait, Started: time.Now()}
	if k.Db, k.Run.ID, err = command.OpenRun(ctx, c.Session, id); err != nil {
		return err
	}
	found, err := k.Db.Run(ctx, k.Run.ID)
	if err != nil {
		return err
	}
	k.Run = found.Run
	if _, err := c.Client(); err != nil {
		return err
	}
	if account := k.Run.Plan.Account; account != c.Account(ctx) {
		return command.Usagef("use the profile or --base-url of that account; if it is the same one by another name, add --account "+command.ShellWord(account),
			"run %d belongs to account %s, and this is account %s", k.Run.ID, command.Quoted(account), command.Quoted(c.Account(ctx)))
	}
	if err := o.CheckKey(ctx, c.Session, k.Db, c.Account(ctx)); err != nil {
		return err
	}
	k.Again, k.Same = c.CommandLine("runs", "resume", k.Id()), false
	if !policy.RetryRejected {
		k.Again, k.Same = command.CommandLine(append([]string{"waybill"}, c.Line...)...), true
	}
	return send.WithNextCommand(k.Execute(ctx), k.Again)
}
