// Package compare holds the command that compares a file with what the store, the
// service and events have of its rows.
package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// options is what the line of a compare asked for.
type options struct {
	Files        []string
	Format       string
	Sheet        string
	Skip, Odd    bool
	Offline, All bool
	Stale        string
	createAgain  []string // flags that create reads the same files with
}

// New returns the command that compares files with the other sources.
func New(f *command.Factory) *cobra.Command {
	o := options{createAgain: []string{"map", "carrier-map", "encoding", "strip-spaces", "max-input", "format", "sheet", "accept-odd-values", "skip-invalid"}}
	cmd := &cobra.Command{
		Use:     "compare FILE|-...",
		GroupID: command.GroupOps,
		Short:   "Compare a file with the store, the service and events",
		Long: `compare reads a file as create does, and lists where file, store, service and
verified events differ. It creates nothing. Each line is one difference:

  missing here   in the file, not in the store
  pending, rejected, unknown: in the store, not accepted
  missing there  accepted, but not found by the service
  differs        the sources have different values of a field
  not in file    the store or the service has another number for the referId
  no status yet  accepted, but no response or event had a status yet
  stale          with --stale: not delivered, and no change for that long
  not compared   the service gave no usable response

The fields are trackingNumber, carrierCode (if the file has one) and status (of
the service's response and of the last verified event, where neither is newer).

The commands that resolve the differences follow. The exit status is 6 if
anything differs, else 0.`,
		Example: command.Example("waybill compare orders.csv", "waybill compare orders.csv --stale 48h -o json", "waybill compare orders.csv --offline --all"),
	}
	cmd.RunE = f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
		o.Files = args
		return run(ctx, c, o)
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.Offline, "offline", false, "do not query the service")
	flags.BoolVar(&o.All, "all", false, "list other rows of the account too, as not in file")
	flags.StringVar(&o.Stale, "stale", "", "list rows that are not delivered and have not changed for an `AGE` such as 48h")
	command.SettingFlags(cmd, "map", "carrier-map", "encoding", "strip-spaces", "max-input")
	command.Choice(flags, &o.Format, "format", "auto", "read the input as `FORMAT`", command.InputFormats()...)
	command.SheetFlag(flags, &o.Sheet)
	flags.BoolVar(&o.Skip, "skip-invalid", false, "skip bad rows and compare the others")
	flags.BoolVar(&o.Odd, "accept-odd-values", false, "accept values that look damaged by a spreadsheet or like placeholders")
	command.SettingFlags(cmd, "concurrency", "rate")
	command.Section(flags, command.InputSection, "format", "sheet", "skip-invalid", "accept-odd-values")
	command.ColumnsFlag(cmd, columns(nil))
	return cmd
}

func run(ctx context.Context, call *command.Call, o options) error {
	if len(o.Files) == 0 {
		return command.Usagef("waybill compare orders.csv, or `waybill compare -` to read standard input", "no input")
	}
	staleBefore, err := command.ParseSince("--stale", o.Stale)
	if err != nil {
		return err
	}
	c := &comparison{call: call, account: call.Account(ctx), all: o.All, staleBefore: staleBefore}
	if c.account == "" {
		return command.Usagef("set WAYBILL_BASE_URL or --account", "no account is set")
	}
	if !o.Offline {
		if c.asker, err = call.Asker(ctx); err != nil {
			return err
		}
	}
	in, err := input.OpenFiles(ctx, call, o.Files)
	if err != nil {
		return err
	}
	defer in.Close()
	in.Skip = o.Skip
	in.Options = intake.Options{
		Map: call.Config.Map, Encoding: call.Config.Encoding, StripSpaces: call.Config.StripSpaces, Carriers: call.Config.Carriers,
		Format: intake.Format(o.Format), Sheet: o.Sheet, AcceptOdd: o.Odd,
	}
	judged, err := judge(ctx, call, in)
	if err != nil {
		return c.stopped(ctx, in, err)
	}
	return app.WithScratchStore(ctx, func(scratch *app.Store) error {
		c.file = scratch
		if c.run, err = c.stage(ctx, in, &judged); err != nil {
			return c.stopped(ctx, in, err)
		}
		if err := c.openStore(ctx); err != nil {
			return c.stopped(ctx, in, err)
		}
		return c.report(ctx, in, judged, o)
	})
}

// stopped returns the error of a comparison that stopped: once ctx has ended that is
// why it did, with the command that begins again.
func (c *comparison) stopped(ctx context.Context, in *input.Input, err error) error {
	if ctx.Err() == nil {
		return err
	}
	err = context.Cause(ctx)
	code, hint := command.CodeAndHint(err)
	return &command.ExitError{Code: code, Err: err, Hint: hint, Next: c.repeat(in)}
}

