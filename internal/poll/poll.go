// Package poll asks about many keys repeatedly until each is done: politely, with growing and varying pauses, and
// never with more than a few questions in flight. Its memory does not grow with the number of keys.
package poll

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
)

// Limits of what is held at once.
const (
	chunk = 256 // keys that are loaded at once
	// maxWaiting keys wait for their next question in memory, the others in a file, in order of asking.
	maxWaiting = 1024
	// Answers are recorded when there are this many, when the first is this old, or when nothing else is going on. No
	// question begins while maxUnrecorded answers wait.
	recordAtOnce  = 256
	recordAfter   = 500 * time.Millisecond
	maxUnrecorded = 2 * recordAtOnce
	scouts        = 8               // alike keys (see [Verdict]) with short pauses
	longestAlike  = 2 * time.Minute // pause of the other alike keys, while all keys fit in memory
)

// Verdict says how to continue with a key.
type Verdict struct {
	Done  bool // needs no further question
	Retry bool // the last question failed, and is repeated before questions about keys asked since
	// Alike says that the key waits for an event that comes for all alike keys at about the same time. A few alike keys
	// have short pauses, the others are asked about once one of them is done.
	Alike     bool
	NotBefore time.Duration // a longer pause than usual; 0 for none
	Asked     time.Time     // set by Load: when the key was last queried; zero if never
}

// Answer is the result of one question.
type Answer[K, R any] struct {
	Key    K
	Result R
}

// Steps are the operations on keys. Load and Record get no key with a question in flight. Any error ends the poll.
type Steps[K, R any] interface {
	// Load loads the known state of keys before the first question, and of all waiting keys after a wake-up.
	Load(ctx context.Context, keys []K) ([]Verdict, error)

	// Ask asks one question. Several goroutines call it.
	Ask(ctx context.Context, key K) (R, error)

	// Record records answers.
	Record(ctx context.Context, answers []Answer[K, R]) ([]Verdict, error)

	// Leave gets the keys that were not done at the end.
	Leave(ctx context.Context, keys []K) error
}

// Options configure a poll.
type Options struct {
	Workers int // maximum number of questions in flight
	Pauses  pace.Backoff
	Wake    <-chan struct{} // receives a value when Load may have news about waiting keys
	// Hard ends questions in flight; nil: ctx ends them. Answers after the end of ctx are recorded.
	Hard context.Context //nolint:containedctx // a second end beside ctx
}

// Run asks about each key until Load or Record says that it is done: first keys that were never asked about, then the
// least recently asked ones, then each when its pause is over. The error is the first one of the steps, else the
// cause of ctx if it ended before all keys were done. encoding/json must be able to encode keys. Run reads all keys,
// even after the end of ctx.
//
//nolint:contextcheck // Hard ends queries
func Run[K, R any](ctx context.Context, keys iter.Seq2[K, error], steps Steps[K, R], o Options) error {
	next, stop := iter.Pull2(keys)
	defer stop()
	asking, cancel := context.WithCancelCause(cmp.Or(o.Hard, ctx))
	defer cancel(nil)
	p := &poller[K, R]{
		Options: o, steps: steps, next: next, asks: make(chan *entry[K]),
		answers: make(chan reply[K, R]), loaded: make(chan batch[K], 1), recorded: make(chan batch[K], 1),
	}
	defer p.later.close()
	var workers sync.WaitGroup
	for range max(o.Workers, 1) {
		workers.Go(func() {
			for e := range p.asks {
				result, err := steps.Ask(asking, e.Key)
				p.answers <- reply[K, R]{e, result, err}
			}
		})
	}
	p.deadline, _ = ctx.Deadline()
	err := p.run(ctx)
	if err != nil && ctx.Err() == nil {
		cancel(err) // after an error the other answers are useless
	}
	err = p.end(context.WithoutCancel(ctx), err)
	close(p.asks)
	workers.Wait()
	return err
}

type entry[K any] struct {
	Key    K            `json:"key"`
	Due    time.Time    `json:"due"`    // time of the next question
	Pauses pace.Backoff `json:"pauses"` // before further questions

	loaded bool      // after it was read from the file
	retry  bool      // see [Verdict]
	wakes  int       // number of wake-ups before its question
	alike  bool      // according to the last verdict
	scout  bool      // alike, with short pauses
	usual  time.Time // when the entry would be due with short pauses; zero if that is Due
	epoch  int       // of the poller, when usual was set
}

type batch[K any] struct {
	entries  []*entry[K]
	verdicts []Verdict
	drained  bool // no further keys follow
	err      error
}

type reply[K, R any] struct {
	entry  *entry[K]
	result R
	err    error
}

