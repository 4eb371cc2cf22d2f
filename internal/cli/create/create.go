package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// createOptions is what the line of a create asked for.
type createOptions struct {
	Files                    []string
	ReferID, Number, Carrier string
	Sync, DryRun             bool
	SkipInvalid, AllowEmpty  bool
	AcceptOdd                bool
	Rejects, Format          string
	send.PolicyOptions
}

func New(f *command.Factory) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:     "create [FILE|-]...",
		GroupID: command.GroupOps,
		Short:   "Create trackings from CSV, TSV, JSON or JSONL",
		Long: `create reads every row, judges all of them, and only then sends those that
the ledger does not hold already: in batches of up to 1000 (asynchronous), or
with --sync of up to 40. The same command again sends only what is new or still
pending, so after any interruption run it again.

` + send.UnknownText + `
Rejected rows are sent again with --retry-rejected only. See "waybill help rows"
for more of that, and "waybill help input" for what is read.`,
		Example: command.Example(
			"waybill create orders.csv --dry-run",
			"waybill create orders.csv --wait",
			`waybill create export.csv --map referId="Order No" --rejects bad.csv`,
			"waybill create --refer-id ORD-1 --tracking-number 1Z999AA10123456784"),
	}
	cmd.RunE = f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
		o.Files = args
		policy, err := o.Policy(cmd, c.Config)
		if err != nil {
			return err
		}
		return runCreate(ctx, c, o, policy)
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	command.SettingFlags(cmd, "map", "carrier-map", "encoding", "strip-spaces", "batch-size", "concurrency", "rate", "max-input")
	flags.StringVar(&o.ReferID, "refer-id", "", "create one tracking with this identifier of yours")
	flags.StringVar(&o.Number, "tracking-number", "", "the one tracking's number")
	flags.StringVar(&o.Carrier, "carrier-code", "", "the one tracking's carrier code")
	flags.StringVar(&o.Format, "format", "auto", "read the input as csv, tsv, json or jsonl instead of looking at it")
	flags.BoolVar(&o.Sync, "sync", false, "use the synchronous operation, up to 40 rows a batch")
	flags.BoolVar(&o.DryRun, "dry-run", false, "show what would be sent, and send nothing")
	flags.BoolVar(&o.SkipInvalid, "skip-invalid", false, "leave bad rows out instead of refusing the input")
	flags.BoolVar(&o.AcceptOdd, "accept-odd-values", false, "send values that look like spreadsheet damage or placeholders")
	flags.BoolVar(&o.AllowEmpty, "allow-empty", false, "an input without data rows is no error")
	flags.StringVar(&o.Rejects, "rejects", "", "write bad rows to `FILE`, with the reason in a last column")
	o.Flags(cmd)
	flags.BoolVar(&o.RetryRejected, "retry-rejected", false, "send rows again that the service rejected before")
	flags.BoolVar(&o.CheckFirst, "check-first", false, "ask the service for each row that this store does not know, before it is sent")
	return cmd
}

// creation is one create on its way.
type creation struct {
	call    *command.Call
	o       createOptions
	in      *input.Input
	plan    ledger.Plan
	policy  bulk.Policy
	judged  input.Judgement
	started time.Time
}

func runCreate(ctx context.Context, call *command.Call, o createOptions, policy bulk.Policy) error {
	c := &creation{call: call, o: o, policy: policy, started: time.Now()}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	defer c.in.Close()
	return send.WithNextCommand(c.create(ctx), c.again())
}

// create judges the input and sends it.
func (c *creation) create(ctx context.Context) error {
	if err := c.judge(ctx); err != nil {
		return err
	}
	if c.judged.Valid == 0 && c.judged.Invalid == 0 {
		return c.nothing()
	}
	c.plan.Account = c.call.Account(ctx)
	if c.o.DryRun {
		return c.dryRun(ctx)
	}
	return c.send(ctx)
}

// prepare reads the line and opens the input.
func (c *creation) prepare(ctx context.Context) error {
	if err := c.lineUp(ctx); err != nil {
		return err
	}
	cfg := c.call.Config
	c.in.Skip = c.o.SkipInvalid
	c.in.Options = intake.Options{
		Map: cfg.Map, Encoding: cfg.Encoding, StripSpaces: cfg.StripSpaces, Carriers: cfg.Carriers,
		Format: intake.Format(c.o.Format), KeepText: c.o.Rejects != "",
		AcceptOdd: c.o.AcceptOdd,
	}
	c.plan = ledger.Plan{Files: c.in.Names(), Mode: ledger.Async, BatchSize: tracking.MaxAsyncBatch, CheckFirst: c.o.CheckFirst}
	if c.o.Sync {
		c.plan.Mode, c.plan.BatchSize = ledger.Sync, tracking.MaxSyncBatch
	}
	if n := cfg.BatchSize; n > c.plan.BatchSize {
		return cfg.Refuse("batch_size", fmt.Sprintf("%d is more than the %d rows that one %s request may carry", n, c.plan.BatchSize, c.plan.Mode), "use a smaller --batch-size, or none")
	} else if n > 0 {
		c.plan.BatchSize = n
	}
	return nil
}

