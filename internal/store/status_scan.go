package store

import (
	"fmt"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// statusOwn is how many columns of a status are its own. Those of its sighting follow.
const statusOwn = 12

var statusWidth = statusOwn + len(sightingFields)

// statusScanner reads statuses. It is used for one query.
type statusScanner struct{ values, dest []any }

func newStatusScanner() *statusScanner {
	c := &statusScanner{make([]any, statusWidth+1), make([]any, statusWidth+1)}
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
	if err := s.Scan(c.dest...); err != nil {
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
