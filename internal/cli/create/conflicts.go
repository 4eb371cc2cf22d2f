package create

import (
	"context"

	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// conflicts are the records of an input that contradict earlier ones, as
// staging finds them.
type conflicts struct {
	in    *checkedInput
	n     int64
	marks []ledger.Entry // rows for the rejects file, in the order of the input
}

// add notes a record that is left out.
func (x *conflicts) add(conflict ledger.Conflict) error {
	x.n++
	x.in.judged.AddProblem(input.ConflictProblem(x.in.Names(), conflict))
	if x.in.rejects != "" {
		x.marks = append(x.marks, conflict.Entry)
	}
	return nil
}

// report reports the records as the error of an input with bad rows, or with
// --skip-invalid as a warning.
func (x *conflicts) report(ctx context.Context) error {
	if x.n == 0 {
		return nil
	}
	x.in.judged.Invalid += x.n
	x.in.judged.Valid -= x.n
	if len(x.marks) > 0 {
		if err := x.rewriteRejects(ctx); err != nil {
			return err
		}
	}
	return x.in.refuseOrWarn()
}

// rewriteRejects writes the rejects file again, with the records that staging
// found.
func (x *conflicts) rewriteRejects(ctx context.Context) error {
	file, rejects, err := x.in.newRejects(ctx)
	if err != nil {
		return err
	}
	defer file.Discard()
	for i, src := range x.in.Sources {
		err := src.Read(x.in.Options, func(r *intake.Reader, rec intake.Record) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if len(x.marks) > 0 && rec.Good() && x.marks[0] == (ledger.Entry{File: i, Line: rec.Line, Item: rec.Item}) {
				x.marks = x.marks[1:]
				rec.Problems = append(rec.Problems, input.Contradiction(src.Name, rec.Line, rec.Item, "the same tracking appears in the input with another carrier code"))
			}
			if rec.Good() || r == nil {
				return nil
			}
			return rejects.Write(r, rec)
		}, func(intake.Summary) {})
		if err != nil {
			return err
		}
	}
	if err := rejects.Flush(); err != nil {
		return err
	}
	return file.Commit()
}
