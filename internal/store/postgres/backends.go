package postgres

import (
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// backendName names a process of the server in a row of pg_stat_activity, and thisBackend
// the one that a query runs in.
const (
	backendName = "pid || ' ' || extract(epoch FROM backend_start)"
	thisBackend = "(SELECT " + backendName + " FROM pg_stat_activity WHERE pid = pg_backend_pid())"
)

// backendIn returns what a query for thisBackend alone gave, the last of its statements.
func backendIn(results []*pgconn.Result) string { return string(results[len(results)-1].Rows[0][0]) }

// backends are the server's processes that serve two connections of ours. They are two,
// and stay the same, unless a proxy gives each transaction one that is free. Locks,
// wake-ups and settings of a session need one that stays.
type backends struct {
	mu              sync.Mutex
	writer, session string
	pooled          bool
}

func (b *backends) setWriter(name string)  { b.set(&b.writer, name) }
func (b *backends) setSession(name string) { b.set(&b.session, name) }

func (b *backends) set(one *string, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*one = name
	b.pooled = b.pooled || b.writer == b.session
}

// checkSession is setSession for the number of the process alone, on the same connection.
func (b *backends) checkSession(pid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, _, _ := strings.Cut(b.session, " ")
	b.pooled = b.pooled || known != pid
}

func (b *backends) arePooled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pooled
}

// isWriter reports whether the process with that number is that of our connection which
// writes.
func (b *backends) isWriter(pid uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.HasPrefix(b.writer, fmt.Sprint(pid, " "))
}
