// Package probe finds out, by queries alone, what the service's answers look
// like: what says that there is no such tracking, and which parameter asks by
// tracking number.
package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// ErrNothingKnown says that a probe had no tracking that the service shows:
// what is absent can't be told from what is always so.
var ErrNothingKnown = errors.New("no tracking to probe with")

// Result is what was learnt of the service.
type Result struct {
	Absent  Absence
	Number  NumberParam
	Known   tracking.Item // the tracking that was asked for; zero if there was none
	SavedTo string        // path of the configuration file that holds it now; empty if nothing was saved
}

// Absence is what "no such tracking" looks like, asked with two random
// referIds.
type Absence struct {
	ReferIDs    [2]string
	Status      int
	Message     string // as sent, empty if there is none
	Fingerprint string // see [tracking.Body.AbsenceFingerprint]
	Why         string // why it is not recognised; empty if it is
	Recognised  bool
	Suggestion  *tracking.Absent // the entry of query.absent that would make it so; nil if it is, or if none would
	Proven      bool             // the suggestion does not fit an answer that shows a tracking
}

// NumberParam is which parameter asks by tracking number.
type NumberParam struct {
	Configured string
	Works      string // empty if none of those tried does
	Tried      []ParamTry
}

// ParamTry is what came of one parameter.
type ParamTry struct {
	Param  string
	Known  string // what came of the known number
	Random string // what came of a random one; empty if it was not asked
}

// numberParams are tried after the configured one.
//
// Assumed: the interface does not show the parameter's name.
func numberParams() []string {
	return []string{"trackingNumber", "rawTrackingNumber", "tracking_number", "number", "trackingNo", "trackingNumbers"}
}

// trackings is what is asked of the ledger.
type trackings interface {
	Statuses(ctx context.Context, account string, f ledger.Filter) iter.Seq2[ledger.TrackingStatus, error]
}

// KnownItems returns up to three trackings that the service should show:
// accepted rows of the ledger, those it has shown before first.
func KnownItems(ctx context.Context, from trackings, account string) ([]tracking.Item, error) {
	const enough, read = 3, 2000
	var shown, others []tracking.Item
	for st, err := range from.Statuses(ctx, account, ledger.Filter{Limit: read}) {
		if err != nil {
			return nil, err
		}
		switch {
		case st.State != ledger.Accepted:
		case st.Sighting != nil && st.Sighting.Phase == ledger.Processed:
			if shown = append(shown, st.Item); len(shown) == enough {
				return shown, nil
			}
		case len(others) < enough:
			others = append(others, st.Item)
		}
	}
	all := slices.Concat(shown, others)
	return all[:min(len(all), enough)], nil
}

