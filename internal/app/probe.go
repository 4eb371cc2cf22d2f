package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// ErrNothingKnown says that a probe had no tracking that the service shows:
// what is absent can't be told from what is always so.
var ErrNothingKnown = errors.New("no known tracking to probe with")

// Probe is what was learnt of the service by asking, and nothing else.
type Probe struct {
	Absent  AbsentProbe
	Number  NumberProbe
	Known   tracking.Item // the tracking that was asked for; zero if there was none
	SavedTo string        // path of the configuration file that holds it now; empty if nothing was saved
}

// AbsentProbe is what "no such tracking" looks like, asked with two random
// referIds.
type AbsentProbe struct {
	ReferIDs   [2]string
	Status     int
	Message    string // as sent, empty if there is none
	Look       string
	Why        string // why it is not recognised; empty if it is
	Recognised bool
	Suggestion *tracking.Absent // the entry of query.absent that would make it so; nil if it is, or if none would
	Proven     bool             // the suggestion does not fit an answer that shows a tracking
}

// NumberProbe is which parameter asks by tracking number.
type NumberProbe struct {
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

// KnownItems returns up to three trackings that the service should show:
// accepted rows of the ledger, those it has shown before first.
func (s *Session) KnownItems(ctx context.Context, account string) ([]tracking.Item, error) {
	const enough, looked = 3, 2000
	db, err := s.ExistingStore(ctx)
	if err != nil || db == nil {
		return nil, err
	}
	var shown, others []tracking.Item
	for st, err := range db.Trackings.Statuses(ctx, account, ledger.Filter{Limit: looked}) {
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

// Probe asks the service, reading only, what "no such tracking" looks like and
// which parameter asks by number. known are tried in order until the service
// shows one. What was learnt is returned with [ErrNothingKnown] too. budget is
// how long a question is tried again while the service has a passing trouble.
func (s *Session) Probe(ctx context.Context, known []tracking.Item, budget time.Duration) (Probe, error) {
	client, err := s.Client()
	if err != nil {
		return Probe{}, err
	}
	p := prober{ctx: ctx, client: client, budget: budget}
	var found Probe
	found.Number.Configured = s.Config.Query.TrackingNumberParam
	var absent [2]tracking.Finding
	for i := range absent {
		item := tracking.Item{ReferID: "waybill-probe-" + rand.Text()[:12], Number: randomNumber()}
		found.Absent.ReferIDs[i] = item.ReferID
		if absent[i], err = p.find(tracking.Query{ReferID: item.ReferID}, item); err != nil {
			return found, err
		}
	}
	var control tracking.Finding
	for _, item := range known {
		if control, err = p.find(tracking.Query{ReferID: item.ReferID}, item); err != nil {
			return found, err
		}
		if there(control) {
			found.Known = item
			break
		}
	}
	found.Absent.read(absent, control)
	if found.Known == (tracking.Item{}) {
		return found, ErrNothingKnown
	}
	err = p.numbers(&found)
	return found, err
}

// prober asks, politely: one question after the other.
type prober struct {
	ctx    context.Context //nolint:containedctx // a prober lives as long as one probe
	client *api.Client
	budget time.Duration
}

// find asks once more while the trouble is a passing one. A status that may be
// about what was asked for is a finding; everything else that is no answer is
// an error.
func (p *prober) find(q tracking.Query, item tracking.Item) (tracking.Finding, error) {
	for retry := pace.NewRetry(p.budget); ; {
		f := p.client.Find(p.ctx, q, item)
		if !f.Passing || !retry.Wait(p.ctx, f.RetryAfter) {
			return f, cmp.Or(context.Cause(p.ctx), unusable(f))
		}
	}
}

func unusable(f tracking.Finding) error {
	if f.Err != nil && !f.Passing && !f.Unauthorized && f.Status >= 400 && f.Status < 500 {
		return nil
	}
	return f.Err
}

func there(f tracking.Finding) bool {
	return f.Presence == tracking.PresenceNamed || f.Presence == tracking.PresenceProcessing
}

// read draws from two answers about nothing what absence looks like. control
// is an answer about a tracking that is there.
func (a *AbsentProbe) read(absent [2]tracking.Finding, control tracking.Finding) {
	one, two := absent[0], absent[1]
	looks := [2]string{one.Body.AbsenceFingerprint(one.Status, a.ReferIDs[0]), two.Body.AbsenceFingerprint(two.Status, a.ReferIDs[1])}
	a.Status, a.Message, a.Look = one.Status, one.Body.ErrorText(), looks[0]
	switch {
	case looks[0] != looks[1]:
		a.Why = "two such answers do not look alike; the other: " + looks[1]
	case there(one) || there(two):
		a.Why = "the service answers as if it had a tracking of any referId"
	case one.Presence == tracking.PresenceAbsent && two.Presence == tracking.PresenceAbsent:
		a.Recognised = true
	case one.Err != nil:
		a.Why = one.Err.Error()
	default:
		a.Why = "the answer " + one.Why
	}
	if a.Recognised || there(one) || there(two) || looks[0] != looks[1] {
		return
	}
	// Only an answer with a status in it shows that an entry doesn't fit those.
	a.Proven = control.Presence == tracking.PresenceNamed && slices.ContainsFunc(control.Body.Answer().Trackings, tracking.Tracking.Known)
	for _, entry := range absentEntries(one) {
		told := entry.Match == (tracking.Match{}) // a value counts only if an answer that shows a tracking has another
		if a.Proven {
			told = !entry.Holds(control.Status, control.Body)
		}
		if told && entry.Holds(one.Status, one.Body) && entry.Holds(two.Status, two.Body) {
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
	if m := f.Body.Answer().Message; m != "" && !saysNothing(m) {
		entries = append(entries, tracking.Absent{Status: f.Status, Message: m})
	}
	for mark := range f.Body.DistinctivePointers() {
		literal, _ := f.Body.Pointer(mark)
		entry := tracking.Absent{Status: f.Status, Match: tracking.Match{Path: mark, Equals: string(literal)}}
		if strings.ContainsRune("nf{[", rune(literal[0])) { // null, false and what is empty
			entries = append(entries, entry)
		} else if mark != "/message" && steady(literal) {
			weaker = append(weaker, entry)
		}
	}
	entries = append(entries, weaker...)
	if f.Status >= 400 && f.Status < 500 {
		entries = append(entries, tracking.Absent{Status: f.Status})
	}
	return entries
}

// steady reports whether a value is more likely a code or a word than a time
// or the answer's own name.
func steady(literal []byte) bool {
	digits := 0
	for _, c := range literal {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return len(literal) <= 64 && digits <= 6
}

// saysNothing reports whether a message could stand in any answer.
func saysNothing(m string) bool {
	switch strings.ToLower(strings.Trim(m, " .!")) {
	case "ok", "success", "successful", "done", "processing", "error", "failed":
		return true
	}
	return false
}

// numbers tries parameters until one finds the known number and no random one.
func (p *prober) numbers(found *Probe) error {
	params := []string{found.Number.Configured}
	for _, name := range numberParams() {
		if !slices.Contains(params, name) {
			params = append(params, name)
		}
	}
	for _, name := range params {
		f, err := p.find(tracking.Query{Number: found.Known.Number, Param: name}, found.Known)
		if err != nil {
			return err
		}
		try := ParamTry{Param: name, Known: words(f)}
		if there(f) {
			number := randomNumber()
			r, err := p.find(tracking.Query{Number: number, Param: name}, tracking.Item{Number: number})
			if err != nil {
				return err
			}
			if try.Random = words(r); !there(r) && len(r.Body.Answer().Trackings) == 0 {
				found.Number.Works = name
			}
		}
		found.Number.Tried = append(found.Number.Tried, try)
		if found.Number.Works != "" {
			return nil
		}
	}
	return nil
}

// words says what came of a question.
func words(f tracking.Finding) string {
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

// SaveProbe writes what was proven, and is not set yet, into the user's
// configuration file, below the profile in force. The error is a
// [*config.KeyError].
func (s *Session) SaveProbe(p *Probe) error {
	var all []config.Assignment
	if a := p.Absent; a.Suggestion != nil && a.Proven {
		list := []map[string]any{}
		for _, c := range s.Config.Query.Absent {
			list = append(list, config.AbsentEntry(c))
		}
		text, err := json.Marshal(append(list, config.AbsentEntry(*a.Suggestion)))
		if err != nil {
			return err
		}
		all = append(all, config.Assignment{Key: "query.absent", Value: string(text)})
	}
	if p.Number.Works != "" && p.Number.Works != p.Number.Configured {
		all = append(all, config.Assignment{Key: "query.tracking_number_param", Value: p.Number.Works})
	}
	if len(all) == 0 {
		return nil
	}
	path, err := config.Set(s.sources, s.Config.Profile, all...)
	if err != nil {
		return err
	}
	p.SavedTo = path
	for _, a := range all {
		if o := s.Config.Origin(a.Key); o.Level > config.FromProfile {
			s.IO.Warning("%s is set by %s too, which wins over %s", a.Key, o, path)
		}
	}
	return nil
}
