package bulk

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Batches claimed, or recorded, in one transaction: an fsync per 40 rows would cost more than everything else.
const (
	claimAsync  = 1
	claimSync   = 32
	maxRecorded = 32
	// maxClaimFed bounds the fed batches that a worker claims at once: they become unknown if this process dies.
	maxClaimFed = 2
)

// sender sends the pending rows of a run, in rounds. Each round is a [dispatch].
type sender struct {
	*prover

	requests       int64
	rowsSent       int64          // see Sent
	sentUnknown    map[int64]bool // rows counted in rowsSent whose outcome was unknown
	rejected       int64
	unknownStreaks int    // see maxUnknownStreaks
	maxBatch       int    // maximum rows per request from the next round on; 0 for no limit
	resentOne      bool   // see ResendOne
	firstAsked     bool   // see askBeforeFirst
	firstNoted     bool   // the user was told that one row is sent first
	absentBefore   string // referId that the service lacked before the account's first row was sent
	spotted        bool   // the first accepted batch is, or was, checked
}

func (s *sender) dispatch(soft context.Context) (*dispatch, error) {
	d := &dispatch{sender: s, maxRows: s.Run.Plan.BatchSize, sent: make(chan sentBatch, s.workers())}
	if d.claimSize = claimAsync; s.Run.Plan.Mode == ledger.Sync {
		d.claimSize = claimSync
	}
	d.recorded = sync.NewCond(&d.mu)
	limit, err := s.Ledger.BatchLimit(soft, s.Run.Plan.Mode)
	if err != nil {
		return nil, err
	}
	d.capBatchRows(limit)
	d.capBatchRows(s.maxBatch)
	d.maxRowsLowered = false
	return d, nil
}

func (s *sender) sendPending(ctx, soft context.Context) error {
	if err := s.askBeforeFirst(soft); err != nil {
		return err
	}
	d, err := s.dispatch(soft)
	if err != nil {
		return err
	}
	if err := d.sendFirst(ctx, soft); err != nil {
		return err
	}
	if err := d.sendAll(ctx, soft); err != nil || d.answered || d.lastUnknown == nil || !s.Unknown.Queries() {
		return err
	}
	if s.unknownStreaks++; s.unknownStreaks > maxUnknownStreaks {
		return stopf(d.lastUnknown.Outcome, d.lastUnknown.Err, "the same rows got no answer every time")
	}
	return nil
}

func (j *Job) workers() int { return max(j.Workers, 1) }

type sentBatch struct {
	batch   ledger.Batch
	reply   *tracking.Reply
	outcome ledger.BatchOutcome
}

// dispatch sends pending batches and holds the state that its workers share.
//
// Workers send; meanwhile one goroutine records outcomes, several in one transaction. A worker without a batch waits
// while others send, because a batch may become pending again, in halves.
type dispatch struct {
	*sender
	sent chan sentBatch

	claimSize int
	claiming  sync.Mutex     // guards queue
	queue     []ledger.Batch // claimed and not sent

	// Rows of the first accepted batch that the service shows, and the shape of its response.
	spotChecked []ledger.UnknownRow
	spotShape   string

	mu                  sync.Mutex // guards the fields below, and the counters of sender and prover
	recorded            *sync.Cond // signals that finished or ended changed
	maxRows             int        // maximum rows per request
	maxRowsLowered      bool       // the ledger still has a higher limit
	inFlight            int        // batches claimed but not recorded
	finished            int        // batches recorded
	ended               bool
	consecutiveUnknowns int
	answered            bool            // a request had a credible response
	lastUnknown         *tracking.Reply // of the last unknown outcome
	requestTook         time.Duration   // duration of the last request
	claimTook           time.Duration   // duration of the last claim of fed batches
}

// sendAll returns why the workers stopped although batches were pending.
func (d *dispatch) sendAll(ctx, soft context.Context) error {
	soft, cancel := context.WithCancel(soft)
	defer cancel()
	g, gctx := errgroup.WithContext(soft)
	defer context.AfterFunc(gctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ended = true
		d.recorded.Broadcast()
	})()
	recordErr := make(chan error, 1)
	go func() { recordErr <- d.recordAll(context.WithoutCancel(ctx), cancel) }()
	for range d.workers() {
		g.Go(func() error { return d.runWorker(ctx, gctx, g) })
	}
	err := g.Wait()
	close(d.sent)
	if e := <-recordErr; e != nil {
		return e // the reason takes precedence over the workers' errors
	}
	return cmp.Or(d.returnQueue(context.WithoutCancel(ctx)), err, d.renewProof(ctx))
}