// service is what is asked of the service. Each call is one request.
type service interface {
	Find(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Finding
}

// Prober asks one question after the other.
type Prober struct {
	Service     service
	Gate        *pace.Gate
	NumberParam string        // the configured one
	Patience    time.Duration // how long a question is tried again
}

// Probe asks what "no such tracking" looks like and which parameter asks by
// number. known are tried in order until the service shows one. What was learnt
// is returned with [ErrNothingKnown] too.
func (p Prober) Probe(ctx context.Context, known []tracking.Item) (Result, error) {
	found := Result{Number: NumberParam{Configured: p.NumberParam}}
	var absent [2]tracking.Finding
	var err error
	for i := range absent {
		item := tracking.Item{ReferID: "waybill-probe-" + rand.Text()[:12], Number: randomNumber()}
		found.Absent.ReferIDs[i] = item.ReferID
		if absent[i], err = p.find(ctx, tracking.Query{ReferID: item.ReferID}, item); err != nil {
			return found, err
		}
	}
	var control tracking.Finding
	for _, item := range known {
		if control, err = p.find(ctx, tracking.Query{ReferID: item.ReferID}, item); err != nil {
			return found, err
		}
		if present(control) {
			found.Known = item
			break
		}
	}
	found.Absent.read(absent, control)
	if found.Known == (tracking.Item{}) {
		return found, ErrNothingKnown
	}
	return found, p.findParam(ctx, &found.Number, found.Known)
}

// find asks once more while the trouble is a passing one. A status that may be
// about what was asked for is a finding; everything else that is no answer is
// an error.
func (p Prober) find(ctx context.Context, q tracking.Query, item tracking.Item) (f tracking.Finding, err error) {
	for retry := pace.NewRetry(p.Patience); ; {
		f.Evidence = query.Evidence(ctx, p.Gate, func() tracking.Evidence {
			f = p.Service.Find(ctx, q, item)
			return f.Evidence
		})
		if !f.Passing || !retry.Wait(ctx, f.RetryAfter) {
			return f, cmp.Or(context.Cause(ctx), unusable(f))
		}
	}
}

// unusable is why a finding tells nothing, nil if it may.
func unusable(f tracking.Finding) error {
	if f.Err != nil && !f.Passing && !f.Unauthorized && f.Status >= 400 && f.Status < 500 {
		return nil
	}
	return f.Err
}

// present reports whether a finding shows a tracking.
func present(f tracking.Finding) bool {
	return f.Presence == tracking.PresenceNamed || f.Presence == tracking.PresenceProcessing
}

// read draws from two answers about nothing what absence looks like. control
// is an answer about a tracking that is there.
func (a *Absence) read(absent [2]tracking.Finding, control tracking.Finding) {
	one, two := absent[0], absent[1]
	prints := [2]string{one.Body.AbsenceFingerprint(one.Status, a.ReferIDs[0]), two.Body.AbsenceFingerprint(two.Status, a.ReferIDs[1])}
	a.Status, a.Message, a.Fingerprint = one.Status, one.Body.ErrorText(), prints[0]
	switch {
	case prints[0] != prints[1]:
		a.Why = "two responses to unknown trackings differ; the other: " + prints[1]
	case present(one) || present(two):
		a.Why = "the service responds to any referId as if it existed"
	case one.Presence == tracking.PresenceAbsent && two.Presence == tracking.PresenceAbsent:
		a.Recognised = true
	case one.Err != nil:
		a.Why = one.Err.Error()
	default:
		a.Why = "the response " + one.Why
	}
	if a.Recognised || present(one) || present(two) || prints[0] != prints[1] {
		return
	}
	// Only an answer with a status in it shows that an entry doesn't fit those.
	a.Proven = control.Presence == tracking.PresenceNamed && slices.ContainsFunc(control.Body.Answer().Trackings, tracking.Tracking.Known)
	for _, entry := range absentEntries(one) {
		differs := entry.Match == (tracking.Match{}) // a value counts only if an answer that shows a tracking has another
		if a.Proven {
			differs = !entry.Holds(control.Status, control.Body)
		}
		if differs && entry.Holds(one.Status, one.Body) && entry.Holds(two.Status, two.Body) {
			a.Suggestion = &entry
			return
		}
	}
	a.Proven = false
}

// absentEntries are entries of query.absent that fit an answer, the clearest
// first.
func absentEntries(f tracking.Finding) []tracking.Absent {
	var entries, weaker []tracking.Absent
	if m := f.Body.Answer().Message; m != "" && !unspecific(m) {
		entries = append(entries, tracking.Absent{Status: f.Status, Message: m})
	}
	for mark := range f.Body.DistinctivePointers() {
		literal, _ := f.Body.Pointer(mark)
		entry := tracking.Absent{Status: f.Status, Match: tracking.Match{Path: mark, Equals: string(literal)}}
		if strings.ContainsRune("nf{[", rune(literal[0])) { // null, false and what is empty
			entries = append(entries, entry)
		} else if mark != "/message" && likelyConstant(literal) {
			weaker = append(weaker, entry)
		}
	}
	entries = append(entries, weaker...)
	if f.Status >= 400 && f.Status < 500 {
		entries = append(entries, tracking.Absent{Status: f.Status})
	}
	return entries
}

// likelyConstant reports whether a value is more likely a code or a word than a time
// or the answer's own name.
func likelyConstant(literal []byte) bool {
	digits := 0
	for _, c := range literal {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return len(literal) <= 64 && digits <= 6
}

// unspecific reports whether a message could stand in any answer.
func unspecific(m string) bool {
	switch strings.ToLower(strings.Trim(m, " .!")) {
	case "ok", "success", "successful", "done", "processing", "error", "failed":
		return true
	}
	return false
}

// findParam tries parameters until one finds the known number and no random one.
func (p Prober) findParam(ctx context.Context, n *NumberParam, known tracking.Item) error {
	params := []string{n.Configured}
	for _, name := range numberParams() {
		if !slices.Contains(params, name) {
			params = append(params, name)
		}
	}
	for _, name := range params {
		f, err := p.find(ctx, tracking.Query{Number: known.Number, Param: name}, known)
		if err != nil {
			return err
		}
		try := ParamTry{Param: name, Known: describe(f)}
		if present(f) {
			number := randomNumber()
			r, err := p.find(ctx, tracking.Query{Number: number, Param: name}, tracking.Item{Number: number})
			if err != nil {
				return err
			}
			if try.Random = describe(r); !present(r) && len(r.Body.Answer().Trackings) == 0 {
				n.Works = name
			}
		}
		n.Tried = append(n.Tried, try)
		if n.Works != "" {
			return nil
		}
	}
	return nil
}

// describe says what came of a question.
func describe(f tracking.Finding) string {
	switch {
	case f.Presence != tracking.PresenceUndecided:
		return string(f.Presence)
	case f.Err != nil:
		return f.Err.Error()
	}
	return f.Why
}

// randomNumber returns what looks like a tracking number and is nobody's.
func randomNumber() string { return "WB" + rand.Text()[:14] }
