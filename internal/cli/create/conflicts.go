package create

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// conflicts are the records of an input that contradict earlier ones, as
// staging finds them. Only the first are held; those that go to the rejects wait
// in a file.
type conflicts struct {
	in    *checkedInput
	file  *os.File // nil while there is nothing in it
	w     *bufio.Writer
	marks *json.Encoder // of entries, in the order of the input
	n     int64
}

// add notes a record that is left out.
func (x *conflicts) add(conflict ledger.Conflict) error {
	x.n++
	x.in.judged.AddProblem(input.ConflictProblem(x.in.Names(), conflict))
	if x.in.rejects == "" {
		return nil
	}
	if x.file == nil {
		f, err := disk.Temp()
		if err != nil {
			return fmt.Errorf("keep the rows for --rejects: %w", err)
		}
		x.file, x.w = f, bufio.NewWriter(f)
		x.marks = json.NewEncoder(x.w)
	}
	return x.marks.Encode(conflict.Entry) //nolint:musttag // nextMark alone reads it
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
	x.in.judged.Invalid += x.n
	x.in.judged.Valid -= x.n
	if x.file != nil {
		if err := x.rewriteRejects(ctx); err != nil {
			return err
		}
	}
	return x.in.refuseOrWarn()
}

// rewriteRejects writes the rejects file again, with the records that staging
// found.
func (x *conflicts) rewriteRejects(ctx context.Context) error {
	if err := x.w.Flush(); err != nil {
		return fmt.Errorf("keep the rows for --rejects: %w", err)
	}
	if _, err := x.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	marks := json.NewDecoder(bufio.NewReader(x.file))
	next, err := nextMark(marks)
	if err != nil {
		return err
	}
	rejects, err := x.in.newRejects(ctx)
	if err != nil {
		return err
	}
	defer rejects.Discard()
	for i, src := range x.in.Sources {
		err := src.Read(x.in.Options, func(r *intake.Reader, rec intake.Record) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if next != nil && rec.Good() && *next == (ledger.Entry{File: i, Line: rec.Line, Item: rec.Item}) {
				rec.Problems = append(rec.Problems, input.Contradiction(src.Name, rec.Line, rec.Item, "the same tracking appears in the input with another carrier code"))
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
func nextMark(marks *json.Decoder) (*ledger.Entry, error) {
	var e ledger.Entry
	switch err := marks.Decode(&e); { //nolint:musttag // add alone wrote it
	case errors.Is(err, io.EOF):
		return nil, nil //nolint:nilnil // there is none, and nothing is wrong
	case err != nil:
		return nil, fmt.Errorf("read the rows for --rejects again: %w", err)
	}
	return &e, nil
}
