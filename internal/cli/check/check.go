// Package check holds the command that says what is wrong or odd with a file, and
// what create shows of the same findings.
package check

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/findings"
)

type options struct {
	Files  []string
	Strict bool
	input.Flags
}

// New returns the command that checks files.
func New(f *command.Factory) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "check FILE|-...",
		Short: "Say what is wrong with a file before it is sent",
		Long: `check reads a file as create does, and lists what is wrong with it, or unusual. It
needs no settings, no key and no store, sends nothing and changes nothing.

  error    create refuses the row
  warning  create sends it as it is, and it is likely wrong: a check digit that
           does not fit, letters that look like digits, lost leading zeros, one
           number under two orders ...
  note     create sends it as it is: repeated rows, orders in several parcels,
           columns that are not used ...

The numbers are counted by the carrier's form that they have. "waybill help input"
says which check digits are checked, and what each kind of finding means.

The exit status is 2 if there are errors, or with --strict warnings, else 0.`,
		Example: command.Example("waybill check orders.csv", "waybill check orders.csv -o csv --out findings.csv",
			`waybill check export.csv --map referId="Order No" --strict`),
	}
	cmd.RunE = f.WithArgs(&o.Files, func(ctx context.Context, c *command.Call) error { return run(ctx, c, o) })
	StrictFlag(cmd, &o.Strict)
	o.AddRows(cmd)
	command.ColumnsFlag(cmd, columns())
	return cmd
}

// StrictFlag adds --strict.
func StrictFlag(cmd *cobra.Command, strict *bool) {
	cmd.Flags().BoolVar(strict, "strict", false, "treat warnings of `waybill check` as errors")
}

func run(ctx context.Context, call *command.Call, o options) error {
	if len(o.Files) == 0 {
		return command.Usagef("waybill check orders.csv, or `waybill check -` to read standard input", "no input")
	}
	if err := o.CheckSaveMap(call); err != nil {
		return err
	}
	in, err := input.OpenFiles(ctx, call, o.Files)
	if err != nil {
		return err
	}
	defer in.Close()
	in.Options = o.Options(call)
	collector := findings.New()
	defer collector.Close()
	judged, err := in.Judge(ctx, collector)
	switch {
	case err != nil:
		return err
	case judged.Read == 0:
		return command.Inputf("check the export", "%s: no data rows", in.Sources[0].Name)
	}
	if err := o.KeepMap(call); err != nil {
		return err
	}
	for _, s := range judged.Summaries {
		input.NoteSheet(call.IO, s)
	}
	report := judged.Found
	if err := printReport(call, judged); err != nil {
		return err
	}
	wrong := report.Count(findings.Error)
	if o.Strict {
		wrong += report.Count(findings.Warning)
	}
	text := command.Plural(judged.Read, "row") + ": " + counts(report)
	if wrong > 0 {
		const hint = "fix the file or the export, then check it again"
		return &command.UsageError{Err: command.FoundError(text), Hint: hint, Reason: command.ReasonInput}
	}
	call.IO.Note("%s", text)
	return nil
}

func counts(r *findings.Report) string {
	var parts []string
	for _, s := range []findings.Severity{findings.Error, findings.Warning, findings.Note} {
		if n := r.Count(s); n > 0 {
			parts = append(parts, command.Plural(n, string(s)))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing found")
}
