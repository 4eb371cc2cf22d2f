package store

import (
	"context"
	"iter"

	"github.com/waybill-cli/waybill/internal/inbox"
)

func (d *DB) Put(ctx context.Context, dl inbox.Delivery, rows []inbox.Event) (inbox.Receipt, error) {
	return inbox.Receipt{}, nil
}
func (d *DB) PutRefused(ctx context.Context, dl inbox.Delivery) error                   { return nil }
func (d *DB) Refused(ctx context.Context, after int64) iter.Seq2[inbox.Delivery, error] { return nil }
func (d *DB) Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error]   { return nil }
func (d *DB) Event(ctx context.Context, seq int64) (inbox.Event, error)                 { return inbox.Event{}, nil }
func (d *DB) Delivery(ctx context.Context, seq int64) (inbox.Delivery, error) {
	return inbox.Delivery{}, nil
}
func (d *DB) Counts(ctx context.Context) (inbox.Counts, error) { return inbox.Counts{}, nil }
