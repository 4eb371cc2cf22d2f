package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/store"
)

// kinds are the kinds of SQLSTATEs, or of their classes, which are the first two characters.
var kinds = map[string]error{
	"08":    store.ErrUnreachable, // connection exceptions
	"26000": store.ErrPooled,      // no such prepared statement: another session has it
	"42P05": store.ErrPooled,      // it exists: another process prepared it
	"25006": store.ErrReadOnly,    // read-only transaction: a standby, or an old primary
	"25P03": store.ErrUnreachable, // the server ended an idle transaction with its connection
	"25P04": store.ErrTimedOut,    // the same for a long one
	"28":    store.ErrLogin,
	"3D000": store.ErrNoDatabase,
	"3F000": store.ErrGone, // no such schema
	"40001": store.ErrLocked,
	"40P01": store.ErrLocked, // deadlock
	"42501": store.ErrNoRight,
	"42P01": store.ErrGone, // no such table
	"53100": store.ErrFull,
	"53200": store.ErrUnreachable, // out of memory
	"53300": store.ErrNoConnections,
	"53400": store.ErrLimit, // such as temp_file_limit
	"55P03": store.ErrLocked,
	"57014": store.ErrTimedOut,
	"57P01": store.ErrUnreachable, // shutdown, or the connection was terminated
	"57P02": store.ErrUnreachable, // crash of another process of the server
	"57P03": store.ErrUnreachable, // starting up or shutting down
	"57P04": store.ErrNoDatabase,  // dropped
	"57P05": store.ErrUnreachable, // idle for too long
	"58":    store.ErrIO,
	"XX001": store.ErrCorrupt,
	"XX002": store.ErrCorrupt,
}

// advice replaces the hints of kinds that need other words for a server.
var advice = map[error]string{
	store.ErrFull: "free space on the disk of the server, then re-run the same command",
	store.ErrLocked: "another session has locked the store; `waybill store check` shows which; " +
		"then re-run the same command",
	store.ErrReadOnly: "use the primary server, or a role that may write, with --store",
	store.ErrNotStore: "use another schema with ?schema=NAME in --store",
	store.ErrGone: "restore a backup of the database; if it is lost, `waybill create --check-first` checks " +
		"every row with the service before it is sent",
	store.ErrCorrupt: "keep a copy of the server's data folder, then restore a backup",
	store.ErrIO:      "check the disk of the server, then re-run the same command",
}

// sqlState returns the server's code for err, "" if the server did not report it.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// kindOf returns the kind of err, nil if it does not concern the server.
func kindOf(err error) error {
	connecting, isConnecting := errors.AsType[*pgconn.ConnectError](err)
	if code := sqlState(err); len(code) == 5 {
		other := store.ErrServer
		if isConnecting {
			other = store.ErrUnreachable // the server accepts no connections
		}
		return cmp.Or(kinds[code], kinds[code[:2]], other)
	}
	if r, ok := errors.AsType[refusal](err); ok {
		return r.kind
	}
	switch {
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		return store.ErrReadOnly
	case errors.Is(err, pgconn.ErrReadWriteConnection), errors.Is(err, pgconn.ErrPrimaryConnection):
		return store.ErrUnreachable // no server is of the kind that target_session_attrs asks for
	case isTLS(err):
		return store.ErrNoTLS
	case isNetwork(err), isConnecting && errors.Is(err, context.DeadlineExceeded):
		return store.ErrUnreachable
	case isConnecting && connecting.Config.RequireAuth == provenAuth:
		return store.ErrLogin // the server wants another way to log in; the driver has no type for that
	case isConnecting && connecting.Config.TLSConfig != nil:
		return store.ErrNoTLS // the server refused TLS, or what it takes for a login
	case isConnecting:
		return store.ErrUnreachable
	default:
		return nil
	}
}

// isTLS reports whether err says that one side rejected the other's TLS.
func isTLS(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	op, ok := errors.AsType[*net.OpError](err)
	return verification || record || ok && (op.Op == "remote error" || op.Op == "local error") // TLS alerts
}

// isNetwork reports whether err says that a connection was lost, or not made. The end of a context does not count,
// though it ends the connection too.
func isNetwork(err error) bool {
	broken := []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, driver.ErrBadConn, pgconn.ErrConnClosed,
		syscall.ECONNRESET, syscall.EPIPE,
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && !errors.Is(e, context.DeadlineExceeded) ||
		slices.ContainsFunc(broken, func(known error) bool { return errors.Is(err, known) })
}

// canRetry reports whether a transaction that failed with err may be run again: nothing of it was written, and the
// cause may be gone. It does not hold for a commit that was sent.
func canRetry(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01": // serialisation failure, deadlock
		return true
	}
	k := kindOf(err)
	if own, ok := errors.AsType[*store.Error](err); ok {
		k = own.Kind
	}
	// A server that is starting, or being replaced.
	return slices.Contains([]error{store.ErrUnreachable, store.ErrNoConnections, store.ErrReadOnly}, k)
}

// breaks reports whether the connection is unusable after err.
func breaks(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.SeverityUnlocalized != "ERROR" || e.Code == "25006" // another server may be the primary by now
	}
	return isNetwork(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// fail returns err in the form for callers. Errors of the context and of the contracts stay as they are.
func fail(place, op string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if done, ok := errors.AsType[*store.Error](err); ok {
		done.Advice = cmp.Or(done.Advice, advice[done.Kind])
		return err
	}
	if k := kindOf(err); k != nil {
		failed := &store.Error{Kind: k, Path: place, Op: op, Err: shortCause(err), Advice: advice[k]}
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Routine == "check_enable_rls" { // a policy hides rows
			failed.Advice = "disable row-level security of the tables, or give the role BYPASSRLS"
		} else if k == store.ErrLogin && !ok { //nolint:errorlint // kinds are not wrapped
			failed.Advice = "another program may pose as the server: use password_encryption = 'scram-sha-256' " +
				"and set the password again, connect by the socket (host=/var/run/postgresql), " +
				"or with verified TLS (sslmode=verify-full)"
		}
		return failed
	}
	return err
}

// cause is an error in one line, without what users already know.
type cause struct {
	text string
	err  error // nil if callers would take it for the end of their own context
}

func (c cause) Error() string { return c.text }
func (c cause) Unwrap() error { return c.err }

// shortCause returns the innermost cause of err that tells users something.
func shortCause(err error) error {
	if e, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = e.Unwrap() // leaves out the settings of the connection
	}
	inner := innermost(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return cause{text: "no answer in time"}
	case errors.Is(err, net.ErrClosed): // see [links.cut]
		return cause{"no answer in time", err}
	case inner == io.EOF, inner == io.ErrUnexpectedEOF, //nolint:errorlint // the innermost has no cause
		errors.Is(err, driver.ErrBadConn), errors.Is(err, pgconn.ErrConnClosed):
		return cause{"connection was lost", err}
	}
	if e, ok := errors.AsType[refusal](err); ok {
		return e
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return cause{e.Message + " (SQLSTATE " + e.Code + ")", err}
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return cause{e.Error(), err}
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return cause{e.Error(), err}
	}
	return cause{inner.Error(), err}
}

// innermost returns the error at the end of the chain, on its last branch if it forks: of several attempts to connect,
// the one that got furthest.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
			next = many.Unwrap()[len(many.Unwrap())-1]
		}
		if next == nil {
			return err
		}
		err = next
	}
}
