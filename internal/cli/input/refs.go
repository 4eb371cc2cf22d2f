package input

import (
	"context"
	"errors"
	"iter"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/intake"
)

// Ref is one REF of an input. Where columns or fields tell referIds and numbers
// apart, ReferID or Number is set, or both; else Text.
type Ref struct {
	Text            string // a referId or a number, as on the command line
	ReferID, Number string
	Line            int // physical, 1-based
}

// Refs are the REFs of one input, which was judged whole: none of it is bad.
type Refs struct {
	Count int64 // rows, repeats included
	in    *Input
}

// OpenRefs reads the file of --from, - for standard input, and judges it whole, in
// constant memory. The caller closes it.
func (o *Flags) OpenRefs(ctx context.Context, c *command.Call) (*Refs, error) {
	in, err := OpenFiles(ctx, c, []string{o.From})
	if err != nil {
		return nil, err
	}
	in.Options = o.Options(c)
	in.Options.Refs, in.Options.Carriers = true, nil
	judged, err := in.Judge(ctx, nil)
	if changed := in.Unchanged(); changed != nil && ctx.Err() == nil {
		err = changed
	}
	switch {
	case err != nil:
	case judged.Invalid > 0:
		err = &BadRefsError{BadRowsError{Judged: judged}}
	case judged.Valid == 0:
		err = command.Usagef("write one REF per line, or add a first line with the names of the columns, such as referId", "%s: no REFs", o.From)
	default:
		noteMissing(c, judged.Summaries)
		return &Refs{Count: judged.Valid, in: in}, nil
	}
	in.Close()
	return nil, err
}

// noteMissing notes which column is read where --map names one that isn't there.
func noteMissing(c *command.Call, sums []SourceSummary) {
	for _, s := range sums {
		NoteSheet(c.IO, s)
		WarnHidden(c.IO, s)
		read := s.ReferID
		if read == "" {
			read = s.Number
		}
		for _, name := range s.Missing {
			c.IO.Note("%s: no column %s; REFs are read from %s", s.Name, command.Quoted(name), command.Quoted(read))
		}
	}
}

// All yields the REFs in order, repeats included, and may be called again. An input
// that changed since it was judged, so that it can't be read any more, is an error.
func (r *Refs) All(ctx context.Context) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		err := r.in.Sources[0].Read(r.in.Options, func(_ *intake.Reader, rec intake.Record) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !rec.Good():
				return command.Usagef("re-run the command", "input %s changed while it was read", command.Quoted(rec.File))
			case !yield(Ref{Text: rec.Ref, ReferID: rec.Item.ReferID, Number: rec.Item.Number, Line: rec.Line}, nil):
				return errStop
			}
			return nil
		}, func(intake.Summary) {})
		if errors.Is(err, errStop) {
			return
		}
		if changed := r.in.Unchanged(); changed != nil && ctx.Err() == nil {
			err = changed
		}
		if err != nil {
			yield(Ref{}, err)
		}
	}
}

// Close closes the input.
func (r *Refs) Close() { r.in.Close() }
