package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Item is a stored delivery to be sent again to one target.
type Item struct {
	ID       string   // of the delivery, see [Find]
	To       *url.URL // its target
	Verified bool
	Entry    *inbox.OutboxEntry // dead entry for this target; nil if none
	Attempt  int                // number of earlier attempts to send it there, as far as known; at least 1
}

// Selection says which deliveries are sent again, and where.
type Selection struct {
	IDs        []string // these deliveries, see [Find]
	Dead       bool     // else the deliveries that were given up
	Since      time.Time
	Filter     forward.Filter
	Unverified bool     // unverified deliveries too; those in IDs are sent anyway
	To         *url.URL // nil for the known targets that accept the delivery
}

// LeftOut counts selected deliveries that are not sent.
type LeftOut struct {
	Unverified  int
	NotAccepted int // deliveries that no known target accepts
	Pruned      int // deliveries whose bytes were pruned
}

type selector struct {
	sel     Selection
	in      Inbox
	out     inbox.Outbox
	targets []forward.Target   // known targets
	urls    map[int64]*url.URL // of known targets, by sink
	items   []Item
	leftOut LeftOut
}

// Select returns the items of a selection, in the order of receipt. out is nil if nothing was ever stored. Errors are
// those of [FindWhole], and of a known target that can't be parsed.
func Select(ctx context.Context, in Inbox, out inbox.Outbox, sel Selection) ([]Item, LeftOut, error) {
	s := selector{sel: sel, in: in, out: out, urls: map[int64]*url.URL{}}
	add := s.addMatching
	switch {
	case sel.Dead:
		add = s.addDead
	case len(sel.IDs) > 0:
		add = s.addNamed
	}
	if out != nil {
		if err := s.readTargets(ctx); err != nil {
			return nil, LeftOut{}, err
		}
	}
	err := add(ctx)
	return s.items, s.leftOut, err
}

func (s *selector) readTargets(ctx context.Context) error {
	sinks, err := s.out.Sinks(ctx)
	if err != nil {
		return err
	}
	for _, k := range sinks {
		if k.Name != forward.SinkName {
			continue
		}
		var t forward.Target
		if t.URL, err = forward.ParseURL(k.URL); err != nil {
			return fmt.Errorf("known target: %w", err)
		}
		if t.Filter, err = forward.ParseFilter(k.Filter); err != nil {
			return fmt.Errorf("known target %s: %w", t.Show(), err)
		}
		s.urls[k.ID] = t.URL
		s.targets = append(s.targets, t)
	}
	return nil
}

func (s *selector) addDead(ctx context.Context) error {
	if s.out == nil {
		return nil
	}
	var entries []inbox.OutboxEntry
	for l, err := range s.out.DeadEntries(ctx) {
		if err != nil {
			return err
		}
		if s.urls[l.Sink] != nil {
			entries = append(entries, l)
		}
	}
	slices.SortStableFunc(entries, func(a, b inbox.OutboxEntry) int { return cmp.Compare(a.Delivery, b.Delivery) })
	for i, l := range entries {
		d, err := s.in.Delivery(ctx, l.Delivery)
		if err != nil {
			return err
		}
		verified := d.Verified.Counts()
		if !verified && !s.sel.Unverified {
			s.leftOut.Unverified++
			continue
		}
		item := Item{ID: strconv.FormatInt(l.Delivery, 10), To: s.urls[l.Sink], Verified: verified, Entry: &entries[i]}
		item.Attempt = max(l.Attempt, l.Failures, 1)
		if to := s.sel.To; to != nil && to.String() != item.To.String() {
			item.To, item.Entry, item.Attempt = to, nil, 1
		}
		// Of several entries for one delivery and target, add the first, and the entries whose outcome can be recorded.
		n := len(s.items)
		repeated := n > 0 && s.items[n-1].ID == item.ID && s.items[n-1].To.String() == item.To.String()
		if !repeated || item.Entry != nil {
			s.items = append(s.items, item)
		}
	}
	return nil
}

func (s *selector) addNamed(ctx context.Context) error {
	var all []Delivery
	for _, id := range s.sel.IDs {
		d, err := FindWhole(ctx, s.in, id)
		if err != nil {
			return err
		}
		d.Body, d.Header = nil, nil // read again when it is sent
		if !slices.ContainsFunc(all, func(other Delivery) bool { return other.ID() == d.ID() }) {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all,
		func(a, b Delivery) int { return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.Seq, b.Seq)) })
	for _, d := range all {
		m := s.newMatch()
		if !d.Refused {
			for row, err := range s.in.Events(ctx, inbox.Query{Delivery: d.Seq}) {
				if err != nil {
					return err
				}
				m.add(s, row)
			}
		}
		s.add(d.ID(), d.Verified.Counts(), m)
	}
	return nil
}

