// Package create has the command that creates trackings: it checks the whole input,
// stages it in the ledger and sends the pending rows.
package create

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/check"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/findings"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type createOptions struct {
	Files                    []string
	ReferID, Number, Carrier string
	Sync, DryRun             bool
	SkipInvalid, AllowEmpty  bool
	Strict                   bool
	Rejects                  string
	FailIf                   []string
	input.Flags
	send.Options
}

// New returns the command that creates trackings.
func New(f *command.Factory) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create [FILE|-]...",
		Short: "Create trackings from XLSX, CSV, TSV, JSON or JSONL",
		Long: `create reads and checks all rows, then sends those that are not in the store
yet, in batches of up to 1000 (asynchronous) or, with --sync, of up to 40.

Re-run the same command at any time: it sends only new and pending rows. After
an interruption it continues. If a large input was interrupted while it was still
being stored, "waybill runs show" calls the run partial, and the same command
sends the rest.

` + send.UnknownText + `
Rejected rows are sent again only with --retry-rejected. See also "waybill help
rows" and "waybill help input".`,
		Example: command.Example(
			"waybill create orders.csv --dry-run",
			"waybill create orders.csv --wait",
			`waybill create export.csv --map referId="Order No" --rejects bad.csv`,
			"waybill create --refer-id ORD-1 --tracking-number 1Z999AA10123456784"),
	}
	cmd.RunE = f.WithArgs(&o.Files, func(ctx context.Context, c *command.Call) error { return runCreate(ctx, c, o) })
	flags := cmd.Flags()
	o.AddRows(cmd)
	flags.StringVar(&o.ReferID, "refer-id", "", "create one tracking with your identifier `ID`")
	flags.StringVar(&o.Number, "tracking-number", "", "`NUMBER` of that tracking")
	flags.StringVar(&o.Carrier, "carrier-code", "", "carrier `CODE` of that tracking")
	flags.BoolVar(&o.Sync, "sync", false, "use the synchronous operation, up to 40 rows a batch")
	command.DryRunFlag(flags, &o.DryRun)
	flags.BoolVar(&o.SkipInvalid, "skip-invalid", false, "skip bad rows and send the others")
	check.StrictFlag(cmd, &o.Strict)
	flags.BoolVar(&o.AllowEmpty, "allow-empty", false, "accept an input without data rows")
	flags.StringVar(&o.Rejects, "rejects", "", "write bad rows to `FILE`, with the reason in the last column")
	o.Options.Flags(cmd)
	flags.StringArrayVar(&o.FailIf, "fail-if", nil, "exit with 6 if `EXPR` holds of the result, such as 'rejected>10' "+
		"or 'rejected>2%': a count of the JSON result, > >= < <= == or !=, a number or percentage of the rows read "+
		"(repeatable). rejected and invalid rows are no failure otherwise, once they are named")
	flags.BoolVar(&o.RetryRejected, "retry-rejected", false, "send rejected rows again")
	o.CheckFirstFlag(flags)
	command.SettingFlags(cmd, "batch-size", "concurrency", "rate")
	command.ColumnsFlag(cmd, send.CountColumns())
	command.Advanced(flags, "wait", "dry-run", "skip-invalid", "rejects", "strict", "map", "carrier-map", "sheet",
		"refer-id", "tracking-number", "fail-if")
	return cmd
}

type creation struct {
	send.Execution // of the run, once the input is staged

	o       createOptions
	in      *input.Input
	checked input.Checked
	plan    ledger.Plan
}

func runCreate(ctx context.Context, call *command.Call, o createOptions) error {
	c := &creation{Execution: send.Execution{Call: call, Wait: o.Wait, Started: time.Now()}, o: o}
	ctx, cancel := call.Within(ctx)
	defer cancel()
	var err error
	if c.Policy, err = o.Policy(call.Config); err != nil {
		return err
	}
	if c.Gate, err = send.ParseGate(o.FailIf); err != nil {
		return err
	}
	if !o.Wait && (c.Gate.Covers("processed") || c.Gate.Covers("waiting")) {
		return command.Usagef("add --wait", "--fail-if: processed and waiting are counted with --wait only")
	}
	if err := o.CheckSaveMap(call); err != nil {
		return err
	}
	if c.in, err = openInput(ctx, call, o); err != nil {
		return send.WithNextCommand(err, "")
	}
	defer c.in.Close()
	c.in.Skip, c.in.Options = o.SkipInvalid, o.Flags.Options(call)
	if c.in.Repeatable() {
		c.Repeat = call.Repeat()
	}
	if c.plan, err = newPlan(call.Config, o, c.in.Names()); err != nil {
		return err
	}
	return send.WithNextCommand(c.execute(ctx), c.Repeat)
}

