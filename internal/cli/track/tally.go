package track

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// tally counts how the asking about REFs ended.
type tally struct {
	all       int64
	trackings int64 // of all: an order may have several
	refs      bool  // the user typed the REFs

	met      int64 // answered, or meeting the condition
	left     int64 // not done when the end came
	notAsked int64 // of left: nobody ever asked about them

	failed   int64
	first    error // of the failed, with its REF
	firstPos int64
	codes    []command.Code
	trouble  error  // of the last question about one that is left: no answer, or none that can be believed
	lastErr  error  // likewise: of any kind
	again    int64  // of left: they met the condition before, and were to be asked about again
	leftRef  string // one that is left

	// What the next command is about: runs of the first rows that the service does
	// not find, that it rejected, and that were not sent, 0 for none, and a REF that
	// neither it nor the store knows as a referId, and that looks like a number.
	absentRun, rejectedRun, unsentRun int64
	number                            string
}

// add counts an ending. allowMissing says that absent trackings are no failure.
func (t *tally) add(e query.Ending, allowMissing bool) {
	t.all++
	t.trackings += int64(max(len(e.Result.Trackings), 1))
	err := e.Result.Err
	if errors.Is(err, tracking.ErrAbsent) && t.absentRun == 0 || e.Left && absent(e.Result) && t.absentRun == 0 {
		t.absentRun = e.Target.RunOf(ledger.Accepted)
	}
	switch {
	case e.Left && absent(e.Result) && err == nil && !allowMissing:
		e.Result.Err = tracking.ErrAbsent
		t.fail(e)
	case e.Left:
		t.left++
		t.leftRef = e.Result.Ref
		if errors.Is(err, query.ErrNotAsked) {
			t.notAsked++
		}
		if query.Troubled(err) {
			t.trouble = err
		}
		if query.Troubled(err) || query.Temporary(err) {
			t.lastErr = err
		}
	case allowMissing && errors.Is(err, tracking.ErrAbsent): // no failure
	case err == nil:
		t.met++
	default:
		t.fail(e)
	}
}

func (t *tally) fail(e query.Ending) {
	res := e.Result
	t.failed++
	if t.first == nil || e.Target.Pos < t.firstPos {
		t.first, t.firstPos = named(res), e.Target.Pos
	}
	switch {
	case errors.Is(res.Err, query.ErrRejected):
		t.rejectedRun = cmp.Or(t.rejectedRun, e.Target.RunOf(ledger.Rejected))
	case errors.Is(res.Err, query.ErrNotSent):
		t.unsentRun = cmp.Or(t.unsentRun, e.Target.RunOf(ledger.Pending))
	case errors.Is(res.Err, tracking.ErrAbsent) && res.Query.ReferID != "" && !e.Target.IsKnown() && tracking.LikeNumber(res.Ref):
		t.number = cmp.Or(t.number, res.Ref)
	}
	if code, _ := command.CodeAndHint(res.Err); !slices.Contains(t.codes, code) {
		t.codes = append(t.codes, code)
	}
}

// done reports whether an ending is what was asked for.
func done(e query.Ending, allowMissing bool) bool {
	return !e.Left && (e.Result.Err == nil || allowMissing && errors.Is(e.Result.Err, tracking.ErrAbsent))
}

// absent reports whether the service said last that it has no such tracking.
func absent(res query.Result) bool {
	return len(res.Trackings) > 0 && res.Trackings[0].Phase == ledger.Absent
}

// failure is the error of what failed: nil if nothing did, the common one if all
// failed alike, else partial.
func (t *tally) failure() error {
	switch {
	case t.failed == 0:
		return nil
	case t.failed < t.all || len(t.codes) > 1:
		return &command.PartialError{Failed: int(t.failed), All: int(t.all), What: t.nouns(), First: t.first}
	case t.all == 1:
		return t.first
	}
	return fmt.Errorf("%d of %d %s failed, the first: %w", t.all, t.all, t.nouns(), t.first)
}

func (t *tally) nouns() string {
	switch {
	case t.refs:
		return "REFs"
	case t.all == t.trackings:
		return "trackings"
	}
	return "orders"
}

// named adds to an error which REF it is about.
func named(res query.Result) error {
	if res.Err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", command.Quoted(res.Ref), res.Err)
}
