//go:build unix

package input

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

// spoolTest is an opener of input from in, with its temporary files in a folder of their own.
func spoolTest(t *testing.T, in *os.File, most int64) (Opener, string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	return Opener{stdin: term.New(in, os.Stdout, os.Stderr, term.Facts{}).In, MaxBytes: most}, folder
}

// A signal ends the opening of a FIFO that nobody writes to, and a read from one that is silent.
func TestOpeningInputEndsWithTheContext(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stopped := stoppedContext(t)
	open, _ := spoolTest(t, os.Stdin, 1<<20)
	if _, err := open.open(ctx, fifo); !errors.Is(err, stopped) {
		t.Errorf("no writer: %v, want the cause of the context's end", err)
	}
	silent, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer w.Close()
	open, folder := spoolTest(t, silent, 1<<20)
	if _, err := open.open(ctx, command.StdinName); !errors.Is(err, stopped) {
		t.Errorf("silent: %v, want the cause of the context's end", err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestInputIsBounded(t *testing.T) {
	for size, fits := range map[int]bool{1024: true, 1025: false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(strings.Repeat("x", size)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		open, _ := spoolTest(t, r, 1024)
		src, err := open.open(t.Context(), command.StdinName)
		_ = src.File.Close()
		if (err == nil) != fits || err != nil && (!command.As[*command.UsageError](err) || !strings.Contains(command.HintOf(err), "save the input to a file")) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := spoolLimit(100, 1000, true); got != 100 {
		t.Errorf("limit with much room: %d", got)
	}
	if got := spoolLimit(1000, 1000, true); got != 900 {
		t.Errorf("limit with little room: %d, want nine tenths", got)
	}
	if got := spoolLimit(1000, 0, false); got != 1000 {
		t.Errorf("limit with unknown room: %d", got)
	}
}

// A device would fill the disk or never end.
func TestDevicesAreNoInput(t *testing.T) {
	open, _ := spoolTest(t, os.Stdin, 1<<20)
	if _, err := open.open(t.Context(), "/dev/zero"); !command.As[*command.UsageError](err) || command.HintOf(err) == "" {
		t.Errorf("/dev/zero: %v", err)
	}
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	open, _ = spoolTest(t, zero, 1<<20)
	if _, err := open.open(t.Context(), command.StdinName); !command.As[*command.UsageError](err) || command.HintOf(err) == "" {
		t.Errorf("standard input from /dev/zero: %v", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	open, _ = spoolTest(t, null, 1<<20)
	src, err := open.open(t.Context(), command.StdinName)
	if err != nil {
		t.Errorf("standard input from %s: %v", os.DevNull, err)
	}
	_ = src.File.Close()
}

// stoppedContext returns a context that has ended, and why.
func stoppedContext(t *testing.T) (context.Context, error) {
	t.Helper()
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	return ctx, stopped
}

// Where no copy can be made of what can be read only once, the remedy is named.
func TestInputThatCannotBeCopiedNamesTheFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	_, err := Opener{MaxBytes: 10}.Spool(t.Context(), command.StdinName, strings.NewReader("a\n"))
	code, hint := command.CodeAndHint(err)
	if code != command.Store || !strings.Contains(hint, "TMPDIR") || !strings.Contains(err.Error(), "temporary file") {
		t.Errorf("status %d, %v, hint %q", code, err, hint)
	}
}
