package bulk

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Batches that are claimed, or settled, in one commit: an fsync for every 40
// rows would cost more than the rest.
const (
	claimsAsync = 1
	claimsSync  = 32
	mostSettled = 32
)

// dispatch returns what sends the run's rows from now on.
func (j *Job) dispatch(soft context.Context) (*dispatch, error) {
	d := &dispatch{Job: j, claims: claimsAsync, size: j.Run.Plan.BatchSize, outcomes: make(chan outcome, j.workers())}
	if j.Run.Plan.Mode == ledger.Sync {
		d.claims = claimsSync
	}
	d.news = sync.NewCond(&d.mu)
	limit, err := j.Ledger.BatchLimit(soft, j.Run.Plan.Account, j.Run.Plan.Mode)
	if err != nil {
		return nil, err
	}
	d.limit(limit)
	d.limit(j.most)
	d.lowered = false
	return d, nil
}

// send sends every pending row of the run's input.
func (j *Job) send(ctx, soft context.Context) error {
	d, err := j.dispatch(soft)
	if err != nil {
		return err
	}
	if err := d.contact(ctx, soft); err != nil {
		return err
	}
	if err := d.all(ctx, soft); err != nil || d.heard || d.lost == nil || !j.Unknown.Asks() {
		return err
	}
	if j.troubles++; j.troubles > mostTroubles {
		return stopped(d.lost, "stopped: the same rows go unanswered every time")
	}
	return nil
}

func (j *Job) workers() int { return max(j.Workers, 1) }

// outcome is a batch and what came of it.
type outcome struct {
	batch ledger.Batch
	reply *tracking.Reply
	found ledger.Settlement
}

// dispatch hands claimed batches to workers and keeps what they share.
//
// Workers send; one goroutine records outcomes, several in one commit, while
// they go on. A worker that finds nothing to send waits while others are
// sending, for a batch may come back in halves.
type dispatch struct {
	*Job
	claims   int
	outcomes chan outcome

	claiming sync.Mutex     // held for the queue
	queue    []ledger.Batch // claimed with others and not sent

	mu       sync.Mutex
	news     *sync.Cond // an outcome was recorded, or it all ends
	size     int        // rows that one request may carry
	lowered  bool       // size is less than the ledger knows
	open     int        // batches claimed and not settled
	changes  int        // outcomes recorded
	ended    bool
	unknowns int             // in a row
	heard    bool            // a request had an answer that can be believed
	lost     *tracking.Reply // the last of unknown outcome
}

// all runs the workers until nothing is left to send, and returns why they
// stopped if something is.
func (d *dispatch) all(ctx, soft context.Context) error {
	soft, cancel := context.WithCancel(soft)
	defer cancel()
	g, gctx := errgroup.WithContext(soft)
	defer context.AfterFunc(gctx, d.end)()
	settled := make(chan error, 1)
	go func() { settled <- d.settleAll(context.WithoutCancel(ctx), cancel) }()
	for range d.workers() {
		g.Go(func() error { return d.work(ctx, gctx) })
	}
	err := g.Wait()
	close(d.outcomes)
	if e := <-settled; e != nil {
		return e // whatever stopped the others: nobody can go on
	}
	return firstOf(d.giveBack(context.WithoutCancel(ctx)), err)
}

// end wakes up those who wait for others.
func (d *dispatch) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.news.Broadcast()
}

// work sends one batch after the other until there is none, soft ends, or an
// answer stops the run.
func (d *dispatch) work(ctx, soft context.Context) error {
	for {
		b, pass, err := d.next(soft)
		if pass == nil || err != nil {
			return err
		}
		reply := d.Service.Create(ctx, b.Items())
		stop := d.learn(pass, reply)
		o := outcome{b, reply, d.settlement(ctx, soft, b, reply)}
		d.outcomes <- o
		if stop == nil {
			stop = d.react(ctx, o)
		}
		if stop != nil {
			return stop
		}
	}
}

