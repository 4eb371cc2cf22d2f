// Package input reads the rows to create: it opens files, or copies of streams, checks
// every row, and yields the good rows.
package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/findings"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Input is the input of a create. It is read twice: it is checked as a whole before the ledger is opened, then staged.
type Input struct {
	Sources []Source
	Options intake.Options
	Skip    bool // skip bad rows instead of refusing the input
	Sending bool // rows are sent while the input is read

	saved         map[string]map[string]string // saved mappings that an error suggests
	contradictory map[findings.Row]findings.Finding
}

// Source is one file, or one row from the command line.
type Source struct {
	Name string
	File *os.File
	temp bool           // File is a copy of a stream
	Row  *tracking.Item // from the command line; nil for a file
	// opened describes the file when it was opened; nil for a copy, which nobody else can change.
	opened fs.FileInfo
}

// WithoutPath returns the cause of a file system error, without its path.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Opener opens inputs for reading twice: files, and copies of streams.
type Opener struct {
	stdin    io.Reader
	terminal bool  // stdin is a terminal
	MaxBytes int64 // of a copy
}

// maxCopy is the maximum size of a copy of a stream, in bytes.
const maxCopy = 4 << 30

// NewOpener returns an opener that uses the standard input of a session.
func NewOpener(s *app.Session) Opener {
	return Opener{stdin: s.IO.In, terminal: s.IO.InTerminal(), MaxBytes: maxCopy}
}

// OpenFiles opens files of rows; - is the standard input of the call.
func OpenFiles(ctx context.Context, c *command.Call, files []string) (*Input, error) {
	stdin := 0
	for _, f := range files {
		if f == command.StdinName {
			stdin++
		}
	}
	switch {
	case stdin > 1:
		return nil, command.Usagef("pass `-` once", "standard input can be read only once")
	case stdin == 1 && c.Config.APIKeyFromStdin():
		return nil, command.Usagef("set WAYBILL_API_KEY, or put the key into a file",
			"standard input can't be both the API key and the input")
	}
	in, err := NewOpener(c.Session).Open(ctx, files)
	if err == nil {
		in.saved = c.Config.Maps
	}
	return in, err
}

// Open opens every file; - is standard input. It stops when ctx ends.
func (o Opener) Open(ctx context.Context, files []string) (*Input, error) {
	in := &Input{}
	for _, name := range files {
		src, err := o.open(ctx, name)
		if err != nil {
			in.Close()
			return nil, err
		}
		in.Sources = append(in.Sources, src)
	}
	return in, nil
}

func (o Opener) open(ctx context.Context, name string) (Source, error) {
	if name == command.StdinName {
		if f, ok := o.stdin.(*os.File); ok && !o.terminal {
			if info, err := f.Stat(); err == nil && isDevice(info) && !isNull(info) {
				return Source{}, deviceError("standard input")
			}
		}
		return o.Spool(ctx, name, o.stdin)
	}
	f, err := term.Await(ctx, func() (*os.File, error) { return os.Open(name) })
	if ctx.Err() != nil {
		_ = f.Close() // only read from; nil if it was not opened
		return Source{}, context.Cause(ctx)
	}
	switch lock := filepath.Base(name); {
	case strings.HasPrefix(lock, "~$"):
		_ = f.Close() // nil if it was not opened
		hint := "use " + filepath.Join(filepath.Dir(name), lock[2:])
		return Source{}, command.Inputf(hint, "input %s is Excel's lock file", command.Quoted(name))
	case errors.Is(err, fs.ErrPermission):
		return Source{}, command.Inputf("change its permissions, or pass a copy", "you may not read %s", command.Quoted(name))
	case err != nil:
		const hint = "check the file name; `-` is standard input"
		return Source{}, command.Inputf(hint, "input %s: %w", command.Quoted(name), WithoutPath(err))
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = command.Inputf("check the file and its disk", "input %s: %w", command.Quoted(name), WithoutPath(err))
	case info.IsDir():
		err = command.Inputf("pass the files in it", "input %s is a folder", command.Quoted(name))
	case isDevice(info):
		err = deviceError("input " + command.Quoted(name))
	case !info.Mode().IsRegular():
		src, err := o.Spool(ctx, name, f)
		return src, errors.Join(err, f.Close())
	default:
		return Source{Name: name, File: f, opened: info}, nil
	}
	return Source{}, errors.Join(err, f.Close())
}

func isDevice(info fs.FileInfo) bool { return info.Mode()&fs.ModeDevice != 0 }

func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

func deviceError(what string) error {
	return command.Inputf("copy the data to a file, or pipe it to `-`", "%s is a device", what)
}

const passFile = "save the input to a file and pass that"

