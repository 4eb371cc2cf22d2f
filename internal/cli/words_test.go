package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// An input that can't be read is a disk problem, but no matter of room: neither
// a file nor what is copied of standard input.
func TestInputThatCannotBeRead(t *testing.T) {
	_, file := intake.Open("orders.csv", iotest.ErrReader(syscall.EIO), intake.Options{})
	_, stdin := input.Opener{MaxBytes: 1 << 20}.Spool(t.Context(), "-", iotest.ErrReader(syscall.EIO))
	for _, err := range []error{file, stdin} {
		code, hint := command.CodeAndHint(err)
		if code != command.Store || strings.Contains(hint, "free space") || !strings.Contains(hint, "disk or device") {
			t.Errorf("explain(%v) = %d, %q", err, code, hint)
		}
	}
	if code, hint := command.CodeAndHint(&os.PathError{Op: "write", Path: "out.json", Err: syscall.ENOSPC}); code != command.Store || !strings.Contains(hint, "free space") {
		t.Errorf("a full disk: %d, %q", code, hint)
	}
}

// Without a folder for temporary files an error says which variable names another one:
// whether the input is copied there, or what was read of it is compared.
func TestNoFolderForTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	_, stdin := input.Opener{MaxBytes: 1 << 20}.Spool(t.Context(), "-", strings.NewReader("a"))
	_, temp := disk.Temp()
	for _, err := range []error{stdin, fmt.Errorf("compare the rows: %w", temp)} {
		code, hint := command.CodeAndHint(err)
		if code != command.Store || !strings.HasPrefix(hint, "set TMPDIR") || !strings.Contains(err.Error(), "missing") {
			t.Errorf("explain(%v) = %d, %q", err, code, hint)
		}
	}
}

// Every outcome of a create names an exit status.
func TestOutcomesHaveCodes(t *testing.T) {
	for o := tracking.OutcomeUnknown; o <= tracking.OutcomeNotCredible; o++ {
		if word := o.Meaning().Exit; command.CodeNamed(word) == command.Failed {
			t.Errorf("%v: no exit status %q", o, word)
		}
	}
}

func TestExplain(t *testing.T) {
	tests := []struct {
		err  error
		want command.Code
	}{
		{errors.New("boom"), command.Failed},
		{fmt.Errorf("A: %w", tracking.ErrAbsent), command.NotFound},
		{&api.StatusError{Status: 401}, command.Auth},
		{&api.StatusError{Status: 404}, command.Refused},
		{&api.StatusError{Status: 503}, command.Unreachable},
		{&api.ConnectError{Err: errors.New("refused")}, command.Unreachable},
		{tracking.ErrUndecided, command.Unknown},
		{ledger.ErrNoRun, command.NotFound},
		{&command.UsageError{Err: errors.New("x")}, command.Usage},
		{&command.ExitError{Code: command.Unknown, Err: errors.New("x")}, command.Unknown},
		{errors.Join(term.ErrClosed, &command.ExitError{Code: command.Unknown, Err: errors.New("x")}), command.Unknown},
		{errors.Join(&command.ExitError{Code: command.Refused, Err: errors.New("x")}, &command.SignalError{}), command.Interrupted},
	}
	for _, tt := range tests {
		if got, _ := command.CodeAndHint(tt.err); got != tt.want {
			t.Errorf("explain(%v) = %d; want %d", tt.err, got, tt.want)
		}
	}
}

func TestWrapText(t *testing.T) {
	const text = "Words that are wider than the terminal is.\n\nExamples:\n  waybill create orders.csv --wait --and --more\n\nFlags:\n      --store FILE   FILE that keeps runs and trackings\n"
	const want = "Words that are wider than the terminal\nis.\n\nExamples:\n  waybill create orders.csv --wait --and --more\n\nFlags:\n      --store FILE   FILE that keeps\n          runs and trackings\n"
	if got := wrapText(text, 40); got != want {
		t.Errorf("at 40 columns:\n%s\nwant:\n%s", got, want)
	}
	if got := wrapText(text, 0); got != text {
		t.Errorf("without a terminal, what fits was changed:\n%s", got)
	}
	const page = "A paragraph whose second line\nis wider than the terminal, which is 40 wide,\nis filled anew.\n\nThis one\nis not.\n"
	const filled = "A paragraph whose second line is wider\nthan the terminal, which is 40 wide, is\nfilled anew.\n\nThis one\nis not.\n"
	if got := wrapText(page, 40); got != filled {
		t.Errorf("at 40 columns:\n%s\nwant:\n%s", got, filled)
	}
	if got := wrapText(text, 20); got != text {
		t.Errorf("at 20 columns it was changed:\n%s", got)
	}
}
