package bulk

import (
	"cmp"
	"context"

	"github.com/waybill-cli/waybill/internal/ledger"
)

const reasonMissing = "accepted, but not found"

// checkAccepted queries every accepted row of the run's input, and makes those
// unknown that the service does not have: a 2xx answer to a create may have been
// false. They are sent again by the same proof as all unknown rows.
func (j *Job) checkAccepted(ctx context.Context) error {
	j.Note("Checking accepted rows of run %d", j.Run.ID)
	var absent int64
	var page []ledger.UnknownRow
	check := func() error {
		n, err := j.checkAcceptedPage(ctx, page)
		absent, page = absent+n, page[:0]
		return err
	}
	for x, err := range j.Ledger.Accepted(ctx, j.Run.ID) {
		if err != nil {
			return err
		}
		if page = append(page, x); len(page) == pageRows {
			if err := check(); err != nil {
				return err
			}
		}
	}
	err := check()
	j.Note("%d accepted %s not found", absent, rowOrRows(absent))
	return err
}

// checkAcceptedPage queries the rows of a page and returns how many it made
// unknown, also when a query fails.
func (j *Job) checkAcceptedPage(ctx context.Context, page []ledger.UnknownRow) (int64, error) {
	missing := make([]bool, len(page))
	failed := each(ctx, len(page), queriesPerWorker*j.workers(), func(ctx context.Context, i int) error {
		found, err := j.prove(ctx, page[i], nil)
		missing[i] = err == nil && found.conclusion == absent
		return err
	})
	var rows []ledger.UnknownRow
	for i, x := range page {
		if missing[i] {
			rows = append(rows, x)
		}
	}
	if len(rows) == 0 {
		return 0, failed
	}
	n, err := j.Ledger.MarkUnknown(context.WithoutCancel(ctx), rows, reasonMissing)
	return n, cmp.Or(err, failed)
}