// lineUp finds out where the rows come from.
func (c *creation) lineUp(ctx context.Context) (err error) {
	o := c.o
	single := o.ReferID != "" || o.Number != "" || o.Carrier != ""
	switch {
	case single && len(o.Files) > 0:
		return command.Usagef("give either files or one row by flags", "files and --refer-id/--tracking-number exclude each other")
	case single && (o.ReferID == "" || o.Number == ""):
		return command.Usagef("waybill create --refer-id R --tracking-number N [--carrier-code C]", "one row needs both --refer-id and --tracking-number")
	case single:
		item := tracking.Item{ReferID: o.ReferID, Number: o.Number, CarrierCode: o.Carrier}
		c.in = &input.Input{Sources: []input.Source{{Name: "command line", Row: &item}}}
		return nil
	case len(o.Files) == 0:
		return command.Usagef("waybill create orders.csv, or `waybill create -` to read standard input", "no input")
	}
	stdin := 0
	for _, f := range o.Files {
		if f == command.StdinName {
			stdin++
		}
	}
	switch {
	case stdin > 1:
		return command.Usagef("name `-` once", "standard input can be read only once")
	case stdin == 1 && c.call.Config.APIKeyFromStdin():
		return command.Usagef("give the key by WAYBILL_API_KEY or in a file", "standard input cannot hold both the API key and the rows")
	}
	c.in, err = input.NewOpener(c.call.Session).Open(ctx, o.Files)
	return err
}

// judge reads the input whole and reports what is wrong with it.
func (c *creation) judge(ctx context.Context) error {
	rejects, err := c.rejectsFile(ctx)
	if err != nil {
		return err
	}
	defer rejects.Discard()
	c.judged, err = c.in.Judge(ctx, rejects.Rows)
	if changed := c.in.Unchanged(); changed != nil && ctx.Err() == nil {
		err = changed
	}
	if err != nil {
		return err
	}
	c.notes()
	if c.judged.Invalid == 0 {
		return nil
	}
	if err := rejects.Commit(); err != nil {
		return err
	}
	bad := &input.BadRowsError{Judged: c.judged, Rejects: c.o.Rejects, Resume: c.again()}
	if !c.o.SkipInvalid || c.judged.Valid == 0 {
		return bad
	}
	c.call.IO.WarningWith(bad.Warning())
	return nil
}

// nothing ends a create of an input without rows.
func (c *creation) nothing() error {
	if c.o.AllowEmpty {
		c.call.IO.Note("no data rows, nothing to do")
		if c.call.Out.Machine() {
			return c.call.Out.Object(send.Result{ElapsedSeconds: c.elapsed()})
		}
		return nil
	}
	return command.Usagef("check the export, or pass --allow-empty if that is fine", "%s: no data rows", c.in.Names()[0])
}

func (c *creation) elapsed() float64 { return command.ElapsedSeconds(c.started) }

// send stages the input, sends what is pending and reports the outcome.
func (c *creation) send(ctx context.Context) error {
	if _, err := c.call.Client(); err != nil {
		return err
	}
	db, err := c.call.Store(ctx)
	if err != nil {
		return err
	}
	if err := c.o.CheckKey(ctx, c.call.Session, db.Accounts, c.plan.Account); err != nil {
		return err
	}
	if err := command.RecoverRows(ctx, c.call.Session, db.Runs); err != nil {
		return err
	}
	run, err := c.stage(ctx, db.Runs)
	if err != nil {
		return err
	}
	if db.New {
		c.call.IO.Warning("made a new store: %s (it knows of no earlier trackings)", db.Path)
	}
	if n := run.Tally.OtherCarrier; n > 0 {
		c.call.IO.Note("%s known with another carrier code; what was sent first stands", command.Plural(n, "row"))
	}
	k := &send.Execution{
		Call: c.call, Store: db, Run: run, Policy: c.policy, Wait: c.o.Wait, Invalid: c.judged.Invalid, Started: c.started, Repeat: c.again(),
	}
	return k.Execute(ctx)
}

// stage brings the input into the ledger. Rows that contradict each other are
// found here, and left out with --skip-invalid.
func (c *creation) stage(ctx context.Context, db bulk.Stager) (ledger.Run, error) {
	found := &conflicts{c: c}
	defer found.close()
	return bulk.Stage(ctx, patientStager{db, c.call.Session}, c.plan, c.in.Entries(ctx), bulk.StageChecks{Conflict: found.add, Staged: func() error {
		if err := c.in.Unchanged(); err != nil {
			return err
		}
		return found.report(ctx)
	}})
}

// Bounds of the wait for another process that stages its input.
const (
	stagingNotice   = time.Second      // a longer wait is announced
	stagingPatience = 10 * time.Minute // unless --timeout says otherwise
)

// patientStager announces whom it waits for, and bounds the wait.
type patientStager struct {
	bulk.Stager
	s *app.Session
}

// Stage is that of the stager, within the bound.
func (p patientStager) Stage(ctx context.Context, plan ledger.Plan) (ledger.Staging, error) {
	most := cmp.Or(p.s.Config.Timeout, stagingPatience)
	staging, err := p.within(ctx, min(most, stagingNotice), plan)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || most <= stagingNotice {
		return staging, err
	}
	if busy := (*ledger.BusyError)(nil); errors.As(err, &busy) {
		p.s.IO.Note("waiting up to %s: %v", config.FormatDuration(most), busy)
	}
	return p.within(ctx, most-stagingNotice, plan)
}

func (p patientStager) within(ctx context.Context, limit time.Duration, plan ledger.Plan) (ledger.Staging, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p.Stager.Stage(ctx, plan)
}

// again is this command, or nothing if it can't be typed again to the same
// effect.
func (c *creation) again() string {
	if !c.in.Repeatable() {
		return ""
	}
	return c.call.Repeat()
}
