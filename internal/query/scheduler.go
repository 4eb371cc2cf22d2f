package query

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/poll"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// TargetResult is the result for a target.
type TargetResult struct {
	Target     *Target
	Result     Result
	Matched    bool // it meets the condition
	Unfinished bool // the end came before it was done
	stored     bool // the result comes from the store, and lacks the events
}

// Scheduler queries any number of trackings: each until it is answered, or meets a condition. Answers are recorded,
// many at once, before they count.
type Scheduler struct {
	*Asker
	Workers int
	// Hard ends queries in flight; nil: ctx ends them.
	Hard context.Context //nolint:containedctx // a second end beside ctx
	Wake <-chan struct{} // receives a value when events may have changed the stored state

	// Patience is how long failed queries are retried, overall and for each target; 0: until ctx ends.
	Patience time.Duration
	// Meets sets Matched for results that meet the condition; nil ends each target with its first answer. The results
	// are those of targets that were queried, or of which something is known. Meets may set an error if a target can't
	// meet the condition any more: that ends the target once it was queried.
	Meets func(ctx context.Context, all []TargetResult) error
	// Alike says that Meets accepts any tracking that is no longer Processing, and that no target matters more than
	// others: if many are Processing, only a few are queried often.
	Alike  bool
	AskAll bool // queries each target at least once, whatever is known about it
	// Since, if not zero and if Meets is nil, accepts stored answers from that time on.
	Since time.Time
	Whole bool // adds the last answer to the results of targets that are not queried
	// Choose adds to Chosen of targets that have more rows; nil if Chosen is complete. It is called until a target is
	// queried.
	Choose func(ctx context.Context, ts []*Target) error
	Ended  func(TargetResult) error // gets each target once, in the order in which they end; its error ends everything
	// Failing is called with the reason while queries fail, and with nil once they succeed again.
	Failing func(error)
}

// Pauses between two queries about one tracking.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Run queries all targets. The error is the cause of ctx, an error that every other query would meet too (see
// [tracking.Failure]), or an error of Meets, of Ended, or of the store.
func (s *Scheduler) Run(ctx context.Context, targets iter.Seq2[*Target, error]) error {
	pauses := pace.Backoff{First: firstPause, Max: longestPause}
	o := poll.Options{Workers: s.Workers, Pauses: pauses, Wake: s.Wake, Hard: s.Hard}
	if s.Patience > 0 {
		o.Pauses = pace.NewRetry(s.Patience).Backoff
	}
	return poll.Run(ctx, targets, poll.Steps[*Target, queryReply](&targetPoller{Scheduler: s}), o)
}

var errImpatient = errors.New("the service asked for a longer pause than --timeout allows")

// targetPoller is one run of a scheduler.
type targetPoller struct {
	*Scheduler

	ending sync.Mutex // held while calling Ended

	mu      sync.Mutex
	failing time.Time // when the first query failed after the last answer; zero after an answer
	trouble error     // error of the last failed query
}

// Load reads the stored data of targets, and ends those that need no query.
func (s *targetPoller) Load(ctx context.Context, ts []*Target) ([]poll.Verdict, error) {
	if err := s.readRows(ctx, ts); err != nil {
		return nil, err
	}
	if err := s.choose(ctx, ts); err != nil {
		return nil, err
	}
	all := make([]TargetResult, len(ts))
	for i, t := range ts {
		all[i] = TargetResult{Target: t, Result: t.storedResult(), stored: true}
	}
	if s.Meets != nil {
		if err := s.Meets(ctx, all); err != nil {
			return nil, err
		}
	}
	verdicts := make([]poll.Verdict, len(ts))
	var ended []TargetResult
	for i, e := range all {
		t := ts[i]
		asked := t.lastAsked()
		done, err := t.skipsQuery()
		if t.erased {
			done, err = true, ledger.ErrErased
		}
		if !done && e.Result.Err != nil && !t.Began.IsZero() {
			done, err = true, e.Result.Err
		}
		e.Result.Err = err
		if s.Meets == nil {
			e.Matched = !s.Since.IsZero() && !asked.Before(s.Since)
		}
		e.Matched = e.Matched && !done && (!s.AskAll || !t.Began.IsZero())
		verdicts[i] = poll.Verdict{Done: e.Matched || done, Asked: asked}
		if verdicts[i].Done {
			ended = append(ended, e)
		}
	}
	return verdicts, s.end(ctx, ended)
}