// runWorker ends with soft, or after a response that stops the run. The first accepted batch is checked concurrently.
func (d *dispatch) runWorker(ctx, soft context.Context, g *errgroup.Group) error {
	for {
		b, pass, err := d.nextBatch(soft, d.claimOne)
		if pass == nil || err != nil {
			return err
		}
		_, err = d.exchangeBatch(ctx, soft, b, pass, func(o sentBatch) error {
			d.sent <- o
			if d.isFirstAccepted(o) {
				g.Go(func() error { return d.checkFirstBatch(soft, o) })
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// exchangeBatch sends a claimed batch, and passes its outcome to record before it adapts to it. The outcome is nil if
// nothing was sent. The error says why the run stops, if it does.
func (d *dispatch) exchangeBatch(
	ctx, soft context.Context, b ledger.Batch, pass *pace.Pass, record func(sentBatch) error,
) (*sentBatch, error) {
	reply, err := d.create(ctx, soft, b, pass)
	if reply == nil || err != nil {
		return nil, err
	}
	stop := d.adapt(soft, pass, reply)
	o := sentBatch{b, reply, d.outcomeOf(ctx, soft, b, reply)}
	if err := record(o); err != nil {
		return nil, err
	}
	if stop == nil {
		stop = d.applyOutcome(ctx, o)
	}
	if stop != nil {
		return nil, stop
	}
	return &o, nil
}

// create sends a batch while no other process can have it. Otherwise the reply is nil: nothing was sent, the pass
// ends, and the batch is pending again. The error says that others have it, or that the store can't be reached.
func (d *dispatch) create(ctx, soft context.Context, b ledger.Batch, pass *pace.Pass) (*tracking.Reply, error) {
	owned := func() error { return d.Ledger.CheckOwner(b.Owner) }
	if owned() == nil {
		reply := d.Service.Create(tracking.WithAllowed(ctx, owned), b.Items())
		if reply.Outcome != tracking.OutcomeNotSent || owned() == nil {
			return reply, nil
		}
	}
	pass.Release()
	d.claiming.Lock()
	d.queue = append(d.queue, b)
	d.claiming.Unlock()
	if err := d.returnQueue(context.WithoutCancel(soft)); err != nil {
		return nil, err
	}
	_ = pace.Sleep(soft, otherPoll) // callers notice the end of soft
	return nil, nil                 //nolint:nilnil // see above
}

// nextBatch returns no pass if claim has no batch and none is in flight, or if soft has ended.
func (d *dispatch) nextBatch(
	soft context.Context, claim func(context.Context) ([]ledger.Batch, error),
) (ledger.Batch, *pace.Pass, error) {
	for {
		d.mu.Lock()
		before := d.finished
		d.mu.Unlock()
		pass, err := d.Gate.Enter(soft)
		if err != nil {
			return ledger.Batch{}, nil, nil //nolint:nilerr // the end of soft is not an error
		}
		claimed, err := claim(soft)
		if err == nil && len(claimed) > 0 {
			return claimed[0], pass, nil
		}
		pass.Release()
		if err != nil || !d.waitForOutcome(before) {
			return ledger.Batch{}, nil, err
		}
	}
}

// waitForOutcome is false if no batch is in flight any more.
func (d *dispatch) waitForOutcome(before int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.finished == before && d.inFlight > 0 && !d.ended {
		d.recorded.Wait()
	}
	return d.finished != before && !d.ended
}

// claimOne returns no batch if none is pending. If batches are claimed one at a time, workers claim concurrently.
func (d *dispatch) claimOne(soft context.Context) ([]ledger.Batch, error) {
	if d.Feed != nil {
		if fed, err := d.claimFed(soft); len(fed) > 0 || err != nil || soft.Err() != nil {
			return fed, err
		}
	}
	ctx := context.WithoutCancel(soft)
	if d.claimSize == 1 {
		return d.claimBatches(ctx, 1, d.capBatchRows(0))
	}
	d.claiming.Lock()
	defer d.claiming.Unlock()
	if len(d.queue) == 0 {
		var err error
		if d.queue, err = d.claimBatches(ctx, d.claimSize, d.capBatchRows(0)); err != nil {
			return nil, err
		}
	}
	return d.dequeue(), nil
}

// claimBatches claims up to n batches of up to size rows of the run, or adopts some of other runs.
func (d *dispatch) claimBatches(ctx context.Context, n, size int) ([]ledger.Batch, error) {
	claimed, err := d.Ledger.Claim(ctx, d.Run.ID, n, size)
	if err == nil && len(claimed) == 0 {
		var adopted int64
		if adopted, err = d.Ledger.Adopt(ctx, d.Run.ID, n*d.Run.Plan.BatchSize); err == nil && adopted > 0 {
			claimed, err = d.Ledger.Claim(ctx, d.Run.ID, n, size)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight += len(claimed)
	return claimed, err
}

// claimFed returns a batch that was just staged, and none if no more follow. Workers claim concurrently, while the
// next rows are staged. They claim as many at once as can be sent in the time that a claim takes.
func (d *dispatch) claimFed(soft context.Context) ([]ledger.Batch, error) {
	for {
		if next := d.enqueue(nil); len(next) > 0 {
			return next, nil
		}
		full, err := d.Feed.take(soft, d.claimsFed)
		if len(full) == 0 || err != nil {
			return nil, err
		}
		if len(full[0].Rows) > d.capBatchRows(0) {
			continue // a later claim cuts them
		}
		began := time.Now()
		claimed, err := d.Ledger.ClaimFull(context.WithoutCancel(soft), d.Run.ID, full)
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.inFlight += len(claimed)
		d.claimTook = time.Since(began)
		d.mu.Unlock()
		if next := d.enqueue(claimed); len(next) > 0 {
			return next, nil
		}
	}
}

func (d *dispatch) claimsFed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.requestTook <= 0 {
		return d.claimSize
	}
	return max(d.claimSize, int(min(1+d.claimTook/d.requestTook, maxClaimFed)))
}

// enqueue queues claimed batches, and removes and returns one.
func (d *dispatch) enqueue(claimed []ledger.Batch) []ledger.Batch {
	d.claiming.Lock()
	defer d.claiming.Unlock()
	d.queue = append(d.queue, claimed...)
	return d.dequeue()
}

// dequeue removes and returns a batch, if there is one. The queue must be locked.
func (d *dispatch) dequeue() []ledger.Batch {
	next := d.queue[:min(len(d.queue), 1)]
	d.queue = d.queue[len(next):]
	return next
}

// capBatchRows lowers maxRows to rows, unless rows is 0, and returns maxRows.
func (d *dispatch) capBatchRows(rows int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if rows > 0 && rows < d.maxRows {
		d.maxRows, d.maxRowsLowered = rows, true
	}
	return d.maxRows
}

// recordAll records batches as they are sent. On an error, it ends the sending, and still tries to record requests in
// flight. It returns the last error, which names the file with all responses.
func (d *dispatch) recordAll(ctx context.Context, end func()) error {
	var failed error
	counted := time.Now()
	for o := range d.sent {
		some := []sentBatch{o}
		for len(some) < maxRecorded && len(d.sent) > 0 { // there is no other receiver
			some = append(some, <-d.sent)
		}
		err := d.record(ctx, some)
		if err == nil && time.Since(counted) >= countEvery {
			_, err = d.countRows(ctx)
			counted = time.Now()
		}
		if err != nil {
			failed = err
			end()
		}
	}
	return failed
}

func (d *dispatch) record(ctx context.Context, some []sentBatch) error {
	all := make([]ledger.BatchOutcome, len(some))
	for i, o := range some {
		all[i] = o.outcome
	}
	if err := d.Ledger.RecordOutcomes(ctx, all); err != nil {
		return err
	}
	d.recordSightings(ctx, some)
	for _, o := range some {
		d.Recorded(o.batch, o.reply)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range some {
		d.countSent(o)
	}
	d.finished += len(some)
	d.inFlight -= len(some)
	d.recorded.Broadcast()
	return nil
}

// countSent counts the rows of a batch that was sent: see [Job.Sent].
func (d *dispatch) countSent(o sentBatch) {
	if !o.outcome.WasSent() {
		return
	}
	own := make(map[int64]ledger.State, len(o.outcome.Rows))
	for _, v := range o.outcome.Rows {
		own[v.Row] = v.State
	}
	for _, row := range o.batch.Rows {
		state := cmp.Or(own[row.ID], o.outcome.State)
		if state == ledger.Pending {
			continue
		}
		d.rowsSent++
		if state == ledger.Unknown {
			d.sentUnknown[row.ID] = true
		}
	}
}

func (s *sender) uncountSent(found []ledger.Resolution) {
	for _, f := range found {
		if s.sentUnknown[f.Row] {
			delete(s.sentUnknown, f.Row)
			s.rowsSent--
		}
	}
}

func (d *dispatch) returnQueue(ctx context.Context) error {
	d.claiming.Lock()
	defer d.claiming.Unlock()
	if len(d.queue) == 0 {
		return nil
	}
	back := make([]ledger.BatchOutcome, len(d.queue))
	for i, b := range d.queue {
		back[i] = ledger.BatchOutcome{Batch: b.ID, State: ledger.Pending}
	}
	if err := d.Ledger.RecordOutcomes(ctx, back); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue, d.inFlight, d.finished = nil, d.inFlight-len(back), d.finished+len(back)
	d.recorded.Broadcast()
	return nil
}