// Spool copies the stream r into an unnamed file.
func (o Opener) Spool(ctx context.Context, name string, r io.Reader) (Source, error) {
	f, err := disk.Temp()
	if err != nil {
		return Source{}, &command.ExitError{
			Code: command.Store, Err: fmt.Errorf("%s is copied: %w", sourceName(name), err),
			Hint: "set " + disk.TempVariable + " to a folder with room that you can write to, or " + passFile,
		}
	}
	free, known := disk.Free(os.TempDir())
	limit := spoolLimit(o.MaxBytes, free, known)
	n, err := term.Await(ctx, func() (int64, error) { return io.Copy(f, io.LimitReader(inputReader{name, r}, limit+1)) })
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case command.As[*intake.ReadError](err):
	case err != nil:
		err = fmt.Errorf("%s is copied to a temporary file in %s: %w", sourceName(name), os.TempDir(), WithoutPath(err))
	case n <= limit:
		return Source{Name: name, File: f, temp: true}, nil
	case limit < o.MaxBytes:
		err = &command.ExitError{
			Code: command.Store, Err: fmt.Errorf("input %s needs more than 90%% of the free space in %s", name, os.TempDir()),
			Hint: "free space there, or " + passFile,
		}
	default:
		err = command.Inputf(passFile, "input %s is larger than %s", name, config.Size(o.MaxBytes))
	}
	return Source{}, errors.Join(err, f.Close())
}

func sourceName(name string) string {
	if name == command.StdinName {
		return "standard input"
	}
	return name
}

// inputReader marks errors of reading an input, to tell them from errors of writing the copy.
type inputReader struct {
	name string
	r    io.Reader
}

func (r inputReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		err = &intake.ReadError{File: r.name, Err: err}
	}
	return n, err
}

// spoolLimit returns the maximum number of bytes to copy: a tenth of the free space stays free.
func spoolLimit(limit, free int64, known bool) int64 {
	if !known {
		return limit
	}
	return min(limit, free-free/10)
}

// Close closes all files.
func (in *Input) Close() {
	for _, s := range in.Sources {
		_ = s.File.Close() // only read from; nil for a row from the command line
	}
}

// Unchanged returns an error if a file was replaced or changed since it was opened.
func (in *Input) Unchanged() error {
	for _, s := range in.Sources {
		if s.opened == nil {
			continue
		}
		now, err := os.Stat(s.Name)
		if err != nil || !os.SameFile(now, s.opened) || now.Size() != s.opened.Size() ||
			!now.ModTime().Equal(s.opened.ModTime()) {
			return in.changed(s.Name, "wait until no program writes to it, or copy it; then re-run the command")
		}
	}
	return nil
}

func (in *Input) changed(name, hint string) error {
	nothingSent := "; nothing was sent"
	if in.Options.Refs || in.Sending {
		nothingSent = ""
	}
	return command.Inputf(hint, "input %s changed while it was read%s", command.Quoted(name), nothingSent)
}

// Repeatable reports whether another command can read the same input.
func (in *Input) Repeatable() bool {
	return !slices.ContainsFunc(in.Sources, func(s Source) bool {
		return s.Name == command.StdinName || s.Row != nil || s.temp
	})
}

// Names returns the names of the sources, in order.
func (in *Input) Names() []string {
	return command.Texts(len(in.Sources), func(i int) string { return in.Sources[i].Name })
}

// Checked is the result of checking an input, without the ledger.
type Checked struct {
	Read, Valid, Invalid int64
	Issues               command.Issues // of invalid rows
	Summaries            []SourceSummary
	Found                *findings.Report // nil if rows were not examined
}

// SourceSummary is the summary of a source.
type SourceSummary struct {
	Name string
	intake.Summary
}

// Check reads and checks the whole input. If found is not nil, it examines all rows, and rows that contradict each
// other are bad. A file that changes meanwhile is an error.
func (in *Input) Check(ctx context.Context, found *findings.Collector) (Checked, error) {
	j, err := in.checkRows(ctx, found)
	if changed := in.Unchanged(); changed != nil && ctx.Err() == nil {
		err = changed
	}
	if err != nil || found == nil {
		return j, err
	}
	for _, s := range j.Summaries {
		if err := found.Summary(s.Name, s.Summary); err != nil {
			return j, err
		}
	}
	if j.Found, err = found.Finish(); err != nil {
		return j, err
	}
	in.contradictory = j.Found.Contradictory
	for _, row := range slices.SortedFunc(maps.Keys(in.contradictory), func(a, b findings.Row) int {
		return cmp.Or(slices.Index(in.Names(), a.File)-slices.Index(in.Names(), b.File), cmp.Compare(a.Line, b.Line))
	}) {
		j.Issues.Add(Issue(in.contradictory[row].Problem))
	}
	for _, g := range j.Found.Groups {
		if g.Kind == findings.Contradiction { // more than there are keys: records of one line may be equal
			j.Invalid += g.Count
			j.Valid -= g.Count
		}
	}
	return j, nil
}

