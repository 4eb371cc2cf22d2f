package track

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/report"
)

type reportOptions struct {
	filterOptions
	File string
}

// reportFile is the page that report writes unless a name is given.
const reportFile = "report.html"

type reportJSON struct {
	File      string `json:"file"`
	Trackings int64  `json:"trackings"`
	Rows      int    `json:"rows"` // of its table
}

// NewReport returns the command that writes a page about trackings.
func NewReport(f *command.Factory) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:     "report [FILE]",
		GroupID: command.GroupOps,
		Short:   "Write an HTML page about your trackings, to print or send",
		Long: fmt.Sprintf(`report writes one HTML page that shows what this computer knows of your trackings:
problems and stuck trackings first, then status by day, age of what is under way,
carriers, transit times, and a table that sorts and filters. The numbers are those of
"waybill stats". report does not query the service; "waybill list --refresh" does.

The page is FILE, or %s in the current folder; - is standard output. It needs
no other file and no network, and prints on A4 and Letter. It is for you alone
(mode 0600) until you send it. It replaces an HTML page, and no other file.

Each tracking is counted on the day on which its first run created it, by the status
that it has now. The chart has the last %d days, and all before them as one number.
Stuck trackings are those of --stuck, %s without another age.

The table has at most %s trackings and the page at most 5 MB: if there are more,
problems and stuck trackings are in the table first, and the page says how to write
all of them as CSV.`, reportFile, chartDays, stuckAfter, command.Number(report.MaxRows)),
		Example: command.Example("waybill report", "waybill report march.html --created 2026-03-01..2026-03-31", "waybill report run12.html --run 12", "waybill report - > report.html"),
		Args:    command.Between(0, 1, "one FILE"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			if o.File = reportFile; len(args) > 0 {
				o.File = args[0]
			}
			return runReport(ctx, c, o)
		}),
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd)
	return cmd
}

func runReport(ctx context.Context, c *command.Call, o reportOptions) error {
	if c.Out.IsCSV() {
		return command.Usagef("`waybill list -o csv` writes the trackings; -o json says what the page has", "report has no CSV")
	}
	_, filter, err := o.filter(ctx, c)
	if err != nil {
		return err
	}
	l := listing{call: c, filter: filter, words: o.words()}
	if o.File == command.StdinName {
		c.Out.Whole()
		_, err := l.writeReport(ctx, c.Out.Out())
		return err
	}
	if err := c.SparePage(o.File); err != nil {
		return err
	}
	file, err := command.NewAtomicFile(ctx, o.File)
	if err != nil {
		return err
	}
	defer file.Discard()
	done, err := l.writeReport(ctx, file)
	if err == nil {
		err = file.Commit()
	}
	if err != nil {
		return err
	}
	done.File = o.File
	text := fmt.Sprintf("Wrote %s: %s", o.File, command.Plural(done.Trackings, "tracking"))
	if int64(done.Rows) < done.Trackings {
		text += fmt.Sprintf(", %s of them in its table", command.Number(int64(done.Rows)))
	}
	return c.Out.Result(done, "%s", text)
}

func (l *listing) writeReport(ctx context.Context, w io.Writer) (done reportJSON, err error) {
	if err := l.open(ctx); err != nil {
		return done, err
	}
	r := newReporter(l)
	if err := r.read(ctx); err != nil {
		return done, err
	}
	page := r.page(ctx)
	done = reportJSON{Trackings: page.Counts.Total()}
	if done.Rows, err = report.Write(w, page); err != nil {
		return done, fmt.Errorf("write the report: %w", err)
	}
	switch {
	case done.Trackings == 0:
		err = l.explainEmpty(ctx)
	case int64(done.Rows) < done.Trackings:
		l.call.IO.Note("The table has %s of %s trackings: problems and stuck ones first", command.Number(int64(done.Rows)), command.Number(done.Trackings))
		l.call.IO.Next(l.csvCommand())
	}
	return done, err
}

func (l *listing) csvCommand() string {
	return l.call.CommandLine(slices.Concat([]string{"list"}, l.words, []string{"-o", "csv", "--out", "trackings.csv"})...)
}
