package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// sightingFields are the columns of table sightings that hold what a sighting says, and
// their fields: texts, numbers, times and durations. A field more is a line here and one
// in each schema.
var sightingFields = fields[ledger.Sighting]{
	{"phase", func(s *ledger.Sighting) any { return (*string)(&s.Phase) }},
	{"status", func(s *ledger.Sighting) any { return &s.Status }},
	{"status_label", func(s *ledger.Sighting) any { return &s.StatusLabel }},
	{"status_track", func(s *ledger.Sighting) any { return &s.StatusTrack }},
	{"error", func(s *ledger.Sighting) any { return &s.Error }},
	{"latest_event", func(s *ledger.Sighting) any { return &s.LatestEvent }},
	{"latest_time", func(s *ledger.Sighting) any { return &s.LatestTime }},
	{"checkpoint", func(s *ledger.Sighting) any { return &s.Times.Checkpoint }},
	{"updated", func(s *ledger.Sighting) any { return &s.Times.Updated }},
	{"transit", func(s *ledger.Sighting) any { return &s.Transit }},
	{"carrier", func(s *ledger.Sighting) any { return &s.CarrierCode }},
	{"router_id", func(s *ledger.Sighting) any { return &s.RouterID }},
	{"seen", func(s *ledger.Sighting) any { return &s.Seen }},
	{"as_of", func(s *ledger.Sighting) any { return &s.AsOf }},
	{"source", func(s *ledger.Sighting) any { return (*string)(&s.Source) }},
	{"event", func(s *ledger.Sighting) any { return &s.Event }},
	{"shared", func(s *ledger.Sighting) any { return &s.Shared }},
}

// sightingColumns lists the columns of a sighting s.
var sightingColumns = "s." + strings.ReplaceAll(sightingFields.list(), ", ", ", s.")

// newSightingInsert adds sightings in place of what is known. It takes a sighting's id, the
// number of its status and its key, then the values of sightingFields.
func newSightingInsert() multiInsert {
	changes := []string{"status_id = excluded.status_id"}
	for _, f := range sightingFields {
		value := "excluded." + f.column
		if f.column == "router_id" {
			value = "CASE excluded.router_id WHEN '' THEN sightings.router_id ELSE excluded.router_id END"
		}
		changes = append(changes, f.column+" = "+value)
	}
	return newMultiInsert("INSERT INTO sightings (id, status_id, refer_id, number, folded, "+sightingFields.list()+")", "iittt"+sightingFields.types(),
		" ON CONFLICT (refer_id, number) DO UPDATE SET "+strings.Join(changes, ", "))
}

func appendSighting(args []any, s ledger.Sighting) []any {
	if s.AsOf.IsZero() {
		s.AsOf = s.Seen
	}
	return sightingFields.appendValues(args, &s)
}

// sighting returns the sighting whose columns begin at i, nil if there is none.
func (c *statusScanner) sighting(i int, key tracking.Key) *ledger.Sighting {
	if c.values[i] == nil {
		return nil
	}
	s := &ledger.Sighting{Key: key}
	for n, f := range sightingFields {
		switch field := f.of(s).(type) {
		case *string:
			*field = c.text(i + n)
		case *int64:
			*field = c.number(i + n)
		case *time.Time:
			*field = instant(c.number(i + n))
		case *time.Duration:
			*field = duration(c.number(i + n))
		}
	}
	if s.AsOf.Equal(s.Seen) {
		s.AsOf = time.Time{}
	}
	return s
}

// statusOwn is how many columns of a status are its own. The columns of its sighting follow.
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

// scanFound reads a line with the number of a query after it.
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
