package tracking

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
)

// Outcome is the class of an answer to a create request.
type Outcome int

// The outcomes. An answer that is not clearly another outcome is OutcomeUnknown: the zero value is the safe one.
const (
	OutcomeUnknown      Outcome = iota // no complete answer, or a status that does not say what was stored
	OutcomeAccepted                    // a complete and credible 2xx answer
	OutcomeNotSent                     // no byte of the request left
	OutcomeUnauthorized                // the key was refused
	OutcomeTooLarge                    // the body was too large
	OutcomeThrottled                   // the service asked for a pause and stored nothing
	OutcomeRows                        // refused because of its rows
	OutcomeRefused                     // refused, and not because of its rows
	OutcomeOverloaded                  // the service asked for a pause and may have stored rows
	OutcomeNotCredible                 // a 2xx answer that can't be taken as success, a redirect, or 1xx
)

// Stored is what the service stored of a batch.
type Stored int

// The zero value is the safe one.
const (
	StoredUnknown Stored = iota // its rows become unknown
	StoredNone                  // its rows become pending
	StoredAll                   // its rows become accepted
)

// Stop says when an outcome stops the run.
type Stop int

// The rules.
const (
	StopNever       Stop = iota // but see the limit of consecutive unknown outcomes
	StopAtOnce                  // the next batch would get the same answer
	StopOnFailures              // if no request succeeds for as long as the run's patience
	StopOnLongPause             // if the pause that the service asks for exceeds the run's patience
)

// Meaning is a row of the table of outcomes.
type Meaning struct {
	Name     string
	Statuses []int // HTTP statuses; one digit stands for the rest of its class
	Stored   Stored
	Signal   pace.Signal
	Stop     Stop
	Why      string // why the run stopped
	Exit     string // name of the exit status of a run that stopped
}

// Reasons why a run stopped.
const (
	keyRefused     = "the API key was refused"
	stillThrottled = "the service is still throttling requests"
	requestRefused = "the service refused the request, whatever its rows"
	pause          = "the service asked for a long pause"
	unexpected     = "unexpected response"
)

// meanings is the only table of what an answer to a create means.
//
// Assumed: behaviour for errors is not shown; `assume_unprocessed` and `create.accepted` set what can be set, and
// OutcomeThrottled, OutcomeRows and OutcomeNotCredible depend on more than the status.
var meanings = [...]Meaning{
	OutcomeUnknown:      {"unknown", []int{408, 425, 5}, StoredUnknown, pace.NoSignal, StopNever, "", "unknown"},
	OutcomeAccepted:     {"accepted", []int{2}, StoredAll, pace.Success, StopNever, "", "ok"},
	OutcomeNotSent:      {"not sent", nil, StoredNone, pace.Unconnected, StopOnFailures, "no connection", "unreachable"},
	OutcomeUnauthorized: {"unauthorized", []int{401, 403}, StoredNone, pace.NoSignal, StopAtOnce, keyRefused, "auth"},
	OutcomeTooLarge:     {"too large", []int{413}, StoredNone, pace.Success, StopNever, "", "refused"},
	OutcomeThrottled:    {"throttled", nil, StoredNone, pace.Throttled, StopOnFailures, stillThrottled, "unreachable"},
	OutcomeRows:         {"rows refused", []int{400, 409, 422}, StoredNone, pace.Success, StopNever, "", "partial"},
	OutcomeRefused:      {"refused", []int{4}, StoredNone, pace.NoSignal, StopAtOnce, requestRefused, "refused"},
	OutcomeOverloaded:   {"overloaded", []int{503}, StoredUnknown, pace.Throttled, StopOnLongPause, pause, "unreachable"},
	OutcomeNotCredible:  {"not credible", []int{1, 3}, StoredUnknown, pace.NoSignal, StopAtOnce, unexpected, "unknown"},
}

// Meaning returns the row of o in the table.
func (o Outcome) Meaning() Meaning { return meanings[o] }

// String returns the name of the outcome.
func (o Outcome) String() string { return meanings[o].Name }

