package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/term"
)

// inputOpener opens what is read twice: files, and copies of what can be read
// only once.
type inputOpener struct {
	stdin    io.Reader
	terminal bool  // stdin is one
	most     int64 // bytes of a copy
}

func newInputOpener(s *app.Session) inputOpener {
	return inputOpener{stdin: s.IO.In, terminal: s.IO.InTerminal(), most: int64(s.Config.MaxInput)}
}

// all opens every file. A signal ends it, whatever it waits for.
func (o inputOpener) all(ctx context.Context, files []string) (*input, error) {
	in := &input{}
	for _, name := range files {
		src, err := o.open(ctx, name)
		if err != nil {
			in.close()
			return nil, err
		}
		in.sources = append(in.sources, src)
	}
	return in, nil
}

// open opens one file, or copies it.
func (o inputOpener) open(ctx context.Context, name string) (source, error) {
	if name == stdinName {
		if f, ok := o.stdin.(*os.File); ok && !o.terminal {
			if info, err := f.Stat(); err == nil && isDevice(info) && !isNull(info) {
				return source{}, deviceError("standard input")
			}
		}
		return o.spool(ctx, name, o.stdin)
	}
	f, err := term.Await(ctx, func() (*os.File, error) { return os.Open(name) })
	if ctx.Err() != nil {
		return source{}, errors.Join(context.Cause(ctx), closeIf(f))
	}
	if err != nil {
		return source{}, usagef("check the name; `-` is standard input", "input %s: %w", quoted(name), cause(err))
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = usagef("check the file and its disk", "input %s: %w", quoted(name), cause(err))
	case info.IsDir():
		err = usagef("name the files in it one by one", "input %s is a folder", quoted(name))
	case isDevice(info):
		err = deviceError("input " + quoted(name))
	case !info.Mode().IsRegular():
		src, err := o.spool(ctx, name, f)
		return src, errors.Join(err, f.Close())
	default:
		return source{name: name, file: f, opened: info}, nil
	}
	return source{}, errors.Join(err, f.Close())
}

func closeIf(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

func isDevice(info fs.FileInfo) bool { return info.Mode()&fs.ModeDevice != 0 }

func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

func deviceError(what string) error {
	return usagef("copy what you need of it into a file, or pipe it in and name `-`", "%s is a device", what)
}

// spool copies r, which can be read only once, into a file without a name.
func (o inputOpener) spool(ctx context.Context, name string, r io.Reader) (source, error) {
	f, err := disk.Temp()
	if err != nil {
		return source{}, fmt.Errorf("copy %s: %w", name, err)
	}
	free, known := disk.Free(os.TempDir())
	limit := spoolLimit(o.most, free, known)
	n, err := term.Await(ctx, func() (int64, error) { return io.Copy(f, io.LimitReader(inputReader{name, r}, limit+1)) })
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case as[*intake.ReadError](err):
	case err != nil:
		err = fmt.Errorf("copy %s: %w", name, err)
	case n <= limit:
		return source{name: name, file: f, temp: true}, nil
	case limit < o.most:
		err = &outcomeError{
			code: Store, err: fmt.Errorf("input %s needs more than nine tenths of the free space in %s", name, os.TempDir()),
			hint: "make room there, or save the input as a file and name that",
		}
	default:
		err = usagef("raise --max-input, or save the input as a file and name that", "input %s is larger than %s", name, config.Size(o.most))
	}
	return source{}, errors.Join(err, f.Close())
}

// inputReader tells the errors of reading an input from those of writing its
// copy.
type inputReader struct {
	name string
	r    io.Reader
}

func (r inputReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the end of a stream is io.EOF itself
		err = &intake.ReadError{File: r.name, Err: err}
	}
	return n, err
}

// spoolLimit is how many bytes are copied at most: a tenth of the free space
// is left alone.
func spoolLimit(most, free int64, known bool) int64 {
	if !known {
		return most
	}
	return min(most, free-free/10)
}