func newPlan(cfg config.Config, o createOptions, files []string) (ledger.Plan, error) {
	plan := ledger.Plan{Files: files, Mode: ledger.Async, BatchSize: tracking.MaxAsyncBatch, CheckFirst: o.CheckFirst}
	if o.Sync {
		plan.Mode, plan.BatchSize = ledger.Sync, tracking.MaxSyncBatch
	}
	if n := cfg.BatchSize; n > plan.BatchSize && cfg.Origin("batch_size").Level == config.FromFlag {
		message := fmt.Sprintf("%d is more than %d, the maximum of one %s request", n, plan.BatchSize, plan.Mode)
		return plan, cfg.Refuse("batch_size", message, "use a smaller --batch-size, or omit it")
	} else if n > 0 {
		plan.BatchSize = min(n, plan.BatchSize) // a configured size may be meant for v2
	}
	return plan, nil
}

// openInput opens the files, or the row of the flags. The caller closes it.
func openInput(ctx context.Context, c *command.Call, o createOptions) (*input.Input, error) {
	single := o.ReferID != "" || o.Number != "" || o.Carrier != ""
	switch {
	case single && len(o.Files) > 0:
		return nil, command.Usagef("pass either files or the flags of one row",
			"files can't be combined with --refer-id and --tracking-number")
	case single && (o.ReferID == "" || o.Number == ""):
		return nil, command.Usagef("waybill create --refer-id R --tracking-number N [--carrier-code C]",
			"--refer-id and --tracking-number must be used together")
	case single:
		item := tracking.Item{ReferID: o.ReferID, Number: o.Number, CarrierCode: o.Carrier}
		return &input.Input{Sources: []input.Source{{Name: "command line", Row: &item}}}, nil
	case len(o.Files) == 0:
		return nil, command.Usagef("waybill create orders.csv, or `waybill create -` to read standard input", "no input")
	}
	return input.OpenFiles(ctx, c, o.Files)
}

func (c *creation) check(ctx context.Context) error {
	var file *command.AtomicFile // nil without --rejects
	if c.o.Rejects != "" {
		err := c.Call.Spare("rejects", c.o.Rejects)
		if err == nil {
			file, err = command.NewAtomicFile(ctx, c.o.Rejects)
		}
		if err != nil {
			return err
		}
	}
	defer file.Discard()
	collector := findings.New()
	defer collector.Close()
	var err error
	if c.checked, err = c.in.Check(ctx, collector); err != nil {
		return err
	}
	if err := c.o.KeepMap(c.Call); err != nil {
		return err
	}
	if err := c.checkRejectsName(); err != nil {
		return err
	}
	for _, s := range c.checked.Summaries {
		printSummaryNotes(c.Call.IO, s)
	}
	if err := c.checked.Swapped(); err != nil {
		return err
	}
	if !c.o.Strict {
		check.Warn(c.Call.IO, c.checked.Found)
	}
	if c.checked.Invalid > 0 {
		if err := c.commitRejects(ctx, file); err != nil {
			return err
		}
		if !c.in.Skip || c.checked.Valid == 0 {
			return c.checked.Refuse("nothing was sent", c.badRowsHint(), c.Repeat)
		}
		bad := c.checked.Issues
		text := input.BadRows(c.checked) + "; skipped"
		c.Call.IO.WarningWith(term.Failure{Message: text, Errors: bad.First, More: bad.More})
	} else if err := c.removeOldRejects(); err != nil {
		return err
	}
	if c.o.Strict && c.checked.Found.Count(findings.Warning) > 0 {
		return check.Refuse(c.checked.Found)
	}
	return nil
}

func (c *creation) badRowsHint() string {
	if c.o.Rejects != "" {
		return "the bad rows are in " + command.Quoted(c.o.Rejects) +
			": fix them there or in the source, or send the good rows with --skip-invalid"
	}
	return "fix the rows and re-run the same command; --skip-invalid sends the good rows, " +
		"--rejects FILE writes the bad rows to a file"
}

