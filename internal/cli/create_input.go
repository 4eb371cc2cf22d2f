package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// shownProblems is how many problems of an input are shown in full.
const shownProblems = 20

// stdinName is how standard input is named on the command line.
const stdinName = "-"

// input is what a create reads, twice: first it is judged whole, so that
// everything that can be wrong without the ledger is known before the ledger
// is opened; then it is staged.
type input struct {
	sources []source
	options intake.Options
	skip    bool // leave bad rows out instead of refusing the input
}

// source is one file, or one row from the command line.
type source struct {
	name string
	file *os.File
	temp bool // a copy of what can be read only once
	row  *tracking.Item
	// opened is what the file was when it was opened; nil for what nobody else
	// can change.
	opened fs.FileInfo
}

// cause is an error of the file system without the name that it repeats.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func (s source) close() {
	if s.file != nil {
		_ = s.file.Close() // only read from
	}
}

func (in *input) close() {
	for _, s := range in.sources {
		s.close()
	}
}

// unchanged returns an error if a file is not what it was when it was opened:
// another one, of another size, or written to since.
func (in *input) unchanged() error {
	for _, s := range in.sources {
		if s.opened == nil {
			continue
		}
		now, err := os.Stat(s.name)
		if err != nil || !os.SameFile(now, s.opened) || now.Size() != s.opened.Size() || !now.ModTime().Equal(s.opened.ModTime()) {
			return usagef("wait until nothing writes to it, or copy it; then run the command again", "input %s changed while it was read, nothing was sent", quoted(s.name))
		}
	}
	return nil
}

// repeatable reports whether all of it can be read by another command.
func (in *input) repeatable() bool {
	for _, s := range in.sources {
		if s.name == stdinName || s.row != nil || s.temp {
			return false
		}
	}
	return true
}

func (in *input) names() []string {
	names := make([]string, len(in.sources))
	for i, s := range in.sources {
		names[i] = s.name
	}
	return names
}

// judgement is what an input is worth before the ledger has seen it.
type judgement struct {
	Read, Valid, Invalid int64
	Problems             []intake.Problem // of invalid rows, the first shownProblems
	MoreProblems         int64
	Notes                []intake.Problem // on good rows, the first few
	MoreNotes            int64
	Summaries            []sourceSummary
}

type sourceSummary struct {
	Name string
	intake.Summary
}

// shownNotes is how many notes on good rows are shown in full.
const shownNotes = 5

func (j *judgement) problem(p intake.Problem) {
	if len(j.Problems) < shownProblems {
		j.Problems = append(j.Problems, p)
		return
	}
	j.MoreProblems++
}

func (j *judgement) note(p intake.Problem) {
	if len(j.Notes) < shownNotes {
		j.Notes = append(j.Notes, p)
		return
	}
	j.MoreNotes++
}

// judge reads the whole input. Bad rows go to rejects, which may be nil.
func (in *input) judge(ctx context.Context, rejects *intake.Rejects) (judgement, error) {
	var j judgement
	for _, src := range in.sources {
		err := src.read(in.options, func(r *intake.Reader, rec intake.Record) error {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			return j.record(r, rec, rejects)
		}, func(s intake.Summary) { j.Summaries = append(j.Summaries, sourceSummary{src.name, s}) })
		if err != nil {
			return j, err
		}
	}
	if rejects != nil {
		return j, rejects.Flush()
	}
	return j, nil
}

func (j *judgement) record(r *intake.Reader, rec intake.Record, rejects *intake.Rejects) error {
	j.Read++
	good := rec.Good()
	for _, p := range rec.Problems {
		if p.Note {
			j.note(p)
		} else {
			j.problem(p)
		}
	}
	if good {
		j.Valid++
		return nil
	}
	j.Invalid++
	if rejects == nil || r == nil {
		return nil
	}
	return rejects.Write(r, rec)
}

// read calls each for every record of the source from its beginning. An input
// without rows is no error here: there may be others.
func (s source) read(o intake.Options, each func(*intake.Reader, intake.Record) error, done func(intake.Summary)) error {
	if s.row != nil {
		return each(nil, s.single(o.AcceptOdd))
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read %s: %w", s.name, err)
	}
	r, err := intake.Open(s.name, s.file, o)
	if err != nil {
		return err
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, intake.ErrNoRows) {
			done(r.Summary())
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(r, rec); err != nil {
			return err
		}
	}
}

// single is the record of a row given by flags.
func (s source) single(acceptOdd bool) intake.Record {
	rec := intake.Record{File: s.name, Line: 1, Item: *s.row}
	for _, p := range s.row.Validate(acceptOdd) {
		rec.Problems = append(rec.Problems, intake.Problem{File: s.name, Line: 1, Header: flagOf(p.Field), Problem: p})
	}
	return rec
}

func flagOf(field string) string {
	switch field {
	case tracking.FieldReferID:
		return "--refer-id"
	case tracking.FieldNumber:
		return "--tracking-number"
	default:
		return "--carrier-code"
	}
}

// errStop ends a pass whose consumer went away.
var errStop = errors.New("stop")

// entries yields the good records for staging. An input that changed since it
// was judged, so that it can't be read or a row is bad now, is an error.
func (in *input) entries(ctx context.Context) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for i := range in.sources {
			err := in.entriesOf(ctx, i, yield)
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				if changed := in.unchanged(); changed != nil && ctx.Err() == nil {
					err = changed
				}
				yield(ledger.Entry{}, err)
				return
			}
		}
	}
}

// entriesOf yields those of one source. It returns errStop if the consumer went
// away.
func (in *input) entriesOf(ctx context.Context, i int, yield func(ledger.Entry, error) bool) error {
	return in.sources[i].read(in.options, func(_ *intake.Reader, rec intake.Record) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !rec.Good() && !in.skip:
			return usagef("run the command again", "input %s changed while it was read, nothing was sent", quoted(rec.File))
		case rec.Good() && !yield(ledger.Entry{File: i, Line: rec.Line, Item: rec.Item}, nil):
			return errStop
		}
		return nil
	}, func(intake.Summary) {})
}
