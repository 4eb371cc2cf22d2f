package store

import (
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// sightingFields are the columns of table sightings that hold what a sighting says, and
// their fields. A field more is a line here and one in each schema.
var sightingFields = fields[ledger.Sighting]{
	{"phase", func(s *ledger.Sighting) any { return (*string)(&s.Phase) }},
	{"status", func(s *ledger.Sighting) any { return &s.Status }},
	{"status_label", func(s *ledger.Sighting) any { return &s.StatusLabel }},
	{"status_track", func(s *ledger.Sighting) any { return &s.StatusTrack }},
	{"error", func(s *ledger.Sighting) any { return &s.Error }},
	{"latest_event", func(s *ledger.Sighting) any { return &s.LatestEvent }},
	{"latest_time", func(s *ledger.Sighting) any { return &s.LatestTime }},
	{"checkpoint", func(s *ledger.Sighting) any { return (*storedTime)(&s.Times.Checkpoint) }},
	{"updated", func(s *ledger.Sighting) any { return (*storedTime)(&s.Times.Updated) }},
	{"transit", func(s *ledger.Sighting) any { return (*storedSpan)(&s.Transit) }},
	{"carrier", func(s *ledger.Sighting) any { return &s.CarrierCode }},
	{"router_id", func(s *ledger.Sighting) any { return &s.RouterID }},
	{"seen", func(s *ledger.Sighting) any { return (*storedTime)(&s.Seen) }},
	{"as_of", func(s *ledger.Sighting) any { return (*storedTime)(&s.AsOf) }},
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
	return newMultiInsert("INSERT INTO sightings (id, status_id, refer_id, number, folded, "+sightingFields.list()+")",
		"iittt"+sightingFields.types(), " ON CONFLICT (refer_id, number) DO UPDATE SET "+strings.Join(changes, ", "))
}

// statusScanner reads the statuses that one query finds, each into the same fields: there may be a million.
type statusScanner struct {
	id      int64 // of the row, or of the sighting without one
	settled int64 // when a rejected row was dismissed; -1: it is superseded; 0: neither
	seenID  int64 // 0: there is no sighting
	status  ledger.TrackingStatus
	seen    ledger.Sighting
	dest    []any
}

func newStatusScanner() *statusScanner {
	c := &statusScanner{}
	st := &c.status
	c.dest = []any{
		&c.id, &st.Item.ReferID, &st.Item.Number, &st.Item.CarrierCode, (*string)(&st.State), &st.Reason, &st.Run,
		(*storedTime)(&st.Asked), (*storedTime)(&st.Sent), &st.Unverified, &c.settled, (*string)(&st.Own), &c.seenID,
	}
	c.dest = slices.Grow(append(c.dest, sightingFields.dest(&c.seen)...), 1)
	for i, field := range c.dest {
		c.dest[i] = orZero{field}
	}
	return c
}

// scan reads a line, and what follows in it into more.
func (c *statusScanner) scan(s scanner, more ...any) (id int64, st ledger.TrackingStatus, err error) {
	*c = statusScanner{dest: c.dest}
	if err := s.Scan(append(c.dest, more...)...); err != nil {
		return 0, st, err
	}
	st = c.status
	st.Superseded, st.Dismissed = c.settled < 0, instant(max(c.settled, 0))
	if c.seenID != 0 {
		seen := c.seen
		seen.Key = st.Item.Key()
		if seen.AsOf.Equal(seen.Seen) {
			seen.AsOf = time.Time{}
		}
		st.Sighting = &seen
	}
	return c.id, st, nil
}