// poller is one Run. Its fields belong to the goroutine of run.
type poller[K, R any] struct {
	Options
	steps Steps[K, R]
	next  func() (K, error, bool)

	fresh      []*entry[K] // loaded, never queried
	waiting    []*entry[K] // by due time
	scouts     int         // entries that are scouts
	epoch      int         // how often short pauses were restored
	deadline   time.Time   // zero for none
	later      backlog[K]  // in order of asking
	drained    bool        // there are no new keys
	reload     bool        // the known state of waiting keys may have changed
	wakes      int         // wake-ups so far
	busy       int         // questions in flight
	unrecorded []reply[K, R]
	since      time.Time // time of the first unrecorded answer

	loading, recording bool // a step is running
	asks               chan *entry[K]
	answers            chan reply[K, R]
	loaded, recorded   chan batch[K]
}

func (p *poller[K, R]) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := p.begin(ctx); err != nil {
			return err
		}
		if p.finished() {
			return nil
		}
		timer.Reset(time.Until(p.nextDue()))
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		case <-p.Wake:
			p.reload = true
			p.wakes++
		case b := <-p.loaded:
			err = p.takeLoaded(b)
		case r := <-p.answers:
			err = p.takeAnswer(r)
		case b := <-p.recorded:
			err = p.takeRecorded(b)
		}
		if err != nil {
			return err
		}
	}
}

func (p *poller[K, R]) begin(ctx context.Context) error {
	if err := p.beginLoad(ctx); err != nil {
		return err
	}
	for p.busy < max(p.Workers, 1) && len(p.unrecorded) < maxUnrecorded {
		e := p.nextEntry()
		if e == nil {
			break
		}
		p.busy++
		e.wakes = p.wakes
		p.asks <- e
	}
	p.beginRecord(context.WithoutCancel(ctx))
	return nil
}

// nextEntry removes and returns the entry to ask about now, or returns nil.
func (p *poller[K, R]) nextEntry() *entry[K] {
	from := &p.fresh
	if len(p.waiting) > 0 && !time.Now().Before(p.waiting[0].Due) && (len(p.fresh) == 0 || p.waiting[0].retry) {
		from = &p.waiting
	}
	if len(*from) == 0 {
		return nil
	}
	e := (*from)[0]
	*from = (*from)[1:]
	return e
}

func (p *poller[K, R]) nextDue() time.Time {
	due := time.Now().Add(time.Hour)
	if len(p.waiting) > 0 && p.busy < max(p.Workers, 1) && len(p.unrecorded) < maxUnrecorded {
		due = p.waiting[0].Due
	}
	if at := p.since.Add(recordAfter); len(p.unrecorded) > 0 && !p.recording && at.Before(due) {
		due = at
	}
	return due
}

func (p *poller[K, R]) finished() bool {
	return p.drained && !p.loading && !p.recording && p.busy == 0 &&
		len(p.unrecorded)+len(p.fresh)+len(p.waiting)+p.later.len() == 0
}

// beginLoad loads waiting entries after a wake-up, else new ones, else the least recently asked ones.
func (p *poller[K, R]) beginLoad(ctx context.Context) error {
	switch {
	case p.loading:
		return nil
	case p.reload && len(p.waiting) > 0:
		b := batch[K]{entries: p.waiting, drained: p.drained}
		p.waiting, p.reload = nil, false
		p.load(ctx, func() batch[K] { return b })
	case !p.drained && len(p.fresh) < chunk && len(p.waiting) < maxWaiting:
		p.load(ctx, p.newKeys)
	case p.drained && p.later.len() > 0 && len(p.waiting) < maxWaiting:
		return p.resume(ctx)
	}
	return nil
}

func (p *poller[K, R]) load(ctx context.Context, get func() batch[K]) {
	p.loading = true
	go func() {
		b := get()
		keys := make([]K, len(b.entries))
		for i, e := range b.entries {
			keys[i] = e.Key
			e.loaded = true
		}
		if b.err == nil && len(keys) > 0 {
			b.verdicts, b.err = p.steps.Load(context.WithoutCancel(ctx), keys)
		}
		p.loaded <- b
	}()
}

func (p *poller[K, R]) newKeys() (b batch[K]) {
	for len(b.entries) < chunk {
		k, err, ok := p.next()
		if !ok || err != nil {
			b.drained, b.err = !ok, err
			return b
		}
		b.entries = append(b.entries, &entry[K]{Key: k, Pauses: p.Pauses})
	}
	return b
}

// resume takes back the least recently asked entries. Those from the file are loaded again.
func (p *poller[K, R]) resume(ctx context.Context) error {
	var again batch[K]
	again.drained = true
	for len(again.entries) < chunk && len(p.waiting) < maxWaiting && p.later.len() > 0 {
		e, err := p.later.pop()
		if err != nil {
			return err
		}
		if e.loaded {
			p.await(e)
		} else {
			again.entries = append(again.entries, e)
		}
	}
	if len(again.entries) > 0 {
		p.load(ctx, func() batch[K] { return again })
	}
	return nil
}