func (s *selector) addMatching(ctx context.Context) error {
	found := map[int64]*match{}
	for row, err := range s.in.Events(ctx, inbox.Query{Since: s.sel.Since}) {
		switch {
		case err != nil:
			return err
		case found[row.Delivery] == nil:
			found[row.Delivery] = s.newMatch()
		}
		found[row.Delivery].add(s, row)
	}
	for _, seq := range slices.Sorted(maps.Keys(found)) {
		switch m := found[seq]; {
		case !m.selected:
		case m.pruned:
			s.leftOut.Pruned++
		case !m.verified && !s.sel.Unverified:
			s.leftOut.Unverified++
		default:
			s.add(strconv.FormatInt(seq, 10), m.verified, m)
		}
	}
	return nil
}

type match struct {
	selected, verified, pruned bool

	accepted []bool // by known target
}

func (s *selector) newMatch() *match { return &match{accepted: make([]bool, len(s.targets))} }

func (m *match) add(s *selector, row inbox.Event) {
	m.selected = m.selected || s.sel.Filter.Match(row)
	m.verified = m.verified || row.Verified.Counts()
	m.pruned = m.pruned || row.Raw == nil
	if row.IsRepeat() {
		return
	}
	for i, t := range s.targets {
		m.accepted[i] = m.accepted[i] || t.Filter.Match(row)
	}
}

func (s *selector) add(id string, verified bool, m *match) {
	if s.sel.To != nil {
		s.items = append(s.items, Item{ID: id, To: s.sel.To, Verified: verified, Attempt: 1})
		return
	}
	n := len(s.items)
	for i, t := range s.targets {
		added := func(other Item) bool { return other.To.String() == t.URL.String() }
		if m.accepted[i] && !slices.ContainsFunc(s.items[n:], added) { // two filters of one URL
			s.items = append(s.items, Item{ID: id, To: t.URL, Verified: verified, Attempt: 1})
		}
	}
	if len(s.items) == n {
		s.leftOut.NotAccepted++
	}
}

// Sender loads items for a [forward.Series] and records the results.
type Sender struct {
	Inbox    Inbox
	Outbox   inbox.Outbox // nil if no item has an entry
	Items    []Item
	Headers  map[string][]webhook.Field // headers for a target, by its URL
	Withhold func(webhook.Field) bool   // headers that no target gets
	Sign     func(webhook.Request) (webhook.Request, error)

	// Edit returns what is sent instead of a delivery. It is then marked as made up, has no number, and changes no entry.
	// An error concerns that delivery alone. If Edit is nil, deliveries are sent as received.
	Edit func(inbox.Delivery) (inbox.Delivery, error)
}

// Load returns the request for a step of the series.
func (s *Sender) Load(ctx context.Context, step forward.Sending) (forward.Request, error) {
	item := s.Items[step.Index]
	found, err := Find(ctx, s.Inbox, item.ID)
	if err != nil {
		return forward.Request{URL: item.To}, err
	}
	d := found.Delivery
	if found.Refused {
		d.Seq = 0 // targets do not get the number of a refused delivery
	}
	if s.Edit == nil || d.Body == nil {
		return s.Build(d, item.To, item.Attempt+1+step.Copy)
	}
	if d, err = s.Edit(d); err != nil {
		return forward.Request{URL: item.To}, fmt.Errorf("%w: %w", forward.ErrUnsendable, err)
	}
	d.Seq = 0
	return s.Build(d.MadeUp(), item.To, 0)
}

// Build returns the request that sends a delivery to a target, see [forward.BuildMessage].
func (s *Sender) Build(d inbox.Delivery, to *url.URL, attempt int) (forward.Request, error) {
	parcel := forward.Request{URL: to, Own: s.Headers[to.String()]}
	var err error
	if parcel.Message, err = forward.BuildMessage(d, to, attempt, s.Withhold); err != nil {
		return parcel, err
	}
	signed, err := s.Sign(parcel.Message)
	parcel.Message = forward.ReplaceHeaders(signed, parcel.Own)
	return parcel, err
}

// RecordAttempt records the result of an item that had been given up.
func (s *Sender) RecordAttempt(ctx context.Context, res forward.Result) error {
	l := s.Items[res.Index].Entry
	if l == nil || s.Edit != nil {
		return nil
	}
	o := inbox.AttemptOutcome{
		Disposition: inbox.Sent, Now: time.Now(), Took: res.Took, Status: res.Status, Reply: res.Reply,
		Problem: forward.Problem(res.Answer, res.Err),
	}
	if o.Problem != "" {
		o.Disposition = inbox.GivenUp
	}
	return s.Outbox.RecordAttempt(context.WithoutCancel(ctx), l.ID, o)
}
