package bulk

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// reasonQuestioned is why a row is unknown that was accepted.
const reasonQuestioned = "accepted, but the service says that it has no such tracking"

// questionAccepted asks the service for every accepted row of the run's input,
// and makes unknown those that it says it does not have: an answer to a create
// may have been a success in form only. They are sent again by the same proof
// as all unknown rows.
func (j *Job) questionAccepted(ctx context.Context) error {
	j.say("asking the service about accepted rows (run %d)", j.Run.ID)
	var absent int64
	var page []ledger.UnknownRow
	question := func() error {
		n, err := j.question(ctx, page)
		absent, page = absent+n, page[:0]
		return err
	}
	for x, err := range j.Ledger.Accepted(ctx, j.Run.ID) {
		if err != nil {
			return err
		}
		if page = append(page, x); len(page) == pageRows {
			if err := question(); err != nil {
				return err
			}
		}
	}
	err := question()
	j.say("%d accepted rows are not found", absent)
	return err
}

// question asks for the rows of a page and returns how many it made unknown.
// When asking fails, what was found out before is recorded all the same.
func (j *Job) question(ctx context.Context, page []ledger.UnknownRow) (int64, error) {
	missing := make([]bool, len(page))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(askedAtOnce * j.workers())
	for i, x := range page {
		g.Go(func() error {
			found, err := j.prove(gctx, x, func() error { return nil })
			missing[i] = err == nil && found.verdict == absent
			return err
		})
	}
	failed := g.Wait()
	var rows []ledger.UnknownRow
	for i, x := range page {
		if missing[i] {
			rows = append(rows, x)
		}
	}
	if len(rows) == 0 {
		return 0, failed
	}
	n, err := j.Ledger.MarkUnknown(context.WithoutCancel(ctx), rows, reasonQuestioned)
	return n, firstOf(err, failed)
}
