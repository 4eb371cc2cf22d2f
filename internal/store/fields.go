package store

import (
	"database/sql"
	"fmt"
	"time"

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
	types := make([]byte, len(f))
	for i, one := range f {
		switch columnValue(one.of(new(T))).(type) {
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
