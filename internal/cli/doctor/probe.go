package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// probe finds out by queries alone how the service reports an unknown tracking, and which parameter queries by tracking
// number.
func (x *examination) probe(ctx context.Context) []finding {
	client, err := x.call.Client()
	if err != nil {
		return []finding{found(probeFailed, "%v", err).hinted(command.HintOf(err))}
	}
	c := x.call.Config
	p := prober{service: client, gate: x.call.Gate, numberParam: c.Query.TrackingNumberParam}
	p.patience = cmp.Or(c.Timeout, command.QueryTimeout)
	known, err := x.knownItems(ctx, client)
	if err != nil {
		return []finding{found(probeFailed, "%v", err).hinted(command.HintOf(err))}
	}
	result, err := p.probe(ctx, known)
	if err != nil {
		return []finding{found(probeFailed, "%v", err)}
	}
	return []finding{x.absenceFinding(result.absent), x.numberFinding(result)}
}

// knownItems returns the trackings with the REF of the command line, or accepted rows of the store without one.
func (x *examination) knownItems(ctx context.Context, client *api.Client) ([]tracking.Item, error) {
	db, err := x.call.StoreIfAny(ctx)
	if err != nil || x.ref == "" && db == nil {
		return nil, err
	}
	if x.ref == "" {
		return knownItems(db.Trackings.Statuses(ctx, ledger.Filter{Limit: maxRead}))
	}
	var known []tracking.Item
	if db != nil {
		for _, q := range []tracking.Query{{ReferID: x.ref}, {Number: x.ref}} {
			found, err := db.Trackings.Find(ctx, q.ReferID, q.Number)
			if err != nil {
				return nil, err
			}
			for _, st := range found {
				known = append(known, st.Item)
			}
		}
	}
	if len(known) > 0 {
		return known, nil
	}
	f := client.Find(ctx, tracking.Query{ReferID: x.ref}, tracking.Item{ReferID: x.ref})
	for _, t := range f.Body.Answer().Trackings {
		if t.Number != "" {
			known = append(known, tracking.Item{ReferID: x.ref, Number: t.Number})
		}
	}
	return known, nil
}

// maxRead is the number of rows to read in search of processed trackings.
const maxRead = 2000