// repeat returns this command line, empty if it can't read the same again.
func (c *comparison) repeat(in *input.Input) string {
	if !in.Repeatable() {
		return ""
	}
	return c.call.Repeat()
}

// judge reads the input whole. Bad rows are an error, or a warning if they are left
// out.
func judge(ctx context.Context, call *command.Call, in *input.Input) (input.Judgement, error) {
	judged, err := in.Judge(ctx, nil)
	if changed := in.Unchanged(); changed != nil && ctx.Err() == nil {
		err = changed
	}
	switch {
	case err != nil:
		return judged, err
	case judged.Read == 0:
		return judged, command.Usagef("check the export", "%s: no data rows", in.Sources[0].Name)
	}
	for _, s := range judged.Summaries {
		input.NoteSheet(call.IO, s)
		input.WarnHidden(call.IO, s)
	}
	return judged, refuseOrWarn(call, in, judged)
}

func refuseOrWarn(call *command.Call, in *input.Input, judged input.Judgement) error {
	bad := &input.BadRowsError{Judged: judged}
	switch {
	case judged.Invalid == 0:
		return nil
	case !in.Skip || judged.Valid == 0:
		return &command.UsageError{Err: bad, Hint: "fix the rows and re-run the same command; --skip-invalid compares the good rows"}
	}
	call.IO.WarningWith(bad.Warning())
	return nil
}

// stage brings the rows of the input into the scratch store, and returns the run
// that holds them.
func (c *comparison) stage(ctx context.Context, in *input.Input, judged *input.Judgement) (ledger.Run, error) {
	var conflicts int64
	plan := ledger.Plan{Account: c.account, Files: in.Names(), Mode: ledger.Async, BatchSize: tracking.MaxAsyncBatch}
	return bulk.Stage(ctx, c.file.Stager, plan, in.Entries(ctx), bulk.StageChecks{
		Conflict: func(x ledger.Conflict) error {
			conflicts++
			judged.AddProblem(input.ConflictProblem(plan.Files, x))
			return nil
		},
		Staged: func() error {
			if conflicts == 0 {
				return in.Unchanged()
			}
			judged.Invalid, judged.Valid = judged.Invalid+conflicts, judged.Valid-conflicts
			return errors.Join(in.Unchanged(), refuseOrWarn(c.call, in, *judged))
		},
	})
}

// openStore opens the store if there is one, and follows what was received.
func (c *comparison) openStore(ctx context.Context) error {
	if err := track.CatchUp(ctx, c.call); err != nil {
		return err
	}
	db, err := c.call.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	c.store = db
	n, err := db.Inbox.Counts(ctx, false)
	c.hasEvents = n.LastEvent > 0
	return err
}

// report prints the differences, their counts, and the commands that settle them.
func (c *comparison) report(ctx context.Context, in *input.Input, judged input.Judgement, o options) error {
	c.counts.create = c.call.CommandLineWith(o.createAgain, append([]string{"create"}, in.Names()...)...)
	c.counts.line = c.call.CommandLine
	err := c.print(ctx)
	n := &c.counts
	if c.erased > 0 {
		c.call.IO.Note("Erased from the store, not compared: %s", command.Plural(c.erased, "row"))
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		code, hint := command.CodeAndHint(err)
		if n.total() > 0 && slices.Contains(command.Precedence(), code) {
			code = command.Worst(code, command.Partial, n.failed)
		}
		return &command.ExitError{
			Code: code, Err: fmt.Errorf("%w; %s of %s compared: %s", err, command.Number(n.rows), command.Plural(c.run.Tally.New, "row"), n.summary()), Hint: hint, Next: c.repeat(in),
		}
	}
	if n.total() == 0 {
		if judged.Invalid > 0 {
			return &command.ExitError{Code: command.Partial, Err: fmt.Errorf("%s and skipped, the others agree", input.BadRows(judged))}
		}
		if n.rows == 1 {
			c.call.IO.Note("The row agrees")
		} else {
			c.call.IO.Note("All %s rows agree", command.Number(n.rows))
		}
		return nil
	}
	n.printCommands(c.call.IO, in.Repeatable())
	text := fmt.Errorf("%s of %s differ: %s", command.Number(n.rows-n.agree), command.Plural(n.rows, "row"), n.summary())
	if n.agree == n.rows {
		text = fmt.Errorf("the file does not have all rows of the account: %s", n.summary())
	}
	return &command.ExitError{Code: command.Worst(command.Partial, n.failed), Err: text, Hint: n.hint}
}
