package replay

import (
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Sender reads items for a [forward.Series] and records what came of them.
type Sender struct {
	Inbox    Inbox
	Outbox   Outbox // nil if no item has an entry
	Items    []Item
	Headers  map[string][]webhook.Field // that a target gets, by its URL
	Withhold func(webhook.Field) bool   // headers that no target gets
	Sign     func(webhook.Request) (webhook.Request, error)
}

// Load returns what a step of the series sends.
func (s *Sender) Load(ctx context.Context, step forward.Sending) (forward.Request, error) {
	item := s.Items[step.Index]
	parcel := forward.Request{URL: item.To, Own: s.Headers[item.To.String()]}
	found, err := Find(ctx, s.Inbox, item.ID)
	if err != nil {
		return parcel, err
	}
	d := found.Delivery
	if found.Refused {
		d.Seq = 0 // a number of its own kind, which no target is given
	}
	if parcel.Message, err = forward.BuildMessage(d, item.To, item.Attempt+1+step.Copy, s.Withhold); err != nil {
		return parcel, err
	}
	signed, err := s.Sign(parcel.Message)
	parcel.Message = forward.ReplaceHeaders(signed, parcel.Own)
	return parcel, err
}

// Settle records what came of an item that had been given up.
func (s *Sender) Settle(ctx context.Context, res forward.Result) error {
	l := s.Items[res.Index].Entry
	if l == nil {
		return nil
	}
	o := inbox.Settlement{Disposition: inbox.Sent, Now: time.Now(), Status: res.Status, Reply: res.Reply, Problem: forward.Problem(res.Answer, res.Err)}
	if o.Problem != "" {
		o.Disposition = inbox.GivenUp
	}
	return s.Outbox.SettleEntry(context.WithoutCancel(ctx), l.ID, o)
}