// knownItems returns up to three accepted rows, processed ones first.
func knownItems(rows iter.Seq2[ledger.TrackingStatus, error]) ([]tracking.Item, error) {
	const enough = 3
	var shown, others []tracking.Item
	for st, err := range rows {
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

func (x *examination) absenceFinding(a absence) finding {
	switch {
	case a.why == "":
		return found(absenceRecognised, "recognised: %s", a.fingerprint)
	case a.suggestion == nil:
		return found(absenceUnknown, "%s: not recognised: %s", a.fingerprint, a.why)
	}
	entry := config.AbsentEntry(*a.suggestion)
	if !a.proven {
		text, _ := json.Marshal(entry) //nolint:errchkjson // JSON types can't fail
		return found(absenceUnproven, "%s: not recognised; %s in query.absent would, unproven: "+
			"no tracking with a status to compare with", a.fingerprint, text)
	}
	var all []map[string]any
	for _, e := range x.call.Config.Query.Absent {
		all = append(all, config.AbsentEntry(e))
	}
	text, _ := json.Marshal(append(all, entry)) //nolint:errchkjson // JSON types can't fail
	f := found(absenceUnset, "%s: not recognised: %s", a.fingerprint, a.why)
	f.NextCommand = x.call.CommandLine("config", "set", "query.absent", string(text))
	return f
}

func (x *examination) numberFinding(r result) finding {
	configured := x.call.Config.Query.TrackingNumberParam
	switch {
	case !r.known:
		return found(numberUntried, "no tracking to ask for by its number")
	case r.works == configured:
		return found(numberFound, "found by %s, as configured", configured)
	case r.works == "":
		return found(numberUnknown, "no parameter finds a tracking by its number (%s)", strings.Join(r.tried, ", "))
	}
	f := found(numberUnset, "found by %s; configured: %s", r.works, configured)
	f.NextCommand = x.call.CommandLine("config", "set", "query.tracking_number_param", r.works)
	return f
}

type result struct {
	absent absence
	known  bool     // the service found a tracking to compare with
	works  string   // parameter that queries by number; empty if none of tried does
	tried  []string // parameters that were tried
}

// absence describes the response to a query for an unknown tracking.
type absence struct {
	fingerprint string           // see [tracking.Body.AbsenceFingerprint]
	why         string           // why waybill does not recognise it; empty if it does
	suggestion  *tracking.Absent // entry of query.absent that would recognise it; nil if none would or none is needed
	proven      bool             // suggestion does not match the response for an existing tracking
}

type prober struct {
	service     *api.Client
	gate        *pace.Gate
	numberParam string        // query.tracking_number_param
	patience    time.Duration // how long a query is retried
}

// probe queries unknown trackings and tries parameters for numbers. It tries known in order until the service finds
// one: without an existing tracking, nothing shows which part of a response means absence.
func (p prober) probe(ctx context.Context, known []tracking.Item) (r result, err error) {
	var refs [2]string
	var absent [2]tracking.Finding
	for i := range absent {
		item := tracking.Item{ReferID: "waybill-probe-" + rand.Text()[:12], Number: randomNumber()}
		refs[i] = item.ReferID
		if absent[i], err = p.find(ctx, tracking.Query{ReferID: item.ReferID}, item); err != nil {
			return r, err
		}
	}
	var control tracking.Finding
	for _, item := range known {
		if control, err = p.find(ctx, tracking.Query{ReferID: item.ReferID}, item); err != nil {
			return r, err
		}
		if r.known = present(control); r.known {
			err = p.findParam(ctx, &r, item)
			break
		}
	}
	r.absent = readAbsence(refs, absent, control)
	return r, err
}

// find queries, and retries temporary failures. A 4xx status about the tracking is a finding, other failures are
// errors.
func (p prober) find(ctx context.Context, q tracking.Query, item tracking.Item) (f tracking.Finding, err error) {
	for retry := pace.NewRetry(p.patience); ; {
		f.Evidence = query.Evidence(ctx, p.gate, func() tracking.Evidence {
			f = p.service.Find(ctx, q, item)
			return f.Evidence
		})
		switch {
		case f.Temporary && retry.Wait(ctx, f.RetryAfter):
		case !f.Temporary && !f.Unauthorized && f.Status/100 == 4:
			return f, context.Cause(ctx)
		default:
			return f, cmp.Or(context.Cause(ctx), f.Err)
		}
	}
}

func present(f tracking.Finding) bool {
	return f.Presence == tracking.PresenceNamed || f.Presence == tracking.PresenceProcessing
}

// readAbsence compares two responses for refs that do not exist with control, the response for an existing tracking.
func readAbsence(refs [2]string, absent [2]tracking.Finding, control tracking.Finding) absence {
	one, two := absent[0], absent[1]
	a := absence{fingerprint: one.Body.AbsenceFingerprint(one.Status, refs[0])}
	other := two.Body.AbsenceFingerprint(two.Status, refs[1])
	switch {
	case a.fingerprint != other:
		a.why = "two responses to unknown trackings differ; the other: " + other
		return a
	case present(one) || present(two):
		a.why = "the service responds to any referId as if it existed"
		return a
	case one.Presence == tracking.PresenceAbsent && two.Presence == tracking.PresenceAbsent:
		return a
	case one.Err != nil:
		a.why = one.Err.Error()
	default:
		a.why = "the response " + one.Why
	}
	// Only a response with a status proves that an entry does not match existing trackings.
	proves := control.Presence == tracking.PresenceNamed &&
		slices.ContainsFunc(control.Body.Answer().Trackings, tracking.Tracking.Known)
	for _, entry := range absentEntries(one) {
		differs := entry.Match == (tracking.Match{}) // without proof, no entry with a value
		if proves {
			differs = !entry.Holds(control.Status, control.Body)
		}
		if differs && entry.Holds(one.Status, one.Body) && entry.Holds(two.Status, two.Body) {
			a.suggestion, a.proven = &entry, proves
			return a
		}
	}
	return a
}

// absentEntries returns entries of query.absent that match a response, most specific first.
func absentEntries(f tracking.Finding) []tracking.Absent {
	var entries, weaker []tracking.Absent
	if m := f.Body.Answer().Message; m != "" && !unspecific(m) {
		entries = append(entries, tracking.Absent{Status: f.Status, Message: m})
	}
	for mark := range f.Body.DistinctivePointers() {
		literal, _ := f.Body.Pointer(mark)
		entry := tracking.Absent{Status: f.Status, Match: tracking.Match{Path: mark, Equals: string(literal)}}
		if strings.ContainsRune("nf{[", rune(literal[0])) { // null, false, {} and []
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

// likelyConstant reports whether a value looks like a code or word rather than a time or an ID.
func likelyConstant(literal []byte) bool {
	digits := 0
	for _, c := range literal {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return len(literal) <= 64 && digits <= 6
}

func unspecific(m string) bool {
	words := []string{"ok", "success", "successful", "done", "processing", "error", "failed"}
	return slices.Contains(words, strings.ToLower(strings.Trim(m, " .!")))
}

// findParam tries parameters, the configured one first, until one finds the known number but no random number.
//
// Assumed: the interface does not show the parameter's name.
func (p prober) findParam(ctx context.Context, r *result, known tracking.Item) error {
	others := []string{"trackingNumber", "rawTrackingNumber", "tracking_number", "number", "trackingNo", "trackingNumbers"}
	others = slices.DeleteFunc(others, func(name string) bool { return name == p.numberParam })
	for _, name := range append([]string{p.numberParam}, others...) {
		f, err := p.find(ctx, tracking.Query{Number: known.Number, Param: name}, known)
		if err != nil {
			return err
		}
		r.tried = append(r.tried, name)
		if !present(f) {
			continue
		}
		number := randomNumber()
		random, err := p.find(ctx, tracking.Query{Number: number, Param: name}, tracking.Item{Number: number})
		if err != nil {
			return err
		}
		if !present(random) && len(random.Body.Answer().Trackings) == 0 {
			r.works = name
			return nil
		}
	}
	return nil
}

// randomNumber returns a tracking number that does not exist.
func randomNumber() string { return "WB" + rand.Text()[:14] }
