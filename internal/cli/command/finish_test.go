package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/term"
)

// Of a command that a signal ended, only what else happened is reported.
func TestFinishAfterASignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&SignalError{Signal: os.Interrupt})
	table := fmt.Errorf("table rows: %w", context.Canceled)
	for _, c := range []struct {
		err  error
		want string
	}{
		{table, "waybill: interrupted\n"},
		{errors.Join(fmt.Errorf("connect: %w", errors.Join(context.Canceled, table)), nil), "waybill: interrupted\n"},
		{&ExitError{Code: Failed, Err: table, Next: "waybill again"}, "waybill: interrupted\nnext: waybill again\n"},
		{errors.Join(table, errors.New("disk is full")), "waybill: interrupted\n  table rows: context canceled\n  disk is full\n"},
	} {
		var out, errs bytes.Buffer
		a := &app.App{IO: term.New(strings.NewReader(""), &out, &errs, term.Facts{})}
		if code := (&Factory{App: a}).Finish(ctx, c.err); code != Interrupted || errs.String() != c.want {
			t.Errorf("%v: code %v, %q; want %q", c.err, code, errs.String(), c.want)
		}
	}
}

func TestMessageOfJoinedErrors(t *testing.T) {
	locked := errors.New("write w.db: locked")
	interrupted := errors.New("interrupted")
	for _, c := range []struct {
		err  error
		want string
	}{
		{locked, "write w.db: locked"},
		{errors.Join(locked, locked), "write w.db: locked"},
		{errors.Join(locked, interrupted), "write w.db: locked\ninterrupted"},
	} {
		if got := messageOf(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
