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
	session  *Session
	recorder *observed.Recorder

	mu      sync.Mutex
	written time.Time // when it last began to write
	writing sync.WaitGroup
	busy    bool
}

func (o *observer) add(x api.Trace) {
	if x.Status == 0 || x.Err != nil {
		return // no answer, or a part of one
	}
	now := time.Now()
	answer := observed.Answer{Status: x.Status, Header: x.Header, Body: x.Answer, JSON: x.JSON}
	answer.Source = observed.Source(x.Operation)
	o.recorder.Answer(answer, now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || now.Sub(o.written) < observeEvery {
		return
	}
	o.busy, o.written = true, now
	o.writing.Go(func() {
		o.flush()
		o.mu.Lock()
		o.busy = false
		o.mu.Unlock()
	})
}

// flush writes to the store that the command opened: a command that has none makes none for it.
func (o *observer) flush() {
	o.session.mu.Lock()
	db := o.session.store
	o.session.mu.Unlock()
	if db == nil || db.writable != nil {
		return
	}
	met := o.recorder.Take()
	if len(met) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), observeLast)
	defer cancel()
	if err := db.Observed.Observe(ctx, met); err != nil {
		o.session.IO.Detail("what the responses hold was not recorded: %v", err)
	}
}

// Observer returns what adds the deliveries of the store to the register of what was met.
func (s *Store) Observer() *follow.Observer {
	return &follow.Observer{Inbox: s.Inbox, Store: s.Observed}
}