// removeOldRejects removes the --rejects file of an earlier command, since there are no bad rows now.
func (c *creation) removeOldRejects() error {
	info, err := os.Lstat(c.o.Rejects)
	if err != nil || !info.Mode().IsRegular() { // no --rejects, or no file
		return nil //nolint:nilerr // see above
	}
	if err := os.Remove(c.o.Rejects); err != nil {
		return err
	}
	c.Call.IO.Note("No bad rows: %s of an earlier command removed", c.o.Rejects)
	return nil
}

// checkRejectsName returns an error if the file extension does not fit the input's format: spreadsheets refuse such
// files.
func (c *creation) checkRejectsName() error {
	ending := filepath.Ext(c.o.Rejects)
	if ending == "" {
		return nil
	}
	named := strings.EqualFold(ending, ".xlsx")
	for _, s := range c.checked.Summaries {
		right := s.Format
		if right == "" || s.Bad == 0 && len(c.checked.Summaries) > 1 || (right == intake.XLSX) == named {
			continue
		}
		if right == intake.JSON {
			right = intake.JSONL // the format of its rejects
		}
		return command.Usagef("use another name",
			"--rejects %s must end in .%s, as the input %s does", c.o.Rejects, right, s.Name)
	}
	return nil
}

func (c *creation) commitRejects(ctx context.Context, file *command.AtomicFile) error {
	if file == nil {
		return nil
	}
	if err := c.in.WriteRejects(ctx, file); err != nil {
		return err
	}
	return file.Commit()
}

func printSummaryNotes(io *term.IO, s input.SourceSummary) {
	input.NoteSheet(io, s)
	input.WarnHidden(io, s)
	unused := slices.DeleteFunc(slices.Clone(s.Ignored), func(name string) bool { return slices.Contains(s.Own, name) })
	leftOut, leftOutHint := s.LeftOutText()
	exchanged, exchangedHint := s.ExchangedText()
	long := " longer than " + command.Number(intake.MaxOwnText) + " bytes not kept"
	const kept = "columns kept with the rows, not sent (list --columns shows them): "
	const latin = " kept that are not UTF-8: read as Windows-1252; --encoding names another encoding"
	for _, particular := range []struct {
		found bool
		say   func(format string, args ...any)
		text  string
	}{
		{len(s.Hidden) > 0, io.Note, "invisible characters removed from column names: " + input.QuotedList(s.Hidden)},
		{len(unused) > 0, io.Note, "columns not used: " + input.QuotedList(unused)},
		{len(s.Own) > 0, io.Note, kept + input.QuotedList(s.Own)},
		{s.OwnLong > 0, io.Warning, command.Plural(s.OwnLong, "value") + long},
		{s.OwnLatin > 0, io.Warning, command.Plural(s.OwnLatin, "value") + latin},
		{leftOut != "", io.Note, leftOut + "; " + leftOutHint},
		{s.Trimmed > 0, io.Note, "white space trimmed from " + command.Plural(s.Trimmed, "value")},
		{s.Stripped > 0, io.Note, "spaces removed from " + command.Plural(s.Stripped, "tracking number")},
		{exchanged != "" && !s.Swapped(), io.Warning, exchanged + "; " + exchangedHint},
		{s.Empty > 0, io.Note, command.Plural(s.Empty, "empty row") + " skipped"},
	} {
		if particular.found {
			particular.say("%s: %s", s.Name, particular.text)
		}
	}
}

func (c *creation) execute(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	if c.checked.Valid == 0 && c.checked.Invalid == 0 {
		return c.reportNoRows()
	}
	c.plan.Skipped = c.checked.Invalid
	for _, s := range c.checked.Summaries {
		c.plan.Own = append(c.plan.Own, s.Own...)
	}
	if set := c.Call.Config.SetByProject("map", "maps", "carriers"); len(set) > 0 {
		c.Call.IO.Note("%s of this folder sets %s", config.ProjectFile, strings.Join(set, ", "))
	}
	if limit := c.Call.Config.Timeout; limit > 0 {
		c.Call.StoreUntil = c.Started.Add(limit)
	}
	if c.o.DryRun {
		return app.WithScratchStore(ctx, c.dryRun)
	}
	return c.send(ctx)
}

func (c *creation) reportNoRows() error {
	if !c.o.AllowEmpty {
		return command.Inputf("check the export, or pass --allow-empty", "%s: no data rows", c.plan.Files[0])
	}
	c.Call.IO.Note("No data rows")
	res := send.Result{ElapsedSeconds: command.ElapsedSeconds(c.Started)}
	if c.Call.Out.Machine() {
		if err := c.Call.Out.Object(res); err != nil {
			return err
		}
	}
	return c.Gate.Check(res, nil)
}

