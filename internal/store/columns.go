package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// fields are the columns of a table that hold a T, each with its field. Statement texts, values and scan destinations
// are derived from them.
type fields[T any] []struct {
	column string
	of     func(*T) any // a pointer that [columnValue] knows
}

func (f fields[T]) list() string {
	return joined(len(f), func(i int) string { return f[i].column })
}

// types returns the types of the columns in the form that [multiInsert] takes.
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

// appendValues appends the column values of one.
func (f fields[T]) appendValues(args []any, one *T) []any {
	for _, in := range f {
		args = append(args, columnValue(in.of(one)))
	}
	return args
}

// dest returns scan destinations for a row of the columns, followed by more.
func (f fields[T]) dest(one *T, more ...any) []any {
	dest := make([]any, 0, len(f)+len(more))
	for _, in := range f {
		dest = append(dest, in.of(one))
	}
	return append(dest, more...)
}

// columnValue returns the value that a column stores for a field.
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

// binaryText is text with arbitrary bytes, which text columns don't accept.
type binaryText string

// storedBytes are bytes in a column. NULL is nil; empty bytes are not, though a driver may return them as nil.
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

// storedCloseReason is why a rejected row needs no further action, see [closeReason].
type storedCloseReason ledger.CloseReason

// Scan reads the column.
func (s *storedCloseReason) Scan(value any) error {
	n, _ := value.(int64)
	*s = storedCloseReason{Superseded: n < 0, Dismissed: instant(max(n, 0))}
	return nil
}

// storedJSON is a value in a column that holds JSON as text, or a pointer to read such a column.
type storedJSON struct{ field any }

// Scan reads the column.
func (j storedJSON) Scan(value any) error {
	text, _ := value.(string)
	return json.Unmarshal([]byte(text), j.field)
}

// Value returns what the column stores.
func (j storedJSON) Value() (driver.Value, error) {
	text, err := json.Marshal(j.field)
	return string(text), err
}

// orZero is a scan destination for a column that may be NULL: then the field keeps its zero value.
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

// sightingFields are the columns of table sightings that hold what a sighting says. A new field is a line here and one
// in each schema.
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

// insertSightings adds or replaces sightings. Its values are a sighting's id, the id of its status and its key, then
// the values of sightingFields.
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

// statusScanner reads the statuses that one query finds, each into the same fields, since there may be a million.
type statusScanner struct {
	id     int64 // of the row, else of the sighting
	seenID int64 // 0 if there is no sighting
	status ledger.TrackingStatus
	seen   ledger.Sighting
	dest   []any
}

func newStatusScanner() *statusScanner {
	c := &statusScanner{}
	st := &c.status
	c.dest = []any{
		&c.id, &st.Item.ReferID, &st.Item.Number, &st.Item.CarrierCode, (*string)(&st.State), &st.Reason, &st.Run,
		(*storedTime)(&st.Asked), (*storedTime)(&st.Sent), &st.Unverified, (*storedCloseReason)(&st.CloseReason),
		(*string)(&st.Own), &c.seenID,
	}
	c.dest = slices.Grow(append(c.dest, sightingFields.dest(&c.seen)...), 1)
	for i, field := range c.dest {
		c.dest[i] = orZero{field}
	}
	return c
}

// scan reads one row; additional columns go into more.
func (c *statusScanner) scan(s scanner, more ...any) (id int64, st ledger.TrackingStatus, err error) {
	*c = statusScanner{dest: c.dest}
	if err := s.Scan(append(c.dest, more...)...); err != nil {
		return 0, st, err
	}
	st = c.status
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

// checkText takes names and texts in turn. Its error matches [ledger.ErrText] if a text can't be stored.
func checkText(namesAndTexts ...string) error {
	for i := 1; i < len(namesAndTexts); i += 2 {
		if s := namesAndTexts[i]; !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%s %q: %w", namesAndTexts[i-1], s, ledger.ErrText)
		}
	}
	return nil
}

// matchable returns a text that every database can compare: if s can't be stored, one that equals nothing.
func matchable(s string) string {
	if checkText("", s) == nil {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, lastText), "\x00", lastText)
}

// matchables returns the arguments of a query with texts that every database can compare.
func matchables(args []any) []any {
	all := slices.Clone(args)
	for i, arg := range all {
		if s, ok := arg.(string); ok {
			all[i] = matchable(s)
		}
	}
	return all
}

// clean returns s with U+FFFD for what can't be stored. It is for descriptive texts: refusing them would lose the
// outcome they came with.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// The longest texts in an index, in bytes: index entries of a server are limited to 2,704.
const (
	maxKey   = 1024 // longer than any identifier of a row, see [tracking.Item.Validate]
	maxLabel = 512
)

// foldKey returns the folded number of an event. A long one is replaced by its hash, which no other number folds to.
func foldKey(number string) string {
	folded := tracking.FoldNumber(number)
	if len(folded) > maxKey {
		return fmt.Sprintf("-%x", sha256.Sum256([]byte(folded)))
	}
	return folded
}

// minPacked is the minimum length of a text to compress: for shorter ones, a flate block costs more time than all the
// rest of storing them.
const minPacked = 2560 // bytes

// gzipMagic is the prefix of compressed data.
const gzipMagic = "\x1f\x8b"

// packer compresses what the service sent. It is safe for concurrent use.
type packer struct{ writers sync.Pool }

// pack compresses raw, unless it is short. It returns nil for nil.
func (p *packer) pack(raw []byte) ([]byte, error) {
	if raw == nil || 0 < len(raw) && len(raw) < minPacked && !bytes.HasPrefix(raw, []byte(gzipMagic)) {
		return raw, nil
	}
	w, ok := p.writers.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // this level is valid
	}
	defer p.writers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

func unpack(packed []byte) ([]byte, error) {
	if !bytes.HasPrefix(packed, []byte(gzipMagic)) {
		return packed, nil
	}
	var raw []byte
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		raw, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, fmt.Errorf("read a kept answer: %w", err)
	}
	return raw, nil
}