func (p *poller[K, R]) takeLoaded(b batch[K]) error {
	p.loading, p.drained = false, b.drained
	for i, v := range b.verdicts {
		var err error
		switch e := b.entries[i]; {
		case v.Done:
			p.retire(e)
		case !e.Due.IsZero(): // asked by this poll
			p.unhold(e)
			p.await(e)
		case v.Asked.IsZero():
			p.fresh = append(p.fresh, e)
		default:
			e.Due = v.Asked
			err = p.postpone(e)
		}
		if err != nil {
			return errors.Join(b.err, err)
		}
	}
	if len(b.verdicts) == 0 {
		p.fresh = append(p.fresh, b.entries...) // no step gave verdicts
	}
	return b.err
}

// postpone puts an entry after all that were asked about less recently.
func (p *poller[K, R]) postpone(e *entry[K]) error {
	if p.drained && p.later.len() == 0 && len(p.waiting) < maxWaiting {
		p.await(e)
		return nil
	}
	return p.later.push(e)
}

func (p *poller[K, R]) takeAnswer(r reply[K, R]) error {
	p.busy--
	if r.err != nil {
		p.fresh = append(p.fresh, r.entry)
		return r.err
	}
	if len(p.unrecorded) == 0 {
		p.since = time.Now()
	}
	p.unrecorded = append(p.unrecorded, r)
	return nil
}

func (p *poller[K, R]) beginRecord(ctx context.Context) {
	if p.recording || len(p.unrecorded) == 0 {
		return
	}
	idle := p.busy == 0 && len(p.fresh) == 0 && !p.loading
	if len(p.unrecorded) < recordAtOnce && time.Since(p.since) < recordAfter && !idle {
		return
	}
	p.recording = true
	some := p.unrecorded
	p.unrecorded = nil
	go func() { p.recorded <- p.record(ctx, some) }()
}

func (p *poller[K, R]) record(ctx context.Context, some []reply[K, R]) batch[K] {
	b := batch[K]{entries: make([]*entry[K], len(some))}
	answers := make([]Answer[K, R], len(some))
	for i, r := range some {
		b.entries[i], answers[i] = r.entry, Answer[K, R]{r.entry.Key, r.result}
	}
	b.verdicts, b.err = p.steps.Record(ctx, answers)
	return b
}

func (p *poller[K, R]) takeRecorded(b batch[K]) error {
	p.recording = false
	ready := false // an alike key is done
	for i, v := range b.verdicts {
		e := b.entries[i]
		p.retire(e)
		ready = ready || v.Done && e.alike
		if e.alike, e.usual = v.Alike, (time.Time{}); v.Done {
			continue
		}
		p.reload = p.reload || e.wakes != p.wakes // the last wake-up did not load it
		e.Due, e.retry = time.Now().Add(max(e.Pauses.Next(), v.NotBefore)), v.Retry
		if v.Alike {
			p.hold(e)
		}
		if v.Retry {
			p.await(e)
		} else if err := p.postpone(e); err != nil {
			return errors.Join(b.err, err)
		}
	}
	if ready {
		p.release()
	}
	if len(b.verdicts) == 0 {
		p.fresh = append(p.fresh, b.entries...) // no step gave verdicts
	}
	return b.err
}

// end waits for running steps, records the answers, and leaves the rest. failed is the reason for the end.
func (p *poller[K, R]) end(ctx context.Context, failed error) error {
	for p.busy > 0 {
		failed = cmp.Or(failed, p.takeAnswer(<-p.answers))
	}
	var broken error // error of a step
	if p.recording {
		broken = p.takeRecorded(<-p.recorded)
	}
	if p.loading {
		broken = errors.Join(broken, p.takeLoaded(<-p.loaded))
	}
	if len(p.unrecorded) > 0 && broken == nil {
		broken = p.takeRecorded(p.record(ctx, p.unrecorded))
	}
	if failed = cmp.Or(failed, broken); failed == nil {
		return nil
	}
	left := p.leaveAll(ctx)
	if broken != nil {
		return failed // leaving the rest may have failed for the same reason
	}
	return errors.Join(failed, left)
}

// leaveAll calls Leave for all entries, those asked about first.
func (p *poller[K, R]) leaveAll(ctx context.Context) error {
	var keys []K
	leave := func(k K) error {
		if keys = append(keys, k); len(keys) < chunk {
			return nil
		}
		err := p.steps.Leave(ctx, keys)
		keys = nil
		return err
	}
	for _, e := range append(p.waiting, p.fresh...) {
		if err := leave(e.Key); err != nil {
			return err
		}
	}
	for p.later.len() > 0 {
		e, err := p.later.pop()
		if err == nil {
			err = leave(e.Key)
		}
		if err != nil {
			return err
		}
	}
	for k, err, ok := p.next(); ok; k, err, ok = p.next() {
		if err == nil {
			err = leave(k)
		}
		if err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return p.steps.Leave(ctx, keys)
}
