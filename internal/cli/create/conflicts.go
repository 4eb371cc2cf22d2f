package create

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// conflicts are the records of an input that contradict earlier ones, as
// staging finds them. However many there are, only the first are held: those
// that go to the rejects wait in a file.
type conflicts struct {
	c     *creation
	file  *os.File // nil while there is nothing in it
	w     *bufio.Writer
	marks *gob.Encoder // of entries, in the order of the input
	n     int64
}

// add notes a record that is left out.
func (x *conflicts) add(conflict ledger.Conflict) error {
	x.n++
	x.c.judged.Problem(x.c.conflictProblem(conflict))
	if x.c.o.Rejects == "" {
		return nil
	}
	if x.file == nil {
		f, err := disk.Temp()
		if err != nil {
			return fmt.Errorf("keep the rows for --rejects: %w", err)
		}
		x.file, x.w = f, bufio.NewWriter(f)
		x.marks = gob.NewEncoder(x.w)
	}
	return x.marks.Encode(conflict.Entry)
}

func (x *conflicts) close() {
	if x.file != nil {
		_ = x.file.Close() // nobody reads it again
	}
}

// report reports the records as the error of an input with bad rows, or with
// --skip-invalid as a warning.
func (x *conflicts) report(ctx context.Context) error {
	if x.n == 0 {
		return nil
	}
	c := x.c
	c.judged.Invalid += x.n
	c.judged.Valid -= x.n
	if x.file != nil {
		if err := x.reject(ctx); err != nil {
			return err
		}
	}
	bad := &input.BadRowsError{Judged: c.judged, Rejects: c.o.Rejects, Resume: c.again()}
	if !c.o.SkipInvalid {
		return bad
	}
	c.call.IO.WarningWith(bad.Warning())
	return nil
}

// reject writes the rejects file anew, with the records that staging found.
func (x *conflicts) reject(ctx context.Context) error {
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("keep the rows for --rejects: %w", err)
	}
	if _, err := x.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	marks := gob.NewDecoder(bufio.NewReader(x.file))
	next, err := nextMark(marks)
	if err != nil {
		return err
	}
	rejects, err := x.c.rejectsFile(ctx)
	if err != nil {
		return err
	}
	defer rejects.Discard()
	for i, src := range x.c.in.Sources {
		err := src.Read(x.c.in.Options, func(r *intake.Reader, rec intake.Record) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if next != nil && rec.Good() && *next == (ledger.Entry{File: i, Line: rec.Line, Item: rec.Item}) {
				rec.Problems = append(rec.Problems, contradicts(src.Name, rec))
				if next, err = nextMark(marks); err != nil {
					return err
				}
			}
			if rec.Good() || r == nil {
				return nil
			}
			return rejects.Rows.Write(r, rec)
		}, func(intake.Summary) {})
		if err != nil {
			return err
		}
	}
	if err := rejects.Rows.Flush(); err != nil {
		return err
	}
	return rejects.Commit()
}

// nextMark returns the next entry that goes to the rejects, nil after the last.
func nextMark(marks *gob.Decoder) (*ledger.Entry, error) {
	var e ledger.Entry
	switch err := marks.Decode(&e); {
	case errors.Is(err, io.EOF):
		return nil, nil //nolint:nilnil // there is none, and nothing is wrong
	case err != nil:
		return nil, fmt.Errorf("read the rows for --rejects again: %w", err)
	}
	return &e, nil
}

// contradicts is the problem of a record that contradicts an earlier one.
func contradicts(file string, rec intake.Record) intake.Problem {
	return intake.Problem{File: file, Line: rec.Line, Header: tracking.FieldCarrierCode, Problem: tracking.Problem{
		Field: tracking.FieldCarrierCode, Value: rec.Item.CarrierCode, Message: "the same tracking stands in the input with another carrier code",
	}}
}
