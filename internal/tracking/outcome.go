package tracking

import "time"

// Outcome is what one create request came to, as far as anybody can know.
type Outcome int

// The outcomes. Everything that is not clearly one of the others is
// OutcomeUnknown: the zero value is the safe one.
const (
	OutcomeUnknown      Outcome = iota // it may have been stored: only a query can tell
	OutcomeAccepted                    // a complete and credible answer took the batch
	OutcomeNotSent                     // no byte of the request left
	OutcomeUnauthorized                // the key was refused; nothing was stored
	OutcomeTooLarge                    // the body was too large; nothing was stored
	OutcomeThrottled                   // the service asked for a pause and stored nothing
	OutcomeRows                        // refused because of its rows
	OutcomeRefused                     // refused, and not because of its rows
)

// String names the outcome in one word or two.
func (o Outcome) String() string {
	switch o {
	case OutcomeAccepted:
		return "accepted"
	case OutcomeNotSent:
		return "not sent"
	case OutcomeUnauthorized:
		return "unauthorized"
	case OutcomeTooLarge:
		return "too large"
	case OutcomeThrottled:
		return "throttled"
	case OutcomeRows:
		return "rows refused"
	case OutcomeRefused:
		return "refused"
	default:
		return "unknown"
	}
}

// Reply is what came of one create request.
type Reply struct {
	Outcome    Outcome
	Systemic   bool          // the next batch would surely meet the same answer
	Refused    []RowVerdict  // rows that the answer refuses by name, if it took the batch or refused it for its rows
	HTTPStatus int           // 0 if no answer came
	Answer     []byte        // as received; nil if none came
	Body       *Body         // Answer, parsed; nil if none came
	AnswerCut  bool          // more came than was read, or it broke off
	RetryAfter time.Duration // how long the service asked to wait; 0 if it did not say
	Began      time.Time
	Took       time.Duration
	Err        error // why it is not accepted, for people; nil if it is
}

// Reason says in one line why a request was not accepted, empty if it was.
func (r *Reply) Reason() string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// RowVerdict is what an answer to a create said of one row that it named.
type RowVerdict struct {
	Key    Key
	Reason string // the service's own words
	// Doubtful says that the answer refuses a row, and may mean this one or
	// another.
	Doubtful bool
}
