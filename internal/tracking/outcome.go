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
	Refused    []RowVerdict  // rows that an accepted batch's answer refuses by name
	HTTPStatus int           // 0 if no answer came
	Answer     []byte        // as received; nil if none came
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
}

// Refusals returns the rows of items that a create's answer names together
// with a sign of error. A row that the answer does not name has the verdict
// of its batch.
//
// Assumed: per-row verdicts in an answer to a create are not shown.
func Refusals(raw []byte, items []Item) []RowVerdict {
	root, ok := parse(raw)
	if !ok {
		return nil
	}
	r := refusals{items: items}
	r.walk(root, false)
	return r.found
}

type refusals struct {
	items    []Item
	byKey    map[Key]int
	byNumber map[string]int
	byRefer  map[string]int // -1 for a referId with several numbers
	taken    map[int]bool
	found    []RowVerdict
}

// refusedUnder are names of lists that hold what was not taken.
func refusedUnder(name string) bool {
	switch name {
	case "failed", "failures", "rejected", "refused", "invalid", "errors", "error":
		return true
	}
	return false
}

// walk looks for objects that name a row. bad is true inside a list of what
// was not taken.
func (r *refusals) walk(v *value, bad bool) {
	switch v.kind {
	case list:
		for _, item := range v.items {
			r.walk(item, bad)
		}
	case object:
		if i, ok := r.row(v); ok {
			if bad || rowError(v) {
				r.refuse(i, v)
			}
			return
		}
		for _, m := range v.members {
			r.walk(m.value, bad || refusedUnder(m.name))
		}
	}
}

// row returns the index of the row that v names.
func (r *refusals) row(v *value) (int, bool) {
	refer := v.str(FieldReferID)
	number := v.str(FieldNumber)
	if number == "" {
		number = v.str("trackingNumber")
	}
	if refer == "" && number == "" {
		if item := v.get("item"); item != nil && item.kind == object {
			return r.row(item)
		}
		return 0, false
	}
	r.index()
	switch {
	case refer != "" && number != "":
		i, ok := r.byKey[Key{refer, bareNumber(number)}]
		return i, ok
	case number != "":
		i, ok := r.byNumber[bareNumber(number)]
		return i, ok && i >= 0
	default:
		i, ok := r.byRefer[refer]
		return i, ok && i >= 0
	}
}

// index is made when the first object names a row: most answers name none.
func (r *refusals) index() {
	if r.byKey != nil {
		return
	}
	r.byKey = make(map[Key]int, len(r.items))
	r.byNumber = make(map[string]int, len(r.items))
	r.byRefer = make(map[string]int, len(r.items))
	r.taken = make(map[int]bool)
	for i, it := range r.items {
		bare := bareNumber(it.Number)
		r.byKey[Key{it.ReferID, bare}] = i
		if _, twice := r.byNumber[bare]; twice {
			r.byNumber[bare] = -1
		} else {
			r.byNumber[bare] = i
		}
		if _, twice := r.byRefer[it.ReferID]; twice {
			r.byRefer[it.ReferID] = -1
		} else {
			r.byRefer[it.ReferID] = i
		}
	}
}

// rowError reports whether the object that names a row says it was not taken.
func rowError(v *value) bool {
	if signOfError(v) {
		return true
	}
	for _, name := range []string{"accepted", "created", "ok"} {
		if m := v.get(name); m != nil && m.kind == scalar && string(m.raw) == "false" {
			return true
		}
	}
	// A number under `status` is the tracking's status, not an error's.
	return refusedWord(v.str("status")) || refusedWord(v.str("result"))
}

func refusedWord(s string) bool {
	switch s {
	case "rejected", "refused", "failed", "invalid", "error", "REJECTED", "REFUSED", "FAILED", "INVALID", "ERROR":
		return true
	}
	return false
}

func (r *refusals) refuse(i int, v *value) {
	if r.taken[i] {
		return
	}
	r.taken[i] = true
	reason := errorText(v, 0)
	if reason == "" {
		reason = "the service refused this row without saying why"
	}
	r.found = append(r.found, RowVerdict{Key: r.items[i].Key(), Reason: reason})
}
