package forward

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// maxUnreachable is how many consecutive sendings may find no connection before a series ends.
const maxUnreachable = 3

// Request is one delivery as it is sent to a target.
type Request struct {
	URL     *url.URL
	Message webhook.Request
	Own     []webhook.Field // headers for the target; their values are removed from answers
}

// Series sends deliveries one by one, each after the last one was answered, with deliberate faults.
type Series struct {
	Client *Client
	Gate   *pace.Gate // what each sending passes
	Faults Faults
	Scheme webhook.Scheme // of the signatures to corrupt
	Expect Statuses       // statuses of an expected answer

	// Load returns the request to send. [ErrUnsendable], [inbox.ErrNoDelivery], [webhook.ErrUnsigned] and
	// [webhook.ErrUnsignedPart] concern that delivery alone; any other error ends the series.
	Load     func(context.Context, Sending) (Request, error)
	OnResult func(Result) error // called after every sending; an error ends the series
}

// Result is the result of one sending.
type Result struct {
	Sending
	Answer

	To       *url.URL // nil if it could not be loaded
	Err      error    // why there is no answer; nil if there is one
	Expected bool     // the answer is as expected
}

// Unsent reports whether the delivery could not be put into a request, or its target is forbidden.
func (r Result) Unsent() bool { return concernsOneDelivery(r.Err) || errors.Is(r.Err, ErrForbidden) }

// Tally counts the sendings of a series. Each one that was tried is in exactly one count from Expected to Unanswered.
type Tally struct {
	Planned int `json:"planned"`

	Expected    int `json:"expected"`    // answered as expected
	Unexpected  int `json:"unexpected"`  // answered otherwise
	Unsent      int `json:"unsent"`      // could not be put into a request
	Unreachable int `json:"unreachable"` // no connection was made
	Unanswered  int `json:"unanswered"`  // no answer; it may have arrived
}

// Tried returns how many sendings were tried.
func (t Tally) Tried() int {
	return t.Expected + t.Unexpected + t.Unsent + t.Unreachable + t.Unanswered
}

// Run sends n deliveries as Faults plans it, until ctx ends; a request under way then continues until hard ends. An
// error says why it ended early: the cause of ctx, [ErrUnreachable] after several in a row, [ErrForbidden], or an
// error of Load or OnResult.
func (s Series) Run(ctx, hard context.Context, n int) (Tally, error) {
	steps := s.Faults.Plan(n)
	t := Tally{Planned: len(steps)}
	unreachable := 0
	for _, step := range steps {
		pass, err := s.Gate.Enter(ctx)
		if err != nil {
			return t, err
		}
		pass.Release()
		r, err := s.send(hard, step)
		if err != nil {
			return t, err
		}
		if hard.Err() != nil && r.Err != nil {
			return t, context.Cause(hard) // it was cut off
		}
		t.count(r)
		if err := s.OnResult(r); err != nil {
			return t, err
		}
		switch {
		case errors.Is(r.Err, ErrForbidden):
			return t, r.Err
		case !errors.Is(r.Err, ErrUnreachable):
			unreachable = 0
		case unreachable+1 == maxUnreachable && t.Tried() < len(steps):
			return t, r.Err
		default:
			unreachable++
		}
	}
	return t, nil
}

// send sends one delivery. Its error ends the series.
func (s Series) send(ctx context.Context, step Sending) (Result, error) {
	r := Result{Sending: step}
	p, err := s.Load(ctx, step)
	r.To = p.URL
	if err == nil && s.Faults.Corrupt {
		p.Message, err = webhook.CorruptSignatures(s.Scheme, p.Message, s.Faults.Pick(step))
	}
	if err != nil {
		r.Err = err
		if concernsOneDelivery(err) {
			err = nil
		}
		return r, err
	}
	r.Answer, r.Err = maskValues(p.Own)(s.Client.Send(ctx, p.URL, p.Message))
	r.Expected = r.Err == nil && s.Expect.Match(r.Status)
	return r, nil
}

func concernsOneDelivery(err error) bool {
	alone := []error{ErrUnsendable, inbox.ErrNoDelivery, webhook.ErrUnsigned, webhook.ErrUnsignedPart}
	return slices.ContainsFunc(alone, func(one error) bool { return errors.Is(err, one) })
}

func (t *Tally) count(r Result) {
	switch {
	case r.Expected:
		t.Expected++
	case r.Err == nil:
		t.Unexpected++
	case r.Unsent():
		t.Unsent++
	case errors.Is(r.Err, ErrUnreachable):
		t.Unreachable++
	default:
		t.Unanswered++
	}
}

// Statuses are the statuses that an answer may have.
type Statuses []string

// ParseStatuses parses a list such as 2xx or 200,401.
func ParseStatuses(text string) (Statuses, error) {
	var all Statuses
	for s := range strings.SplitSeq(text, ",") {
		s = strings.ToLower(strings.TrimSpace(s))
		if len(s) != 3 || s[0] < '1' || s[0] > '5' || (s[1:] != "xx" && strings.Trim(s[1:], "0123456789") != "") {
			return nil, fmt.Errorf("%q is no status such as 401, nor a class such as 2xx", s)
		}
		all = append(all, s)
	}
	return all, nil
}

// Match reports whether a status is one of them.
func (s Statuses) Match(status int) bool {
	got := fmt.Sprint(status)
	return slices.ContainsFunc(s, func(want string) bool {
		class, ok := strings.CutSuffix(want, "xx")
		return got == want || ok && len(got) == len(want) && strings.HasPrefix(got, class)
	})
}

// String returns the list in the form that [ParseStatuses] takes.
func (s Statuses) String() string { return strings.Join(s, ",") }

// Faults are deliberate faults in sending deliveries; the zero Faults has none. Randomness depends on Seed alone.
type Faults struct {
	Duplicate int  // how many more times each delivery is sent
	Reorder   bool // in a random order
	Corrupt   bool // signatures are corrupted
	Seed      uint64
}

// Sending is one step of a plan.
type Sending struct {
	Index int // of the delivery, from 0
	Copy  int // 0 the first time, then 1, 2, …
}

// Plan returns the steps for n deliveries, in order.
func (f Faults) Plan(n int) (steps []Sending) {
	for i := range n {
		for c := range 1 + f.Duplicate {
			steps = append(steps, Sending{Index: i, Copy: c})
		}
	}
	if f.Reorder {
		f.random("reorder").Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	return steps
}

// Pick returns a function that chooses from 0 to n-1 for one sending, always in the same way.
func (f Faults) Pick(s Sending) func(n int) int {
	return f.random(fmt.Sprintf("corrupt %d %d", s.Index, s.Copy)).IntN
}

func (f Faults) random(purpose string) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", f.Seed, purpose))
	seed := rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]))
	return rand.New(seed) //nolint:gosec // faults are no secret
}
