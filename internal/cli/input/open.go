package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/term"
)

// Opener opens what is read twice: files, and copies of what can be read only once.
type Opener struct {
	stdin    io.Reader
	terminal bool  // stdin is a terminal
	MaxBytes int64 // bytes of a copy
}

// maxCopy is how many bytes of what can be read only once are copied.
const maxCopy = 4 << 30

// NewOpener returns an opener with the standard input of a session.
func NewOpener(s *app.Session) Opener {
	return Opener{stdin: s.IO.In, terminal: s.IO.InTerminal(), MaxBytes: maxCopy}
}

// OpenFiles opens files of rows with the standard input of a call.
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

// Open opens every file, - as standard input. The end of ctx ends it.
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

// Spool copies r, which can be read only once, into a file without a name.
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

// inputReader marks the errors of reading an input, unlike those of writing its copy.
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

// spoolLimit is how many bytes are copied at most: a tenth of the free space is left alone.
func spoolLimit(limit, free int64, known bool) int64 {
	if !known {
		return limit
	}
	return min(limit, free-free/10)
}
