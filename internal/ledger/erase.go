package ledger

import (
	"context"
	"errors"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// ErrErased says that what is kept of a tracking was erased.
var ErrErased = errors.New("erased from the store")

// ErrBeingSent says that a row can't be erased: a living process is sending it, or is about to.
var ErrBeingSent = errors.New("another process is sending it")

// Eraser removes what is kept of shipments, and remembers them by keyed hashes alone.
type Eraser interface {
	// Erase removes the shipments that queries name, each by its referId, its number or
	// both: rows, answers, trackings and events, and header and body of every delivery that
	// names a number. A name that others hold too stays. An error that matches
	// [ErrBeingSent] comes before anything is removed, unless a process begins to send a row
	// meanwhile: that row stays. Calling it again removes what is left: it may end anywhere.
	// What was removed may stay in unused space until Compact.
	Erase(ctx context.Context, qs []tracking.Query, o EraseOptions) (Erasure, error)

	// Compact removes what was erased from the store's unused space too. It returns
	// where copies may be left that it can't remove.
	Compact(ctx context.Context) ([]string, error)

	// Erased says for each query whether it was erased: a referId, a number, or with
	// both a row. A referId or a number that a later row has was not.
	Erased(ctx context.Context, qs []tracking.Query) ([]bool, error)
}

// EraseOptions say what is left of shipments that are erased: with Forget no hash either.
type EraseOptions struct{ Forget bool }

// Erasure counts what was removed. Responses are to queries, and to create requests that other rows were in too.
type Erasure struct {
	Unknown []int `json:"-"` // queries that name nothing that is or was in the store
	Shared  int64 `json:"-"` // numbers that stay: others hold them too

	Rows       int64 `json:"rows"`
	Unsettled  int64 `json:"unknown"` // rows with an unknown outcome
	Pending    int64 `json:"pending"` // rows that were not sent
	Trackings  int64 `json:"trackings"`
	Responses  int64 `json:"responses"`
	Events     int64 `json:"events"`
	Deliveries int64 `json:"deliveries"` // whose bytes were dropped
	Refused    int64 `json:"refused"`
	Texts      int64 `json:"texts"` // reasons, names of files and the like that held one
}

// Add adds other to e.
func (e *Erasure) Add(other Erasure) {
	e.Shared += other.Shared
	e.Rows += other.Rows
	e.Unsettled += other.Unsettled
	e.Pending += other.Pending
	e.Trackings += other.Trackings
	e.Responses += other.Responses
	e.Events += other.Events
	e.Deliveries += other.Deliveries
	e.Refused += other.Refused
	e.Texts += other.Texts
}
