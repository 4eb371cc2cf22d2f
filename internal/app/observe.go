package app

import (
	"context"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/observed"
)

const (
	observeEvery = time.Second     // what answers hold is written so often; a killed process loses what it met since
	observeLast  = 2 * time.Second // how long the end of a command waits for it at most
)

// observer writes what answers hold in groups, beside the requests. It is safe for concurrent use.
type observer struct {
	recorder *observed.Recorder
	store    func() observed.Store // nil while there is none
	failed   func(error)

	mu      sync.Mutex
	written time.Time // when it last began to write
	writing sync.WaitGroup
	busy    bool
}

// newObserver writes to the store that the command opened: a command that has none makes none for it.
func (s *Session) newObserver() *observer {
	return &observer{
		recorder: observed.NewRecorder(),
		written:  time.Now(),
		failed:   func(err error) { s.IO.Detail("what the responses hold was not recorded: %v", err) },
		store: func() observed.Store {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.store == nil || s.store.writable != nil {
				return nil
			}
			return s.store.Observed
		},
	}
}

func (o *observer) add(x api.Trace) {
	if x.Status == 0 || x.Err != nil {
		return // no answer, or a part of one
	}
	now := time.Now()
	o.recorder.Answer(observed.Answer{Source: observed.Source(x.Operation), Status: x.Status, Header: x.Header, Body: x.Answer, JSON: x.JSON}, now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || now.Sub(o.written) < observeEvery {
		return
	}
	o.busy, o.written = true, now
	o.writing.Go(func() {
		o.flush(context.Background())
		o.mu.Lock()
		o.busy = false
		o.mu.Unlock()
	})
}

func (o *observer) flush(ctx context.Context) {
	db := o.store()
	if db == nil {
		return
	}
	met := o.recorder.Take()
	if len(met) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, observeLast)
	defer cancel()
	if err := db.Observe(ctx, met); err != nil {
		o.failed(err)
	}
}

// Observer returns what adds the deliveries of the store to the register of what was met.
func (s *Store) Observer() *follow.Observer {
	return &follow.Observer{Inbox: s.Inbox, Store: s.Observed}
}
