package events

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/replay"
)

// importedJSON is the result of an import. All but events are deliveries.
type importedJSON struct {
	Imported   int64 `json:"imported"`
	Known      int64 `json:"known"` // that were there already
	Verified   int64 `json:"verified"`
	Unverified int64 `json:"unverified"`
	Events     int64 `json:"events"` // that were not known before
}

func newImport(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE|-...",
		Short: "Read exported deliveries into the store",
		Long: `import reads deliveries that "waybill events export" wrote, or captures in the same
form: one JSON object per line, {"receivedAt": TIME, "method", "path", "query",
"headers": [{"name", "value"}], "body" or "bodyBase64"}; - is standard input. If a
line is invalid, nothing is imported.

Each delivery is verified again with your current scheme and secrets, as of the
time it was received; the file's own results are ignored. Verified deliveries count
like any other: they are forwarded and can end a wait. Deliveries and events that
are already stored are not stored again.`,
		Example: command.Example("waybill events import captures.jsonl", "waybill events import --store test.db fixtures/*.jsonl", "waybill events export --store a.db | waybill events import --store b.db -"),
		Args:    command.Between(1, math.MaxInt, "files, or - for standard input"),
		RunE:    f.RunE(runImport),
	}
	return cmd
}

func runImport(ctx context.Context, c *command.Call, files []string) error {
	in, err := input.NewOpener(c.Session).Open(ctx, files)
	if err != nil {
		return err
	}
	defer in.Close()
	total, err := countCaptures(ctx, in)
	if err != nil {
		return err
	}
	verifier, err := c.Verifier()
	if err != nil {
		return err
	}
	db, err := c.Store(ctx)
	if err != nil {
		return err
	}
	imp := &replay.Importer{Store: db.Inbox, Scheme: c.Config.Webhook.Scheme}
	if verifier != nil {
		imp.Verifier = verifier
	}
	p := command.NewProgress(c.IO, "Importing", "deliveries", total)
	j, err := importCaptures(ctx, in, imp, p)
	p.Stop()
	if err != nil {
		next := ""
		if in.Repeatable() {
			next = c.CommandLine(append([]string{"events", "import"}, files...)...)
		}
		return &command.ExitError{Code: command.Failed, Err: fmt.Errorf("%d of %s imported: %w", j.Imported+j.Known, command.Plural(total, "delivery"), err), Next: next}
	}
	if verifier == nil {
		c.IO.Note("No signature scheme is set: imported deliveries are not verified")
	}
	return c.Out.Result(j, "Imported %s with %s: %s verified, %s not verified; %s already stored",
		command.Plural(j.Imported, "delivery"), command.Plural(j.Events, "new event"), command.Number(j.Verified), command.Number(j.Unverified), command.Number(j.Known))
}

// importCaptures imports input that was found to be good.
func importCaptures(ctx context.Context, in *input.Input, imp *replay.Importer, p *command.Progress) (importedJSON, error) {
	var j importedJSON
	for line, err := range captureLines(in) {
		if err == nil {
			err = line.err
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return j, err
		}
		done, err := imp.Import(ctx, line.capture)
		if err != nil {
			return j, err
		}
		p.Add(1)
		if done.Known {
			j.Known++
			continue
		}
		j.Imported++
		j.Events += done.Events
		if done.Verified {
			j.Verified++
		} else {
			j.Unverified++
		}
	}
	return j, nil
}