// next returns a claimed batch and leave to send it. There is no pass when
// nothing is left to send, or soft has ended.
func (d *dispatch) next(soft context.Context) (ledger.Batch, *pace.Pass, error) {
	for {
		before := d.recorded()
		pass, err := d.Gate.Enter(soft)
		if err != nil {
			return ledger.Batch{}, nil, nil //nolint:nilerr // stopping is not this worker's failure
		}
		b, ok, err := d.claim(context.WithoutCancel(soft))
		if ok {
			return b, pass, nil
		}
		pass.Release()
		if err != nil || !d.await(before) {
			return ledger.Batch{}, nil, err
		}
	}
}

// recorded returns how many outcomes were recorded.
func (d *dispatch) recorded() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

// await returns true when more outcomes are recorded than before, and false
// when no batch is under way any more.
func (d *dispatch) await(before int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.changes == before && d.open > 0 && !d.ended {
		d.news.Wait()
	}
	return d.changes != before && !d.ended
}

// claim returns a batch of the run, and false when no more is pending. Where
// one is claimed at a time, workers do so side by side.
func (d *dispatch) claim(ctx context.Context) (ledger.Batch, bool, error) {
	if d.claims == 1 {
		some, err := d.claimSome(ctx, 1, d.limit(0))
		if err != nil || len(some) == 0 {
			return ledger.Batch{}, false, err
		}
		return some[0], true, nil
	}
	d.claiming.Lock()
	defer d.claiming.Unlock()
	if len(d.queue) == 0 {
		var err error
		if d.queue, err = d.claimSome(ctx, d.claims, d.limit(0)); err != nil || len(d.queue) == 0 {
			return ledger.Batch{}, false, err
		}
	}
	b := d.queue[0]
	d.queue = d.queue[1:]
	return b, true, nil
}

// claimSome claims up to n batches of up to size rows that are pending in the
// run, or else in the runs of others.
func (d *dispatch) claimSome(ctx context.Context, n, size int) ([]ledger.Batch, error) {
	claimed, err := d.Ledger.Claim(ctx, d.Run.ID, n, size)
	if err == nil && len(claimed) == 0 {
		var adopted int64
		if adopted, err = d.Ledger.Adopt(ctx, d.Run.ID, n*d.Run.Plan.BatchSize); err == nil && adopted > 0 {
			claimed, err = d.Ledger.Claim(ctx, d.Run.ID, n, size)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open += len(claimed)
	return claimed, err
}

// limit lowers how many rows one request may carry, unless rows is 0, and
// returns it.
func (d *dispatch) limit(rows int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if rows > 0 && rows < d.size {
		d.size, d.lowered = rows, true
	}
	return d.size
}

// settleAll records outcomes as they come, those that came meanwhile together.
// When it can't, it ends the sending, and tries those of requests under way
// all the same. It returns the last error: that names where all answers are.
func (d *dispatch) settleAll(ctx context.Context, end func()) error {
	var failed error
	for o := range d.outcomes {
		if err := d.record(ctx, d.gathered(o)); err != nil {
			failed = err
			end()
		}
	}
	return failed
}

// gathered returns an outcome with those that came after it.
func (d *dispatch) gathered(o outcome) []outcome {
	some := []outcome{o}
	for len(some) < mostSettled {
		select {
		case next, ok := <-d.outcomes:
			if !ok {
				return some
			}
			some = append(some, next)
		default:
			return some
		}
	}
	return some
}

// record puts outcomes on disk and then reports them.
func (d *dispatch) record(ctx context.Context, some []outcome) error {
	all := make([]ledger.Settlement, len(some))
	for i, o := range some {
		all[i] = o.found
	}
	if err := d.Ledger.Settle(ctx, all); err != nil {
		return err
	}
	for _, o := range some {
		if d.Settled != nil {
			d.Settled(o.batch, o.reply)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes += len(some)
	d.open -= len(some)
	d.news.Broadcast()
	return nil
}

// giveBack makes batches pending again that were claimed and not sent.
func (d *dispatch) giveBack(ctx context.Context) error {
	d.claiming.Lock()
	defer d.claiming.Unlock()
	if len(d.queue) == 0 {
		return nil
	}
	back := make([]ledger.Settlement, len(d.queue))
	for i, b := range d.queue {
		back[i] = ledger.Settlement{Batch: b.ID, State: ledger.Pending}
	}
	if err := d.Ledger.Settle(ctx, back); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue, d.open, d.changes = nil, d.open-len(back), d.changes+len(back)
	d.news.Broadcast()
	return nil
}
