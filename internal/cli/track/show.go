// Package track has the commands that show, await and list trackings.
package track

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type showOptions struct {
	refOptions
	Timeline bool
}

// NewShow returns the command that asks the service about trackings.
func NewShow(f *command.Factory) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:     "show REF...",
		GroupID: command.GroupOps,
		Short:   "Show status and timeline of trackings",
		Long: `show asks the service about each REF, your own identifier of the shipment. One
REF gives its status and timeline; several give one row each.

If a verified event is newer than the service's answer, by the latest checkpoint
or the time of update in both, the event counts. A note says so, and olderAnswer
in JSON shows what the answer said.`,
		Example: command.Example("waybill show ORD-1001", "waybill show 1Z999AA10123456784 --by tracking-number", "waybill show ORD-1 ORD-2 -o json"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Refs = args
			return runShow(ctx, c, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.Timeline, "timeline", false, "with several REFs: the timeline of each")
	return cmd
}

func runShow(ctx context.Context, c *command.Call, o showOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	qs, err := o.queries(ctx, c)
	if err != nil {
		return err
	}
	asker, err := c.Asker(ctx)
	if err != nil {
		return err
	}
	if err := catchUp(ctx, c); err != nil {
		return err
	}
	all, err := queryAll(ctx, c, asker, qs)
	if err != nil {
		return err
	}
	return report(ctx, c, asker, all, o)
}

// queryAll asks all questions, a few at a time, and returns what came of each
// in order. The first answer that every other question would meet too ends it
// and is the error, unless there is one question alone.
func queryAll(ctx context.Context, c *command.Call, asker *query.Asker, qs []tracking.Query) ([]query.Result, error) {
	patience := c.Config.Timeout
	if patience == 0 {
		patience = command.QueryTimeout
	}
	all := make([]query.Result, len(qs))
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(c.Config.Concurrency)
	for i, q := range qs {
		g.Go(func() error {
			if asking.Err() != nil {
				return context.Cause(asking) // the first error is what ended it
			}
			all[i] = asker.QueryWithRetry(asking, q, patience)
			if query.Fatal(all[i].Err) {
				return all[i].Err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil && len(qs) > 1 {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, nil
}

// report adds the events that did not verify, prints the results, and returns
// the error that the exit status stands for.
func report(ctx context.Context, c *command.Call, asker *query.Asker, all []query.Result, o showOptions) error {
	var beside unverified
	for _, res := range all {
		if err := asker.AddUnverified(ctx, res); err != nil {
			return err
		}
		for _, t := range res.Trackings {
			if t.Unverified != nil {
				beside.add(*t.Unverified)
			}
		}
	}
	n, out := view.NewStatusNames(c.Config.Statuses), c.Out
	noteOlder(n, c.IO, all)
	if !o.single() {
		if err := printResults(out, n, all, o.Timeline); err != nil {
			return err
		}
		if !out.Machine() && !o.Timeline {
			beside.note(c.IO, n)
		}
		return combineErrors(all)
	}
	switch res := all[0]; {
	case res.Err != nil && len(res.Trackings) == 0:
		return res.Err
	case out.Machine():
		return errors.Join(out.Object(n.Answer(res)), res.Err)
	case errors.Is(res.Err, tracking.ErrAbsent):
		return named(res)
	case out.IsCSV(): // one table, not two and a header
		return errors.Join(printResults(out, n, all, o.Timeline), named(res))
	default:
		return errors.Join(printResult(out, n, res), named(res))
	}
}

// notedOlder is how many answers older than their event are noted.
const notedOlder = 3

// noteOlder notes which answers of the service are older than its events.
func noteOlder(n view.StatusNames, io *term.IO, all []query.Result) {
	count := 0
	for _, res := range all {
		for _, t := range res.Trackings {
			if t.Older == nil {
				continue
			}
			if count++; count <= notedOlder {
				io.Note("%s: the service's answer is older than its event: it says %s, the event %s", command.Quoted(t.Number), n.Status(t.Older.Status, t.Older.StatusLabel, t.Older.StatusTrack), n.Phase(t))
			}
		}
	}
	if count > notedOlder {
		io.Note("%s older than their events in all; -o json shows them as olderAnswer", command.Plural(int64(count), "answer"))
	}
}

// named adds to an error which REF it is about.
func named(res query.Result) error {
	if res.Err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", command.Quoted(res.Query.Ref()), res.Err)
}

// combineErrors is the error of many questions: nil if all were answered, the common
// one if all failed alike, else partial.
func combineErrors(all []query.Result) error {
	var failed []query.Result
	for _, res := range all {
		if res.Err != nil {
			failed = append(failed, res)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	if len(failed) == len(all) && alike(failed) {
		return fmt.Errorf("%d REFs, the first: %w", len(all), named(failed[0]))
	}
	return &command.PartialError{Failed: len(failed), All: len(all), What: "REFs", First: named(failed[0])}
}

func alike(failed []query.Result) bool {
	code, _ := command.CodeAndHint(failed[0].Err)
	for _, res := range failed {
		if c, _ := command.CodeAndHint(res.Err); c != code {
			return false
		}
	}
	return true
}