func (s *targetPoller) choose(ctx context.Context, ts []*Target) error {
	several := slices.DeleteFunc(slices.Clone(ts), func(t *Target) bool {
		return t.Chosen == nil || len(t.rows) <= len(t.Chosen) || !t.Began.IsZero()
	})
	if s.Choose == nil || len(several) == 0 {
		return nil
	}
	return s.Choose(ctx, several)
}

// FindRows loads the stored rows of targets: see [Target.Rows]. It sends no query. The store is nil if there is none.
func (a *Asker) FindRows(ctx context.Context, ts []*Target) (*Store, error) {
	store, err := a.Store(ctx)
	if err == nil {
		err = loadRows(ctx, store, ts)
	}
	return store, err
}

// readRows is FindRows, but also finds which of the unknown targets were erased.
func (a *Asker) readRows(ctx context.Context, ts []*Target) error {
	store, err := a.FindRows(ctx, ts)
	if err != nil || store == nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(ts), (*Target).IsKnown)
	var qs []tracking.Query
	for _, t := range others {
		qs = append(qs, tracking.Query{ReferID: t.Query.ReferID}, tracking.Query{Number: t.Query.Ref()})
	}
	found, err := store.Eraser.Erased(ctx, qs)
	if err != nil {
		return err
	}
	for i, t := range others {
		byRefer, byNumber := found[2*i], found[2*i+1]
		t.erased = byRefer && t.Query.ReferID != "" || byNumber && (t.Query.ReferID == "" || !t.Exact)
	}
	return nil
}

// loadRows treats a REF that is not a referId, but the number of a known row, as that number.
func loadRows(ctx context.Context, store *Store, ts []*Target) error {
	if err := find(ctx, store, ts); err != nil {
		return err
	}
	var again []*Target
	for _, t := range ts {
		if len(t.rows) == 0 && !t.Exact && t.Query.ReferID != "" {
			t.Query = tracking.Query{Number: t.Ref}
			again = append(again, t)
		}
		t.Exact = t.Exact || len(t.rows) > 0
	}
	if err := find(ctx, store, again); err != nil || len(again) == 0 {
		return err
	}
	var orders []*Target
	for _, t := range again {
		switch {
		case len(t.rows) == 0:
			t.Query = tracking.Query{ReferID: t.Ref} // until an event is about the number
		case len(t.rows) == 1 && t.rows[0].Item.ReferID != "":
			t.Query = tracking.Query{ReferID: t.rows[0].Item.ReferID} // the interface shows how to query it
			orders = append(orders, t)
		}
	}
	if err := find(ctx, store, orders); err != nil {
		return err
	}
	orders = slices.DeleteFunc(orders, func(t *Target) bool { return len(t.rows) == 1 })
	for _, t := range orders {
		t.Query = tracking.Query{Number: t.Ref} // without the other parcels
	}
	return find(ctx, store, orders)
}

func find(ctx context.Context, store *Store, ts []*Target) error {
	found := make([][]ledger.TrackingStatus, len(ts))
	if store != nil && len(ts) > 0 {
		qs := make([]tracking.Query, len(ts))
		for i, t := range ts {
			qs[i] = t.Query
		}
		var err error
		if found, err = store.Trackings.FindAll(ctx, qs); err != nil {
			return err
		}
	}
	for i, t := range ts {
		t.rows = found[i]
	}
	return nil
}

func (t *Target) storedResult() Result {
	res := Result{Query: t.Query, Ref: t.Ref}
	for _, row := range t.chosenRows() {
		res.Trackings = append(res.Trackings, knownRow{TrackingStatus: row}.tracking())
	}
	knownFirst(res.Trackings)
	return res
}

