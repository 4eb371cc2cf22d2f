// Package bulk sends rows to the service: it stages an input, sends pending rows
// in batches, perhaps while later ones are staged, and settles each batch by its
// answer.
//
// The order of writes is the guarantee. A batch is on disk as sending before its
// first byte leaves, and its outcome is on disk before it is reported. Rows that
// may have arrived are never sent again without proof.
package bulk

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Bounds of how many entries the ledger gets at once. The more there are, the fewer
// pages of its index are written twice; but meanwhile nobody else can write, and those
// who send what was staged before must.
const (
	stageChunk    = 16384
	minStageChunk = 1024
	stageTime     = 100 * time.Millisecond // what a chunk is to take
)

// StageChecks are further checks of an input while it is staged. Either may be nil.
type StageChecks struct {
	// Conflict gets every record that contradicts an earlier one, which is left out. An error ends the staging.
	Conflict func(ledger.Conflict) error
	// Staged is called once all is staged, before the run is opened. Its error discards it all.
	Staged func() error
}

// Stage adds every entry to the ledger and opens the run. After any error it leaves nothing behind.
func Stage(ctx context.Context, store ledger.Stager, plan ledger.Plan, src iter.Seq2[ledger.Entry, error], v StageChecks) (ledger.Run, error) {
	staging, err := store.Stage(ctx, plan)
	if err != nil {
		return ledger.Run{}, err
	}
	a := &adder{staging: staging, conflict: v.Conflict}
	a.size.Store(stageChunk)
	return a.stage(ctx, src, v.Staged)
}

type adder struct {
	staging  ledger.Staging
	conflict func(ledger.Conflict) error // nil for none
	added    func()                      // called after each chunk; nil for none
	size     atomic.Int64                // of the next chunk
}

func (a *adder) stage(ctx context.Context, src iter.Seq2[ledger.Entry, error], staged func() error) (run ledger.Run, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, a.staging.Discard(context.WithoutCancel(ctx)))
		}
	}()
	if err := a.fill(ctx, src); err != nil {
		return ledger.Run{}, err
	}
	if staged != nil {
		if err := staged(); err != nil {
			return ledger.Run{}, err
		}
	}
	return a.staging.Open(ctx)
}

// fill writes the entries in chunks: while one is written, the next is read.
func (a *adder) fill(ctx context.Context, src iter.Seq2[ledger.Entry, error]) error {
	var failed error
	chunks, ended := make(chan []ledger.Entry), make(chan struct{})
	go func() {
		defer close(ended)
		for chunk := range chunks {
			if failed = a.add(ctx, chunk); failed != nil {
				return
			}
		}
	}()
	err := a.read(src, chunks, ended)
	close(chunks)
	<-ended
	return cmp.Or(failed, err)
}

func (a *adder) add(ctx context.Context, chunk []ledger.Entry) error {
	began := time.Now()
	conflicts, err := a.staging.Add(ctx, chunk)
	if err != nil {
		return err
	}
	took := max(time.Since(began), time.Microsecond)
	a.size.Store(min(max(int64(len(chunk))*int64(stageTime)/int64(took), minStageChunk), stageChunk))
	if a.added != nil {
		a.added()
	}
	if a.conflict == nil {
		return nil
	}
	for _, c := range conflicts {
		if err := a.conflict(c); err != nil {
			return err
		}
	}
	return nil
}

// read reads the entries, and ends early once adding has ended.
func (a *adder) read(src iter.Seq2[ledger.Entry, error], chunks chan<- []ledger.Entry, ended <-chan struct{}) error {
	var spare, chunk []ledger.Entry
	hand := func() bool {
		select {
		case chunks <- chunk:
			spare, chunk = chunk, spare[:0] // the one before has been added
			return true
		case <-ended:
			return false
		}
	}
	for e, err := range src {
		if err != nil {
			return err
		}
		if chunk == nil {
			chunk = make([]ledger.Entry, 0, stageChunk)
		}
		if chunk = append(chunk, e); int64(len(chunk)) < a.size.Load() {
			continue
		}
		if !hand() {
			return nil
		}
	}
	if len(chunk) > 0 {
		hand()
	}
	return nil
}
