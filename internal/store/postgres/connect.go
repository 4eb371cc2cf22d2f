package postgres

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/store"
)

// oldest is the oldest supported version of PostgreSQL.
const oldest = 13

// refusal says why a server can't be used although it accepts the login.
type refusal struct {
	kind error
	why  string
}

func (r refusal) Error() string { return r.why }

// access sets up all connections to a target alike, whatever defaults the server, the database and the role have.
type access struct {
	target Target
	reads  bool // read-only servers are accepted; not changed while connections are made
}

func (a *access) config() *pgx.ConnConfig {
	config := a.target.config.Copy()
	config.DialFunc = dialer(config.ConnectTimeout).DialContext
	chosen := config.ValidateConnect // by target_session_attrs
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if chosen != nil {
			if err := chosen(ctx, conn); err != nil {
				return err
			}
		}
		return a.setUp(ctx, conn)
	}
	return config
}

// sessionSettings are set on every connection. A session that is stopped or cut off holds its locks for seconds only.
// Times are in milliseconds, except for tcp_keepalives_*, in seconds.
var sessionSettings = []struct {
	name, value string
	since       int // first version of the server that has it; 0 for all
}{
	{"client_encoding", "UTF8", 0},
	{"application_name", "waybill", 0},
	{"timezone", "UTC", 0},
	{"datestyle", "ISO", 0},
	{"bytea_output", "hex", 0},
	{"standard_conforming_strings", "on", 0},
	{"backslash_quote", "safe_encoding", 0},
	{"default_transaction_isolation", "read committed", 0},
	{"default_transaction_deferrable", "off", 0},
	{"row_security", "off", 0}, // rows that a policy hides are an error, not missing
	{"lock_timeout", "10000", 0},
	{"statement_timeout", "0", 0}, // large tables are read at once
	{"jit", "off", 0},             // statements are long and take few rows
	{"idle_in_transaction_session_timeout", "5000", 0},
	{"tcp_keepalives_idle", strconv.Itoa(int(probeIdle.Seconds())), 0},
	{"tcp_keepalives_interval", strconv.Itoa(int(probeInterval.Seconds())), 0},
	{"tcp_keepalives_count", strconv.Itoa(probeCount), 0},
	{"tcp_user_timeout", strconv.Itoa(int(unanswered.Milliseconds())), 0},
	{"idle_session_timeout", "0", 14},
	{"transaction_timeout", "0", 17},
}

// setUp applies the settings to a new connection, or refuses the server, in one round trip.
func (a *access) setUp(ctx context.Context, conn *pgconn.PgConn) error {
	name := conn.ParameterStatus("server_version")
	// Such as 16.4, 17beta1, or 15.8 (Debian 15.8-1).
	version, err := strconv.Atoi(name[:len(name)-len(strings.TrimLeft(name, "0123456789"))])
	if err != nil || version < oldest {
		return refusal{store.ErrServerTooOld, "it is PostgreSQL " + name}
	}
	if encoding := conn.ParameterStatus("server_encoding"); encoding != "UTF8" {
		return refusal{store.ErrEncoding, "it is in " + encoding}
	}
	var query strings.Builder
	query.WriteString("SET search_path TO " + pgx.Identifier{a.target.schema}.Sanitize() + ", pg_temp")
	for _, s := range sessionSettings {
		if version >= s.since {
			query.WriteString("; SET " + s.name + " TO '" + s.value + "'")
		}
	}
	query.WriteString(`; SELECT pg_is_in_recovery(), current_setting('transaction_read_only'),
		current_setting('fsync'), current_setting('synchronous_commit')`)
	results, err := conn.Exec(ctx, query.String()).ReadAll()
	if err != nil {
		return err
	}
	row := results[len(results)-1].Rows[0]
	standby, readOnly, fsync, synchronousCommit := string(row[0]), string(row[1]), string(row[2]), string(row[3])
	switch {
	case a.reads:
		return nil
	case standby == "t":
		return refusal{store.ErrReadOnly, "the server is a standby"}
	case readOnly == "on":
		return refusal{store.ErrReadOnly, "default_transaction_read_only is on"}
	case fsync == "off":
		return refusal{store.ErrUnsynced, "fsync is off"}
	case synchronousCommit == "off":
		return refusal{store.ErrUnsynced, "synchronous_commit is off"}
	}
	return nil
}

// Both sides notice a cut connection after about this long: an idle one by probes, one that sends by what stays
// unanswered.
const (
	probeIdle     = 5 * time.Second
	probeInterval = 3 * time.Second
	probeCount    = 3
	unanswered    = probeIdle + probeCount*probeInterval
)

func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeInterval, Count: probeCount},
		Control: func(network, _ string, c syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			var err error
			return errors.Join(c.Control(func(fd uintptr) { err = limitUnanswered(fd) }), err)
		},
	}
}

// links are the network connections of an open store. Closing a link ends every wait for the server's answer on it,
// however silent the network is.
type links struct {
	ctx  context.Context //nolint:containedctx // of every dial; it ends when the store is closed
	stop context.CancelFunc

	mu   sync.Mutex
	open map[*link]bool
}

// dialer returns a dial function that adds its connections to the links.
func (l *links) dialer(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.ctx, cancel)() //nolint:contextcheck // the end of either ends it
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		one := &link{Conn: conn, links: l}
		l.mu.Lock()
		l.open[one] = true
		l.mu.Unlock()
		if l.ctx.Err() != nil {
			return nil, errors.Join(net.ErrClosed, one.Close())
		}
		return one, nil
	}
}

func (l *links) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.open {
		_ = one.Conn.Close() // its user gets an error
	}
	clear(l.open)
}

// close closes all links, and prevents new ones.
func (l *links) close() {
	l.stop()
	l.cut()
}

type link struct {
	net.Conn
	links *links
}

// Close is for [net.Conn].
func (l *link) Close() error {
	l.links.mu.Lock()
	delete(l.links.open, l)
	l.links.mu.Unlock()
	return l.Conn.Close()
}