// Ask queries the service once.
func (s *targetPoller) Ask(ctx context.Context, t *Target) (queryReply, error) {
	t.Began = cmp.Or(t.Began, time.Now())
	entering := ctx
	if s.Patience > 0 {
		var cancel context.CancelFunc
		entering, cancel = context.WithDeadlineCause(ctx, t.Began.Add(s.Patience), errImpatient)
		defer cancel()
	}
	r := s.ask(ctx, entering, t.Query)
	if r.err == nil || errors.Is(r.err, tracking.ErrProcessing) {
		r.err = cmp.Or(r.contradiction(t.rows), r.err)
	}
	if r.found = match(r, t.rows); r.err == nil && len(r.found) > 1 {
		s.askForParcels(ctx, entering, &r, t.narrow(slices.Clone(r.found)))
	}
	if len(r.parcels) > 0 {
		r.found = match(r, t.rows)
	}
	switch {
	case ctx.Err() != nil && !r.usable():
		return r, context.Cause(ctx)
	case tracking.FailureOf(r.err).Systemic:
		return r, r.err
	}
	return r, s.noteTrouble(r.err)
}

// noteTrouble returns an error that ends everything: no query was answered for as long as the patience lasts, or the
// gate admits none before it ends.
func (s *targetPoller) noteTrouble(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errImpatient) {
		return cmp.Or(s.trouble, err)
	}
	failure := tracking.FailureOf(err)
	if !failure.Temporary {
		if s.trouble != nil {
			s.Failing(nil)
		}
		s.failing, s.trouble = time.Time{}, nil
		return nil
	}
	s.Failing(err)
	if s.trouble = err; s.failing.IsZero() {
		s.failing = time.Now()
	}
	if s.Patience > 0 && (time.Since(s.failing) >= s.Patience || failure.RetryAfter > s.Patience) {
		return err
	}
	return nil
}

