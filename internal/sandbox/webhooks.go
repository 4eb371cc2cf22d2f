package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const (
	emitTick     = 50 * time.Millisecond // how often journeys are checked
	emitTimeout  = 10 * time.Second      // for one delivery
	emitTries    = 6
	emitPause    = 200 * time.Millisecond // before the second try; doubling
	emitQueue    = 10_000                 // deliveries waiting; more are dropped and counted
	emitPerRound = 5_000                  // parcels checked in one round
)

// Emission requests one delivery in addition to those that journeys cause.
type Emission struct {
	ReferID        string `json:"referId"`        // empty: by number
	TrackingNumber string `json:"trackingNumber"` // both empty: the first tracking
	Event          string `json:"event"`          // kind; empty for the one of its status
	Count          int    `json:"count"`          // deliveries of the same event; 0 is 1
	Forge          bool   `json:"forge"`          // with a wrong signature
}

type delivery struct {
	body  []byte
	forge bool
	tries int
	due   time.Time
}

type emitter struct {
	s        *Server
	target   *url.URL
	client   *http.Client
	reported bool // a failed delivery was reported; used only by run

	mu      sync.Mutex
	queue   []delivery
	counts  Deliveries
	sending int
	woken   chan struct{}
}

// stats returns what was sent; zeros without a webhook URL.
func (e *emitter) stats() Deliveries {
	if e == nil {
		return Deliveries{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.counts
	d.Waiting = len(e.queue) + e.sending
	return d
}

func newEmitter(s *Server) *emitter {
	target, _ := url.Parse(s.config.WebhookURL) // checked by New
	return &emitter{
		s: s, target: target, woken: make(chan struct{}, 1),
		client: &http.Client{
			Timeout:       emitTimeout,
			Transport:     &http.Transport{},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (e *emitter) wake() {
	if e == nil {
		return
	}
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

func (e *emitter) run(ctx context.Context) {
	defer e.client.CloseIdleConnections()
	t := time.NewTicker(emitTick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-e.woken:
		}
		e.collect()
		e.send(ctx)
	}
}

// collect turns the steps since the last check into events.
func (e *emitter) collect() {
	s := e.s
	var events []map[string]any
	s.state.mu.Lock()
	now := s.state.now()
	for i := range s.state.parcels {
		p := &s.state.parcels[i]
		if now.Before(p.due) || s.processing(*p) {
			continue
		}
		j := s.journey(*p)
		done := len(j.done(now))
		p.due = j.after(done)
		if p.sent == done {
			continue
		}
		if p.sent == 0 {
			p.sent = done - 1 // the steps before the creation are one event
		}
		for ; p.sent < done; p.sent++ {
			if st := j.steps[p.sent]; p.sent+1 == done || st.status != j.steps[p.sent+1].status {
				events = append(events, event(j, p.item, p.sent))
			}
		}
		if len(events) > emitPerRound {
			break
		}
	}
	s.state.mu.Unlock()
	for _, event := range events {
		if body, err := json.Marshal([]any{event}); err == nil {
			e.enqueue(delivery{body: body})
		}
	}
}

// event returns the event for one step of a journey.
//
// Interface: Events.
func event(j journey, it tracking.Item, n int) map[string]any {
	st := j.steps[n]
	data := j.object(it, st.at)
	for _, name := range []string{"referId", "carrierCode"} { // only in answers
		delete(data, name)
	}
	return map[string]any{
		"eventId":   uuid(sha256.Sum256(fmt.Appendf(nil, "%s %d", j.id, n))),
		"event":     "router." + st.status.track,
		"eventTime": st.at.Format(millis),
		"data":      data,
	}
}

func (e *emitter) enqueue(d delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) < emitQueue {
		e.queue = append(e.queue, d)
	}
}

func (e *emitter) send(ctx context.Context) {
	e.mu.Lock()
	queue := e.queue
	e.queue, e.sending = nil, len(queue)
	e.mu.Unlock()
	var again []delivery
	for _, d := range queue {
		if time.Now().Before(d.due) {
			again = append(again, d)
			continue
		}
		if ctx.Err() != nil {
			continue
		}
		err := e.post(ctx, d)
		if say := e.s.config.WebhookTrouble; say != nil && ctx.Err() == nil && err != nil && !d.forge && !e.reported {
			e.reported = true
			say(err)
		}
		if err == nil {
			continue
		}
		if d.tries++; d.tries < emitTries && !d.forge {
			d.due = time.Now().Add(emitPause << d.tries)
			again = append(again, d)
		}
	}
	e.mu.Lock()
	e.queue, e.sending = append(again, e.queue...), 0
	e.mu.Unlock()
}

func (e *emitter) post(ctx context.Context, d delivery) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.target.String(), bytes.NewReader(d.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "waybill-sandbox")
	if err := e.sign(req, d); err != nil {
		return err
	}
	res, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	e.mu.Lock()
	defer e.mu.Unlock()
	if res.StatusCode/100 != 2 {
		e.counts.Refused++
		return fmt.Errorf("it answers %s", res.Status)
	}
	e.counts.Taken++
	return nil
}

func (e *emitter) sign(req *http.Request, d delivery) error {
	secret := e.s.config.WebhookSecret
	if secret == "" {
		return nil
	}
	if d.forge {
		secret = "not the secret: " + secret
	}
	signed, err := webhook.Sign(e.s.config.WebhookScheme, webhook.Secret{Name: "sandbox", Value: []byte(secret)},
		webhook.Request{
			Method: req.Method, Path: req.URL.EscapedPath(), RawQuery: req.URL.RawQuery, Body: d.body,
			Header: []webhook.Field{{Name: "Content-Type", Value: "application/json"}},
		}, time.Now())
	if err != nil {
		return err
	}
	for _, f := range signed.Header {
		req.Header.Set(f.Name, f.Value)
	}
	req.URL.RawQuery = signed.RawQuery
	return nil
}

// Emit sends one event of a tracking, regardless of its journey.
func (s *Server) Emit(m Emission) error {
	if s.hooks == nil {
		return errors.New("no webhook URL is set (--webhook-url)")
	}
	found, now := s.state.find(m.ReferID, m.TrackingNumber)
	if len(found) == 0 {
		return errors.New("no such tracking")
	}
	p := found[0]
	j := s.journey(p)
	e := event(j, p.item, len(j.done(now))-1)
	if m.Event != "" {
		e["event"] = m.Event
		e["eventId"] = uuid(sha256.Sum256(fmt.Appendf(nil, "%s %s %s", j.id, m.Event, now)))
	}
	if m.Forge {
		e["eventId"] = uuid(sha256.Sum256(fmt.Appendf(nil, "%s forged %s", j.id, now)))
	}
	body, err := json.Marshal([]any{e})
	if err != nil {
		return err
	}
	for range max(m.Count, 1) {
		s.hooks.enqueue(delivery{body: body, forge: m.Forge})
	}
	s.hooks.wake()
	return nil
}
