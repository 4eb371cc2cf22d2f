package store

import (
	"fmt"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Columns of a status, in this order: itself, and its sighting.
const (
	statusOwn     = 12
	sightingWidth = 17
	statusWidth   = statusOwn + sightingWidth
)

// statusScanner reads statuses. It is used for one query.
type statusScanner struct {
	values [statusWidth + 1]any
	dest   [statusWidth + 1]any
}

func newStatusScanner() *statusScanner {
	c := &statusScanner{}
	for i := range c.values {
		c.dest[i] = &c.values[i]
	}
	return c
}

// scan reads a line and its id.
func (c *statusScanner) scan(s scanner) (id int64, st ledger.TrackingStatus, err error) {
	if err := s.Scan(c.dest[:statusWidth]...); err != nil {
		return 0, st, err
	}
	return c.number(0), c.status(), nil
}

// scanFound is scan for a line with the number of a query after it.
func (c *statusScanner) scanFound(s scanner) (query int, id int64, st ledger.TrackingStatus, err error) {
	if err := s.Scan(c.dest[:]...); err != nil {
		return 0, 0, st, err
	}
	return int(c.number(statusWidth)), c.number(0), c.status(), nil
}

// number returns a column that is a whole number, 0 for NULL.
func (c *statusScanner) number(i int) int64 {
	n, _ := c.values[i].(int64)
	return n
}

// text returns a column that is text, the empty string for NULL.
func (c *statusScanner) text(i int) string {
	switch v := c.values[i].(type) {
	case string:
		return v
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

func (c *statusScanner) status() ledger.TrackingStatus {
	st := ledger.TrackingStatus{
		Item:  tracking.Item{ReferID: c.text(1), Number: c.text(2), CarrierCode: c.text(3)},
		State: ledger.State(c.text(4)), Reason: c.text(5), Run: c.number(6), Asked: instant(c.number(7)), Sent: instant(c.number(8)), Unverified: c.number(9),
		Superseded: c.number(10) < 0, Dismissed: instant(max(c.number(10), 0)), Own: ledger.Own(c.text(11)),
	}
	st.Sighting = c.sighting(statusOwn, st.Item.Key())
	return st
}

// sighting returns the sighting whose columns begin there, nil if there is none.
func (c *statusScanner) sighting(i int, key tracking.Key) *ledger.Sighting {
	if c.values[i] == nil {
		return nil
	}
	s := &ledger.Sighting{
		Key: key, Seen: instant(c.number(i)), Times: tracking.Times{Checkpoint: instant(c.number(i + 2)), Updated: instant(c.number(i + 3))},
		Event: c.number(i + 4), Shared: c.number(i + 5),
		Phase: ledger.Phase(c.text(i + 6)), Status: c.text(i + 7), StatusLabel: c.text(i + 8), StatusTrack: c.text(i + 9),
		LatestEvent: c.text(i + 10), LatestTime: c.text(i + 11), CarrierCode: c.text(i + 12), Source: ledger.Source(c.text(i + 13)), RouterID: c.text(i + 14), Transit: duration(c.number(i + 15)), Error: c.text(i + 16),
	}
	if asOf := c.number(i + 1); asOf != c.number(i) {
		s.AsOf = instant(asOf)
	}
	return s
}