// Record records answers and ends the targets that are done.
func (s *targetPoller) Record(ctx context.Context, answers []poll.Answer[*Target, queryReply]) ([]poll.Verdict, error) {
	store, err := s.Store(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.recordAnswers(ctx, store, answers)
	if err != nil {
		return nil, err
	}
	if s.Meets != nil {
		if err := s.Meets(ctx, all); err != nil {
			return nil, err
		}
		met := func(e TargetResult) bool { return e.Matched } // events may have arrived since the rows were loaded
		if err := s.mergeEvents(ctx, store, all, met); err != nil {
			return nil, err
		}
	}
	verdicts := make([]poll.Verdict, len(all))
	var ended []TargetResult
	var refused error
	for i, e := range all {
		refused = cmp.Or(refused, answers[i].Result.refused)
		verdicts[i] = s.verdict(&e)
		if verdicts[i].Done {
			ended = append(ended, e)
		}
	}
	return verdicts, cmp.Or(s.end(ctx, ended), refused)
}

func (s *targetPoller) recordAnswers(
	ctx context.Context, store *Store, answers []poll.Answer[*Target, queryReply],
) ([]TargetResult, error) {
	all := make([]TargetResult, len(answers))
	var records []ledger.RecordedAnswer
	for i, a := range answers {
		t, r := a.Key, a.Result
		res := Result{Query: t.Query, Ref: t.Ref, Asked: r.asked, Err: r.err}
		t.failed = r.err
		if _, other := errors.AsType[*OtherError](r.err); other { // shown, but not recorded
			res.Answer, res.Trackings = r.answer, t.narrow(match(queryReply{query: r.query}, t.rows))
		}
		if r.usable() {
			t.failed = nil
			res.Answer, res.Trackings = r.answer, r.found
			if seen := sightings(res, t.rows); len(seen) > 0 || len(t.rows) > 0 {
				met := ledger.RecordedAnswer{ReferID: t.Query.ReferID, Asked: r.asked, Seen: seen, Raw: r.answer.Raw}
				records = append(records, met)
			}
			res.Trackings = t.narrow(res.Trackings)
			if len(t.rows) == 0 && len(res.Trackings) > 0 {
				t.Phase = res.Trackings[0].Phase
			}
		}
		all[i] = TargetResult{Target: t, Result: res}
	}
	if store != nil {
		if err := store.Trackings.Record(ctx, records); err != nil {
			return nil, err
		}
		reported := func(e TargetResult) bool { return e.Target.byEvent() } // the answers recorded now may be newer
		if err := s.mergeEvents(ctx, store, all, reported); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if res := &all[i].Result; len(res.Trackings) > 0 {
			res.Err = outcome(res.Err, res.Trackings[0])
		}
	}
	return all, nil
}

// mergeEvents reloads the rows of some targets, and replaces older answers with what events reported. A target that
// waits on keeps its rows, unless an event reported them: numbers that one answer alone has named are not wanted later.
func (s *targetPoller) mergeEvents(
	ctx context.Context, store *Store, all []TargetResult, reload func(TargetResult) bool,
) error {
	var ts []*Target
	for _, e := range all {
		if reload(e) {
			ts = append(ts, e.Target)
		}
	}
	if err := find(ctx, store, ts); err != nil {
		return err
	}
	for i := range all {
		e := &all[i]
		if !e.Target.byEvent() {
			continue
		}
		rows, err := withEvents(ctx, store, e.Target.rows)
		if err != nil {
			return err
		}
		seen := sightings(e.Result, e.Target.rows)
		rows = slices.DeleteFunc(rows, func(k knownRow) bool { // the answer is newer, in a read-only store
			return byEvent(k.TrackingStatus) && slices.ContainsFunc(seen, func(s ledger.Sighting) bool {
				return s.Key == k.Item.Key() && s.Source == ledger.FromQuery && s.Supersedes(*k.Sighting)
			})
		})
		e.Result.Trackings = merge(e.Result, rows)
	}
	return nil
}

// verdict retries an absent target only if the ledger has it as accepted: a service that works in the background may
// learn of it late.
func (s *targetPoller) verdict(e *TargetResult) poll.Verdict {
	err := e.Result.Err
	failure := tracking.FailureOf(err)
	v := poll.Verdict{NotBefore: failure.RetryAfter}
	switch {
	case failure.Temporary:
		v.Retry = s.Meets == nil
		v.Done = s.Patience > 0 && time.Since(e.Target.Began)+v.NotBefore >= s.Patience
	case s.Meets == nil:
		v.Done = true
		e.Matched = err == nil
	case e.Matched && err == nil:
		v.Done = true
	case errors.Is(err, tracking.ErrAbsent):
		v.Done = !e.Target.Accepted()
	case err != nil:
		v.Done = !errors.Is(err, tracking.ErrUndecided) && !failure.Troubled
	}
	e.Matched = e.Matched && v.Done
	v.Alike = s.Alike && (err == nil || errors.Is(err, tracking.ErrProcessing)) &&
		!slices.ContainsFunc(e.Result.Trackings, func(t Tracking) bool { return t.Phase != ledger.Processing })
	return v
}

// Leave ends the targets that are not done.
func (s *targetPoller) Leave(ctx context.Context, ts []*Target) error {
	if err := s.readRows(ctx, ts); err != nil {
		return err
	}
	all := make([]TargetResult, len(ts))
	for i, t := range ts {
		res := t.storedResult()
		if len(res.Trackings) == 0 {
			asked := tracking.Tracking{ReferID: t.Query.ReferID, Number: t.Query.Number}
			res.Trackings = []Tracking{{Tracking: asked, Phase: cmp.Or(t.Phase, NotAsked)}}
		}
		if res.Err = t.failed; res.Err == nil && res.Trackings[0].Phase == NotAsked {
			res.Err = ErrNotAsked
		}
		all[i] = TargetResult{Target: t, Result: res, Unfinished: true, stored: true}
	}
	return s.end(ctx, all)
}

// end passes results to Ended.
func (s *targetPoller) end(ctx context.Context, all []TargetResult) error {
	store, err := s.Store(ctx)
	if err != nil {
		return err
	}
	s.ending.Lock()
	defer s.ending.Unlock()
	var failed error
	for _, e := range all {
		if e.stored && store != nil {
			if err := s.complete(ctx, store, &e); err != nil {
				return err
			}
		}
		if err := addUnverified(ctx, store, e.Target, e.Result.Trackings); err != nil {
			return err
		}
		failed = cmp.Or(failed, s.Ended(e))
	}
	return failed
}