func (in *Input) checkRows(ctx context.Context, found *findings.Collector) (j Checked, err error) {
	for _, src := range in.Sources {
		var from reading
		for rec, err := range src.records(ctx, in.Options, &from) {
			if err == nil && found != nil {
				err = found.Add(from.Reader, rec)
			}
			if err != nil {
				if columns, ok := errors.AsType[*intake.ColumnError](err); ok {
					columns.Offer(in.saved)
				}
				return j, err
			}
			j.Read++
			for _, p := range rec.Problems {
				if !p.Note {
					j.Issues.Add(Issue(p))
				}
			}
			if rec.Good() {
				j.Valid++
			} else {
				j.Invalid++
			}
		}
		j.Summaries = append(j.Summaries, SourceSummary{src.Name, from.summary})
	}
	return j, nil
}

// WriteRejects reads the input again and writes its bad rows.
func (in *Input) WriteRejects(ctx context.Context, w io.Writer) error {
	rejects, o := intake.NewRejects(w), in.Options
	o.KeepText = true
	for _, src := range in.Sources {
		var from reading
		for rec, err := range src.records(ctx, o, &from) {
			if f, bad := in.contradiction(rec); bad {
				rec.Problems = append(rec.Problems, f.Problem)
			}
			if err == nil && !rec.Good() && from.Reader != nil {
				err = rejects.Write(from.Reader, rec)
			}
			if err != nil {
				return err
			}
		}
	}
	return rejects.Flush()
}

func (in *Input) contradiction(rec intake.Record) (f findings.Finding, bad bool) {
	if len(in.contradictory) > 0 && rec.Good() {
		f, bad = in.contradictory[findings.Row{File: rec.File, Line: rec.Line, Item: rec.Item}]
	}
	return f, bad
}

// reading is the state of reading a source.
type reading struct {
	*intake.Reader                // nil for a row from the command line
	summary        intake.Summary // set at the end
}

// records yields every record from the start, and sets r. A source without rows is no error: another may have some.
func (s Source) records(ctx context.Context, o intake.Options, r *reading) iter.Seq2[intake.Record, error] {
	return func(yield func(intake.Record, error) bool) {
		if s.Row != nil {
			rec, sum := o.One(s.Name, *s.Row)
			for i := range rec.Problems {
				rec.Problems[i].Header = cmp.Or(flagOf[rec.Problems[i].Field], "--carrier-code")
			}
			r.summary = sum
			yield(rec, context.Cause(ctx))
			return
		}
		_, err := s.File.Seek(0, io.SeekStart)
		if err != nil {
			err = fmt.Errorf("read %s: %w", s.Name, err)
		} else if r.Reader, err = intake.Open(s.Name, s.File, o); err == nil {
			defer r.Close()
		}
		for err == nil {
			var rec intake.Record
			if rec, err = r.Next(); errors.Is(err, io.EOF) || errors.Is(err, intake.ErrNoRows) {
				r.summary = r.Summary()
				return
			}
			if err = cmp.Or(err, context.Cause(ctx)); err == nil && !yield(rec, nil) {
				return
			}
		}
		yield(intake.Record{}, err)
	}
}

// flagOf maps the fields of a row to their flags. All other fields belong to --carrier-code.
var flagOf = map[string]string{tracking.FieldReferID: "--refer-id", tracking.FieldNumber: "--tracking-number"}

// Entries yields the good records for staging. A record that was good before and is bad or unreadable now is an error.
func (in *Input) Entries(ctx context.Context) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for i, src := range in.Sources {
			for rec, err := range in.again(ctx, src) {
				e := ledger.Entry{File: i, Line: rec.Line, Row: rec.Row, Item: rec.Item, Own: ledger.Own(rec.Own)}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// again yields the good records of one source a second time.
func (in *Input) again(ctx context.Context, src Source) iter.Seq2[intake.Record, error] {
	return func(yield func(intake.Record, error) bool) {
		for rec, err := range src.records(ctx, in.Options, &reading{}) {
			_, contradictory := in.contradiction(rec)
			switch {
			case err != nil:
			case !rec.Good() && !in.Skip:
				err = in.changed(rec.File, "re-run the command")
			case !rec.Good(), contradictory:
				continue
			}
			if err != nil && ctx.Err() == nil {
				err = cmp.Or(in.Unchanged(), err)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
