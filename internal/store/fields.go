package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// fields are the columns of a table that hold a T, each with the field that it holds. The
// texts of statements, their values and what reads rows follow from them.
type fields[T any] []struct {
	column string
	of     func(*T) any // a pointer that [columnValue] knows
}

func (f fields[T]) list() string {
	return joined(len(f), func(i int) string { return f[i].column })
}

// types returns the types of the columns, as [multiInsert] takes them.
func (f fields[T]) types() string {
	types, none := make([]byte, len(f)), new(T)
	for i, in := range f {
		switch columnValue(in.of(none)).(type) {
		case string:
			types[i] = 't'
		case int, int64:
			types[i] = 'i'
		default:
			types[i] = 'b'
		}
	}
	return string(types)
}

// appendValues appends what the columns are to hold of one.
func (f fields[T]) appendValues(args []any, one *T) []any {
	for _, in := range f {
		args = append(args, columnValue(in.of(one)))
	}
	return args
}

// dest returns where a row of the columns goes, and more columns after them.
func (f fields[T]) dest(one *T, more ...any) []any {
	dest := make([]any, 0, len(f)+len(more))
	for _, in := range f {
		dest = append(dest, in.of(one))
	}
	return append(dest, more...)
}

// columnValue returns what a column holds of a field.
func columnValue(pointer any) any {
	switch field := pointer.(type) {
	case *string:
		return clean(*field)
	case *binaryText:
		return []byte(*field)
	case *storedBytes:
		if *field != nil {
			return []byte(*field)
		}
	case *storedHeader:
		return packHeader(*field)
	case *storedTime:
		return millis(time.Time(*field))
	case *storedSpan:
		return time.Duration(*field).Milliseconds()
	case *bool:
		return flag(*field)
	case *int:
		return *field
	case *int64:
		return *field
	}
	return nil
}

// binaryText is text that may hold any bytes, which no column of text takes.
type binaryText string

// storedBytes are bytes in a column. NULL is nil; empty bytes are not, though a driver may return them as a nil []byte.
type storedBytes []byte

// Scan reads the column.
func (b *storedBytes) Scan(value any) error {
	*b = nil
	if kept, ok := value.([]byte); ok {
		*b = append(storedBytes{}, kept...)
	}
	return nil
}

// storedHeader is a header in a column, see [packHeader].
type storedHeader []webhook.Field

// Scan reads the column.
func (h *storedHeader) Scan(value any) (err error) {
	packed, _ := value.([]byte)
	*h, err = unpackHeader(packed)
	return err
}

// storedTime is a time in a column, see [millis].
type storedTime time.Time

// Scan reads the column.
func (t *storedTime) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is kept as %T", value)
	}
	*t = storedTime(instant(ms))
	return nil
}

// storedSpan is a span of time in a column, in milliseconds.
type storedSpan time.Duration

// Scan reads the column.
func (d *storedSpan) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a span of time is kept as %T", value)
	}
	*d = storedSpan(ms) * storedSpan(time.Millisecond)
	return nil
}

// storedJSON is where a column goes that holds JSON as text.
type storedJSON struct{ field any }

// Scan reads the column.
func (j storedJSON) Scan(value any) error {
	text, _ := value.(string)
	return json.Unmarshal([]byte(text), j.field)
}

// orZero is where a column goes that may be NULL: then the field, which is zero, stays so.
type orZero struct{ field any }

// Scan reads the column.
func (o orZero) Scan(value any) error {
	if value == nil {
		return nil
	}
	var ok bool
	switch field := o.field.(type) {
	case sql.Scanner:
		return field.Scan(value)
	case *string:
		*field, ok = value.(string)
	case *int64:
		*field, ok = value.(int64)
	}
	if !ok {
		return fmt.Errorf("a %T is kept as %T", o.field, value)
	}
	return nil
}

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

// insertSightings adds sightings in place of what is known. It takes a sighting's id, the
// number of its status and its key, then the values of sightingFields.
var insertSightings = func() multiInsert {
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
}()

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
