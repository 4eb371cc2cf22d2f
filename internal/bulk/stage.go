// Package bulk carries rows to the service: it stages an input whole, then
// sends what is pending in batches and settles what came of each.
//
// The order of writes is the promise. A batch is on disk as sending before its
// first byte leaves, and its outcome is on disk before anybody hears of it.
// What may have arrived is never sent again.
package bulk

import (
	"context"
	"errors"
	"iter"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// stageChunk is how many entries are handed to the ledger at once.
const stageChunk = 1000

// maxConflicts is how many conflicts are kept for the reader; more are only counted.
const maxConflicts = 1000

// ConflictError says that an input holds the same pair with two carriers.
type ConflictError struct {
	Conflicts []ledger.Conflict // the first of them
	More      int               // how many further ones there are
}

func (e *ConflictError) Error() string {
	return "the same tracking stands in the input with two carrier codes"
}

// Stage brings every entry into the ledger and opens the run, or leaves
// nothing behind: on the first error of src, on a [*ConflictError], and when
// ctx ends.
func Stage(ctx context.Context, store ledger.Store, plan ledger.Plan, src iter.Seq2[ledger.Entry, error]) (run ledger.Run, err error) {
	staging, err := store.Stage(ctx, plan)
	if err != nil {
		return ledger.Run{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, staging.Discard(context.WithoutCancel(ctx)))
		}
	}()
	conflicts, err := fill(ctx, staging, src)
	if err != nil {
		return ledger.Run{}, err
	}
	if len(conflicts.Conflicts) > 0 {
		return ledger.Run{}, &conflicts
	}
	return staging.Open(ctx)
}

func fill(ctx context.Context, staging ledger.Staging, src iter.Seq2[ledger.Entry, error]) (ConflictError, error) {
	var conflicts ConflictError
	chunk := make([]ledger.Entry, 0, stageChunk)
	flush := func() error {
		cs, err := staging.Add(ctx, chunk)
		chunk = chunk[:0]
		room := min(len(cs), maxConflicts-len(conflicts.Conflicts))
		conflicts.Conflicts = append(conflicts.Conflicts, cs[:room]...)
		conflicts.More += len(cs) - room
		return err
	}
	for e, err := range src {
		if err != nil {
			return conflicts, err
		}
		if chunk = append(chunk, e); len(chunk) < stageChunk {
			continue
		}
		if err := flush(); err != nil {
			return conflicts, err
		}
	}
	if len(chunk) == 0 {
		return conflicts, nil
	}
	return conflicts, flush()
}