// OutcomeOf returns the outcome of a complete answer with that HTTP status.
func OutcomeOf(status int) Outcome {
	for _, key := range []int{status, status / 100} {
		for o := range meanings {
			if slices.Contains(meanings[o].Statuses, key) {
				return Outcome(o)
			}
		}
	}
	return OutcomeUnknown
}

// Reply is the result of one create request.
type Reply struct {
	Outcome    Outcome
	Refused    []RefusedRow  // rows that the answer refuses by name, for OutcomeAccepted and OutcomeRows
	HTTPStatus int           // 0 if no answer came
	Answer     []byte        // as received; nil if none came
	Body       *Body         // Answer, parsed; nil if none came
	AnswerCut  bool          // longer than what was read, or broken off
	Shape      string        // see [Body.Shape]; empty if no complete answer came
	Agrees     bool          // the answer does not contradict the number of rows, see [Body.Shape]
	RetryAfter time.Duration // how long the service asked to wait; 0 if it did not say
	Began      time.Time
	Took       time.Duration
	Err        error // why it is not accepted, for people; nil if it is accepted
}

// Reason says in one line why a request was not accepted, in the service's own words if there are any; else it is
// empty.
func (r *Reply) Reason() string {
	var worded interface{ Reason() string }
	switch {
	case r.Err == nil:
		return ""
	case errors.As(r.Err, &worded):
		return worded.Reason()
	}
	return r.Err.Error()
}

// RefusedRow is a row that an answer to a create refuses by name.
type RefusedRow struct {
	Key       Key
	Reason    string // the service's own words
	Ambiguous bool   // the answer means this row or another
}

// Query asks for a tracking by the caller's identifier, or else by the carrier's number.
type Query struct {
	ReferID string
	Number  string
	Param   string // query parameter for Number; empty for the configured one
}

// Ref returns the queried referId or number.
func (q Query) Ref() string { return cmp.Or(q.ReferID, q.Number) }

// ErrProcessing says that the service is still working on a tracking. It is not a failure: ask again later.
//
// Interface: Errors, 1.
var ErrProcessing = errors.New("still processing")

// ErrAbsent says that the service has no such tracking.
//
// Assumed: what "no such tracking" looks like is not shown; `query.absent` sets it.
var ErrAbsent = errors.New("not found")

// ErrUndecided says that an answer neither shows the tracking nor says that it does not exist.
var ErrUndecided = errors.New("the response does not say whether the tracking exists")

// ErrUnauthorized says that the service refused the key.
var ErrUnauthorized = errors.New("the service refused the API key")

// Failure is what the error of a request means for later requests. The zero value says nothing.
type Failure struct {
	Temporary   bool          // the same query may succeed later
	Troubled    bool          // no answer came, or no credible one: a wait asks again, however long that takes
	Systemic    bool          // any other query would fail in the same way, as after a refused key or a failed store
	Unconnected bool          // no connection was made, nothing was sent
	Throttled   bool          // the service asked for a pause, or is overloaded
	RetryAfter  time.Duration // how long the service asked to wait; 0 if it did not say
}

// FailureOf returns the result of an error's method Failure, or the zero value if it has none.
func FailureOf(err error) Failure {
	var e interface{ Failure() Failure }
	if errors.As(err, &e) {
		return e.Failure()
	}
	return Failure{}
}

// Finding is an answer with what it proves, for callers that learn what answers look like.
type Finding struct {
	Evidence
	Status int   // 0 if no answer came
	Body   *Body // nil if no answer came
}

type allowedKey struct{}

// WithAllowed returns a context for a request whose bytes may leave only while allowed returns nil. allowed is called
// right before each write, since a process may be suspended at any moment, and must not wait.
func WithAllowed(ctx context.Context, allowed func() error) context.Context {
	return context.WithValue(ctx, allowedKey{}, allowed)
}

// Allowed returns the function given to [WithAllowed], nil if the bytes may always leave.
func Allowed(ctx context.Context) func() error {
	allowed, _ := ctx.Value(allowedKey{}).(func() error)
	return allowed
}
