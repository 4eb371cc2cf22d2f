package tracking

import (
	"cmp"
	"errors"
)

// Query is a question about a tracking: by the caller's identifier, or by the
// carrier's number if that is empty.
type Query struct {
	ReferID string
	Number  string
	Param   string // the query parameter for Number; empty for the configured one
}

// Ref returns what is asked for.
func (q Query) Ref() string { return cmp.Or(q.ReferID, q.Number) }

// ErrProcessing says that the service is still working on a tracking. It is
// not a failure: ask again later.
//
// Interface: Errors, 1.
var ErrProcessing = errors.New("still processing")

// ErrAbsent says that the service has no such tracking.
//
// Assumed: what "no such tracking" looks like is not shown; `query.absent` sets it.
var ErrAbsent = errors.New("not found")

// ErrUndecided says that an answer neither shows the tracking nor says that
// there is none.
var ErrUndecided = errors.New("the response does not say whether the tracking exists")

// ErrUnauthorized says that the service refused the key.
var ErrUnauthorized = errors.New("the service refused the API key")

// Finding is an answer with what it proves, for those who learn what answers
// look like.
type Finding struct {
	Evidence
	Status int   // 0 if no answer came
	Body   *Body // nil if no answer came
}
