package track

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/report"
)

type reportOptions struct {
	filterOptions
	HTML string
	Mask bool
}

// reportJSON is what the command reports.
type reportJSON struct {
	File      string `json:"file"`
	Trackings int64  `json:"trackings"`
	Rows      int    `json:"rows"`  // of its table
	Bytes     int64  `json:"bytes"` // of the file
	Masked    bool   `json:"masked"`
}

// NewReport returns the command that writes a page about trackings.
func NewReport(f *command.Factory) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:     "report",
		GroupID: command.GroupOps,
		Short:   "Write an HTML page about your trackings, to print or send",
		Long: fmt.Sprintf(`report writes one HTML page that shows what this computer knows of your trackings:
problems and stuck trackings first, then status by day, age of what is under way,
carriers, transit times, and a table that sorts and filters. The numbers are those of
"waybill stats". report does not query the service; "waybill list --refresh" does.

The page needs no other file and no network, and prints on A4 and Letter. It is for
you alone (mode 0600) until you send it. It replaces an HTML page, and no other
file. Each tracking is counted on the day on which
its first run created it, by the status that it has now. Stuck trackings are those
of --stuck, %s without another age.

The table has at most %s trackings and the page at most 5 MB: if there are more,
problems and stuck trackings are in the table first, and the page says how to write
all of them as CSV.

--mask leaves identifiers out: references, tracking numbers, texts of events and
reasons, the account and the values of filters, also where a status or a carrier
has one of the store's identifiers in its name, with the same letters and digits.
Names that may mean anything, such as 101, stay in these.`, stuckAfter, view.Number(report.MaxRows)),
		Example: command.Example("waybill report --html report.html", "waybill report --html report.html --since 30d", "waybill report --html run12.html --run 12 --mask", "waybill report --html - > report.html"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runReport(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.HTML, "html", "", "write the page to `FILE`, through a temporary file (- for standard output)")
	flags.BoolVar(&o.Mask, "mask", false, "leave identifiers out")
	o.flags(cmd)
	return cmd
}

func runReport(ctx context.Context, c *command.Call, o reportOptions) error {
	if o.HTML == "" {
		return command.Usagef("give it the name of a file, such as --html report.html", "report needs --html FILE")
	}
	if c.Out.IsCSV() {
		return command.Usagef("`waybill list -o csv` writes the trackings; -o json says what the page has", "report has no CSV")
	}
	_, filter, err := o.filter(ctx, c)
	if err != nil {
		return err
	}
	l := listing{call: c, filter: filter, words: o.words()}
	if o.HTML == command.StdinName {
		c.Out.Whole()
		_, err := l.writeReport(ctx, c.Out.Out(), o.Mask)
		return err
	}
	if err := c.Spare("html", o.HTML); err != nil {
		return err
	}
	file, err := command.NewAtomicFile(ctx, o.HTML)
	if err != nil {
		return err
	}
	defer file.Discard()
	done, err := l.writeReport(ctx, file, o.Mask)
	if err == nil {
		err = file.Commit()
	}
	if err != nil {
		return err
	}
	done.File = o.HTML
	text := fmt.Sprintf("Wrote %s: %s", o.HTML, command.Plural(done.Trackings, "tracking"))
	if int64(done.Rows) < done.Trackings {
		text += fmt.Sprintf(", %s of them in its table", view.Number(int64(done.Rows)))
	}
	return c.Out.Result(done, "%s", text)
}

// writeReport writes the page about what matches.
func (l *listing) writeReport(ctx context.Context, w io.Writer, mask bool) (done reportJSON, err error) {
	if err := l.open(ctx); err != nil {
		return done, err
	}
	r := newReporter(l, mask)
	if err := r.read(ctx); err != nil {
		return done, err
	}
	page := r.page(ctx)
	counted := &countingWriter{w: w}
	done = reportJSON{Trackings: page.Counts.Total(), Masked: mask}
	if done.Rows, err = report.Write(counted, page); err != nil {
		return done, fmt.Errorf("write the report: %w", err)
	}
	done.Bytes = counted.n
	switch {
	case l.db == nil:
		l.call.IO.Note("%s", nothingListed(l.call.Account(ctx)))
	case done.Trackings == 0:
		err = l.explainEmpty(ctx)
	case int64(done.Rows) < done.Trackings:
		l.call.IO.Note("The table has %s of %s trackings: problems and stuck ones first", view.Number(int64(done.Rows)), view.Number(done.Trackings))
		l.call.IO.Next(l.csvCommand())
	}
	return done, err
}

// csvCommand is the command line that writes all that matches as CSV.
func (l *listing) csvCommand() string {
	return l.call.CommandLine(slices.Concat([]string{"list"}, l.words, []string{"-o", "csv", "--out", "trackings.csv"})...)
}

// countingWriter counts what is written.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