func (c *creation) send(ctx context.Context) error {
	if _, err := c.Call.Client(); err != nil {
		return err
	}
	db, err := c.Call.Store(ctx)
	if err != nil {
		return err
	}
	if err := c.o.CheckKey(ctx, c.Call.Session, db.Keys); err != nil {
		return err
	}
	if err := command.RecoverRows(ctx, c.Call.Session, db.Queue); err != nil {
		return err
	}
	c.Store, c.Rows, c.Invalid = db, c.checked.Valid, c.checked.Invalid
	if !c.plan.CheckFirst && c.checked.Valid > int64(4*c.plan.BatchSize) {
		// More than a few batches, and no rows to query first: rows are sent while others are staged.
		hard, cancel := send.Hard(ctx, c.Call)
		defer cancel()
		c.in.Sending = true
		stager := waitingStager{db.Stager, c.Call.Session}
		if c.Feed, err = bulk.BeginFeed(ctx, hard, stager, c.plan, c.in.Entries(hard), c.stageChecks()); err != nil {
			return err
		}
		defer func() { _ = c.Feed.Wait() }() // the run has reported its error
		c.Run = c.Feed.Run()
	} else if c.Run, err = c.stage(ctx, db.Stager); err != nil {
		return err
	}
	if db.New {
		c.Call.IO.Warning("new store: %s (without earlier trackings)", db.Path)
	}
	if c.Feed == nil {
		c.noteKnown(ctx)
	}
	err = c.Execute(ctx)
	if c.Feed != nil {
		c.noteKnown(ctx)
	}
	return err
}

func (c *creation) noteKnown(ctx context.Context) {
	if n := c.Run.Tally.OtherCarrier; n > 0 {
		c.Call.IO.Note("%s sent before with another carrier code; the first code is kept", command.Plural(n, "row"))
	}
	known, err := c.Store.Stager.KnownOrders(ctx, c.Run.ID)
	if err != nil || known.Rows == 0 {
		return // not worth failing for a note
	}
	first, before := known.First, known.Before
	rows := command.Plural(known.Rows, "new row")
	if c.Rows > ledger.ComparedOrders {
		rows += " of the first " + command.Number(ledger.ComparedOrders)
	}
	c.Call.IO.Note("%s for a known order, the first at %s: %s with %s; sent before: %s with %s", rows,
		intake.RowPlace(first.File, first.Line, first.Row, ""),
		command.Quoted(first.Item.ReferID), command.Quoted(first.Item.Number),
		command.Quoted(before.ReferID), command.Quoted(before.Number))
}

func (c *creation) stage(ctx context.Context, stager ledger.Stager) (ledger.Run, error) {
	return bulk.Stage(ctx, waitingStager{stager, c.Call.Session}, c.plan, c.in.Entries(ctx), c.stageChecks())
}

// stageChecks return errors for an input that changed after it was checked.
func (c *creation) stageChecks() bulk.StageChecks {
	return bulk.StageChecks{
		Conflict: func(ledger.Conflict) error {
			return command.Usagef("re-run the command", "the input has changed while it was read")
		},
		Staged: c.in.Unchanged,
	}
}

// Limits of the wait while another process stages its input.
const (
	stagingNotice = time.Second      // longer waits are announced
	stagingLimit  = 10 * time.Minute // unless --timeout ends it
)

// waitingStager waits while another process stages its input, up to a limit, and names that process.
type waitingStager struct {
	ledger.Stager
	s *app.Session
}

// Stage begins a staging. At the limit it returns the stager's error.
func (p waitingStager) Stage(ctx context.Context, plan ledger.Plan) (ledger.Staging, error) {
	limit := stagingLimit
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end)
	}
	soon, cancel := context.WithTimeout(ctx, min(limit, stagingNotice))
	defer cancel()
	staging, err := p.Stager.Stage(soon, plan)
	if err == nil || soon.Err() == nil || ctx.Err() != nil {
		return staging, err
	}
	if busy, ok := errors.AsType[*ledger.BusyError](err); ok {
		p.s.IO.Note("Waiting up to %s: %v", config.FormatDuration(limit), busy)
	} else if trouble, ok := errors.AsType[*store.Error](err); ok {
		p.s.IO.Note("Waiting up to %s: %v", config.FormatDuration(limit), trouble)
	}
	ctx, cancel = context.WithTimeout(ctx, limit-stagingNotice)
	defer cancel()
	return p.Stager.Stage(ctx, plan)
}
