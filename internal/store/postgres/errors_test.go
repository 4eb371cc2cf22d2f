package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/store"
)

func TestFail(t *testing.T) {
	fatal := func(code string) error {
		return &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "m"}
	}
	plain := func(code string) error {
		return fmt.Errorf("ask: %w", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: code, Message: "m"})
	}
	for _, c := range []struct {
		err           error
		kind          error // nil: it is no store.Error
		again, breaks bool
	}{
		{err: plain("40001"), kind: store.ErrLocked, again: true},
		{err: plain("40P01"), kind: store.ErrLocked, again: true},
		{err: plain("55P03"), kind: store.ErrLocked},
		{err: plain("57014"), kind: store.ErrTimedOut},
		{err: plain("53100"), kind: store.ErrFull},
		{err: plain("53200"), kind: store.ErrUnreachable, again: true},
		{err: plain("25006"), kind: store.ErrReadOnly, again: true, breaks: true},
		{err: plain("42501"), kind: store.ErrNoRight},
		{err: plain("42P01"), kind: store.ErrGone},
		{err: plain("42P05"), kind: store.ErrPooled},
		{err: plain("26000"), kind: store.ErrPooled},
		{err: plain("58030"), kind: store.ErrIO},
		{err: plain("XX001"), kind: store.ErrCorrupt},
		{err: plain("23505"), kind: store.ErrServer},
		{err: plain("P0001"), kind: store.ErrServer},
		{err: plain("XX000"), kind: store.ErrServer},
		{err: fatal("XX000"), kind: store.ErrServer, breaks: true},
		{err: plain("53400"), kind: store.ErrLimit},
		{err: fatal("53300"), kind: store.ErrNoConnections, again: true, breaks: true},
		{err: fatal("57P01"), kind: store.ErrUnreachable, again: true, breaks: true},
		{err: fatal("57P03"), kind: store.ErrUnreachable, again: true, breaks: true},
		{err: fatal("25P03"), kind: store.ErrUnreachable, again: true, breaks: true},
		{err: fatal("28P01"), kind: store.ErrLogin, breaks: true},
		{err: fatal("28000"), kind: store.ErrLogin, breaks: true},
		{err: fatal("3D000"), kind: store.ErrNoDatabase, breaks: true},
		{err: fmt.Errorf("read: %w", io.ErrUnexpectedEOF), kind: store.ErrUnreachable, again: true, breaks: true},
		{err: fmt.Errorf("connect: %w", pgconn.ErrStandbyConnection), kind: store.ErrReadOnly, again: true},
		{err: errors.Join(refusal{store.ErrReadOnly, "it reads"}, io.ErrUnexpectedEOF), kind: store.ErrReadOnly, again: true, breaks: true},
		{err: &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, kind: store.ErrNoTLS, breaks: true},
		{err: driver.ErrBadConn, kind: store.ErrUnreachable, again: true, breaks: true},
		{err: pgconn.ErrConnClosed, kind: store.ErrUnreachable, again: true, breaks: true},
		{err: context.Canceled, breaks: true},
		{err: context.DeadlineExceeded, breaks: true},
		{err: errors.New("of the logic")},
	} {
		failed := fail("PLACE", "write", c.err)
		own, ok := errors.AsType[*store.Error](failed)
		switch {
		case ok != (c.kind != nil) || ok && !errors.Is(own.Kind, c.kind):
			t.Errorf("fail(%v) = %v, want kind %v", c.err, failed, c.kind)
		case !errors.Is(failed, c.err):
			t.Errorf("fail(%v) = %v, which does not match its cause", c.err, failed)
		case ok && fail("PLACE", "read", failed) != failed: //nolint:errorlint // the very error
			t.Errorf("fail(fail(%v)) is another error", c.err)
		}
		for _, err := range []error{c.err, failed} {
			if canRetry(err) != c.again || breaks(err) != c.breaks {
				t.Errorf("%v: again %v, breaks %v; want %v, %v", err, canRetry(err), breaks(err), c.again, c.breaks)
			}
		}
	}
}

// A connection is closed by this process if the server is silent, see [links.cut].
func TestCauseOfClosedConnection(t *testing.T) {
	closed := fmt.Errorf("read: %w", &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed})
	if got, want := fail("PLACE", "read", closed).Error(), "read PLACE: server is unreachable: no answer in time"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
