package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
)

// started returns a server for one test, and the URL of a schema of it that has the
// store's tables; false without PostgreSQL.
func started(t *testing.T) (s *pgtest.Server, url string, ok bool) {
	t.Helper()
	if s, ok = pgtest.Start(t); ok {
		url = s.NewURL(t)
		migrated(t, url)
	}
	return s, url, ok
}

// shared is started on the server of all tests.
func shared(t *testing.T) (url string, ok bool) {
	t.Helper()
	if url, ok = pgtest.URL(t); ok {
		migrated(t, url)
	}
	return url, ok
}

func migrated(t *testing.T, url string) {
	t.Helper()
	conn := pgtest.Connect(t, url)
	target := parsed(t, url)
	if _, _, err := openSchema(t.Context(), conn, target.Place(), target.schema, store.Options{}); err != nil {
		t.Fatal(err)
	}
}

func parsed(t testing.TB, url string) Target {
	t.Helper()
	target, err := Parse(url, ParseOptions{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// newTestEngine returns an engine, as another process would have it.
func newTestEngine(t *testing.T, url string) *engine {
	t.Helper()
	target := parsed(t, url)
	e := newEngine(target.Place(), target.schema, (&access{target: target}).config(), store.Process{Host: "here", PID: 1, Version: "1", Command: "test"})
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// viaProxy returns an engine whose network is a proxy's.
func viaProxy(t *testing.T, p *pgtest.Proxy, url string) *engine {
	t.Helper()
	url, err := p.URL(url)
	if err != nil {
		t.Fatal(err)
	}
	return newTestEngine(t, url)
}

// transaction is a transaction of an engine as a store does it, but once.
type transaction struct {
	e    *engine
	conn *sql.Conn
}

func begun(t *testing.T, e *engine) transaction {
	t.Helper()
	conn, err := e.writer.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.writer.Begin(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	return transaction{e, conn}
}

func (x transaction) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := x.conn.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// end commits after the last statements, and gives the connection back.
func (x transaction) end(t *testing.T, last ...store.Statement) error {
	t.Helper()
	err := x.e.writer.Commit(t.Context(), x.conn, last)
	if _, drop := x.e.writer.Classify(err); err != nil && drop {
		x.e.writer.Drop(x.conn)
	}
	_ = x.conn.Close()
	return err
}

// commits are what is sent to commit: the statement, or the name that the driver gives it
// where it is prepared, after the last statements.
func commits() []string {
	sum := sha256.Sum256([]byte("COMMIT"))
	return []string{"COMMIT\x00", "\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00"}
}

// mark writes something, and marks reads how much of it is there.
const mark = "INSERT INTO outbox_numbers (sink, folded, entry) VALUES ($1, '', 0)"

func marks(t *testing.T, url string) (n int) {
	t.Helper()
	conn := pgtest.Connect(t, url)
	if err := conn.QueryRow(t.Context(), "SELECT COUNT(*) FROM outbox_numbers").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Where one of the last statements fails nothing is stored, and the connection stays.
func TestLastStatementThatFails(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	x := begun(t, e)
	err := x.end(t, store.Statement{Text: mark, Args: []any{1}}, store.Statement{Text: "SELECT 1 / 0"})
	if again, drop := e.writer.Classify(err); err == nil || again || drop {
		t.Errorf("commit: %v, again %v, drop %v", err, again, drop)
	}
	if n := marks(t, url); n != 0 {
		t.Errorf("stored %d marks", n)
	}
}

// A commit that the server refuses is none, whatever the driver makes of its answer.
func TestCommitOfAFailedTransaction(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	x := begun(t, e)
	x.exec(t, mark, 1)
	if _, err := x.conn.ExecContext(t.Context(), "SELECT 1 / 0"); err == nil {
		t.Fatal("no error")
	}
	err := x.end(t)
	if again, _ := e.writer.Classify(err); err == nil || again {
		t.Errorf("commit: %v, again %v", err, again)
	}
}

// A command that reads and writes once, and ends before a heartbeat is due, connects once.
func TestShortCommandConnectsOnce(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	e.spans.beat = time.Hour
	if _, err := e.pool.ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	registered(t, e)
	if n := len(e.links.open); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestFencedProcessGetsAnotherName(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e, other := newTestEngine(t, url), newTestEngine(t, url)
	var notes []string
	e.note = func(text string) { notes = append(notes, text) }
	x := begun(t, e)
	name, err := e.owners.Name()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
	if err := e.owners.CheckOwner(name); err != nil {
		t.Errorf("held: %v", err)
	}
	e.session.stop()()
	age(t, url, name)
	if alive, err := other.owners.Await(t.Context(), name); alive || err != nil { // the server may have started just now
		t.Errorf("await: %v, %v", alive, err)
	}
	y := begun(t, other)
	if dead, err := other.owners.Fence(t.Context(), y.conn, name); !dead || err != nil {
		t.Errorf("bury: %v, %v", dead, err)
	}
	if err := y.end(t); err != nil {
		t.Fatal(err)
	}
	x = begun(t, e)
	again, err := e.owners.Name()
	if err != nil || again == name {
		t.Errorf("name %s, %v; want another one than %s", again, err, name)
	}
	if err := e.owners.CheckOwner(name); !errors.Is(err, store.ErrTakenOver) {
		t.Errorf("held: %v", err)
	}
	if err := e.owners.CheckOwner(again); err != nil {
		t.Errorf("held: %v", err)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "Other processes took this one for dead after ") {
		t.Errorf("notes %q; want one", notes)
	}
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
}

// age makes the row of an owner as it is when its process has been silent for long.
func age(t *testing.T, url, name string) {
	t.Helper()
	conn := pgtest.Connect(t, url)
	if err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE owners SET seen = clock_timestamp() - interval '1 minute' WHERE name = $1", name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// stores does something that other processes wait for.
const stores = "UPDATE deliveries SET released = 1 WHERE seq = 1"

func TestWatchHearsOfOthersAgainAfterItsConnectionWasLost(t *testing.T) {
	s, url, ok := started(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	e, other := viaProxy(t, p, url), newTestEngine(t, url)
	hints := e.session.Watch(t.Context())
	<-hints
	p.Cut()
	<-hints // what was stored meanwhile may be something
	x := begun(t, other)
	x.exec(t, stores)
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
	<-hints
}

func TestServerThatIsAway(t *testing.T) {
	s, url, ok := started(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	e.spans.patience = 300 * time.Millisecond
	if err := begun(t, e).end(t); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), "immediate"); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		return e.read(t.Context(), func() (bool, error) {
			var one int
			return true, e.pool.QueryRowContext(t.Context(), "SELECT 1").Scan(&one)
		})
	}
	tries := 0
	write := func() error {
		return store.Retry(t.Context(), e.writer, func(ctx context.Context) error {
			tries++
			conn, err := e.writer.Connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := e.writer.Begin(ctx, conn); err != nil {
				e.writer.Drop(conn)
				return err
			}
			return e.writer.Commit(ctx, conn, nil)
		})
	}
	for name, call := range map[string]func() error{"read": ask, "write": write} {
		if err := fail(e.place, name, call()); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tries = 0
	if err := write(); err == nil || tries != 1 {
		t.Errorf("write: %v after %d tries; want an error at once", err, tries)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ask(), write()); err != nil {
		t.Error(err)
	}
}

func TestSilentNetwork(t *testing.T) {
	s, url, ok := started(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	e := viaProxy(t, p, url)
	e.spans.silence, e.spans.beat = 500*time.Millisecond, 50*time.Millisecond
	x := begun(t, e)
	x.exec(t, mark, 1)
	p.Stall()
	healed := make(chan struct{})
	go func() {
		defer close(healed)
		<-time.After(time.Second)
		p.Heal()
	}()
	err := x.end(t)
	<-healed
	if again, _ := e.writer.Classify(err); (err == nil) != (marks(t, url) == 1) || err != nil && !again {
		t.Errorf("commit: %v, to be done again: %v; %d marks", err, again, marks(t, url))
	}
}

// registered returns the name of an engine that has written.
func registered(t *testing.T, e *engine) string {
	t.Helper()
	if err := begun(t, e).end(t); err != nil {
		t.Fatal(err)
	}
	name, _ := e.owners.own()
	return name
}

// fence takes over from an owner, and reports whether it was dead.
func fence(t *testing.T, e *engine, name string) bool {
	t.Helper()
	x := begun(t, e)
	dead, err := e.owners.Fence(t.Context(), x.conn, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
	return dead
}

// A machine whose network is cut keeps its lock on the server. Its lease ends.
// A network that falls silent before there was a heartbeat, which finds it out otherwise.
func TestSilentNetworkBeforeTheFirstHeartbeat(t *testing.T) {
	s, url, ok := started(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	e := viaProxy(t, p, url+"&connect_timeout=1")
	e.spans.silence, e.spans.patience = 500*time.Millisecond, 500*time.Millisecond
	conn, err := e.writer.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.RefuseNew()
	if err := e.writer.Begin(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	p.Heal()
	p.Stall()
	defer p.Heal()
	ended := make(chan error, 1)
	go func() { ended <- e.writer.Commit(context.WithoutCancel(t.Context()), conn, nil) }()
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("commit: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a commit waits for a silent network without end")
	}
}

// Whoever waits for long until another is dead for certain says so.
func TestAwaitSaysThatItWaits(t *testing.T) {
	t.Parallel()
	url, ok := shared(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	e.spans.grace = noticed + time.Second
	notes := make(chan string, 2)
	e.note = func(text string) { notes <- text }
	exec(t, pgtest.Connect(t, url), "INSERT INTO owners (name, host, pid, version, command) VALUES ('dead', 'h', 1, 'v', 'create')")
	if alive, err := e.owners.Await(t.Context(), "dead"); alive || err != nil {
		t.Fatalf("alive %v, %v", alive, err)
	}
	select {
	case first := <-notes:
		if !strings.HasPrefix(first, "Waiting until it is certain") || len(notes) > 0 {
			t.Errorf("said %q, and %d more", first, len(notes))
		}
	case <-time.After(time.Minute):
		t.Error("said nothing")
	}
}

func TestLockThatHangsOn(t *testing.T) {
	s, url, ok := started(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	e, other := viaProxy(t, p, url), newTestEngine(t, url)
	other.spans.grace, other.spans.lease = time.Second, time.Hour
	e.spans.grace, e.spans.beat = time.Second, 50*time.Millisecond
	name := registered(t, e)
	if alive, err := other.owners.Await(t.Context(), name); !alive || err != nil {
		t.Fatalf("alive %v, %v", alive, err)
	}
	p.Stall()
	// Both the owner and the server, which started just now, are silent for longer than the grace.
	conn := pgtest.Connect(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for silent := false; !silent; {
		if err := conn.QueryRow(ctx, `SELECT clock_timestamp() - GREATEST(seen, pg_postmaster_start_time()) > $2
			FROM owners, pg_sleep(0.01) WHERE name = $1`, name, other.spans.grace).Scan(&silent); err != nil {
			t.Fatal(err)
		}
	}
	if alive, err := other.owners.IsAlive(t.Context(), other.pool, name); !alive || err != nil || fence(t, other, name) {
		t.Errorf("alive %v, %v, or taken for dead though its lock hangs on", alive, err)
	}
	other.spans.lease = other.spans.grace // it has run out
	if alive, err := other.owners.Await(ctx, name); alive || err != nil {
		t.Errorf("alive %v, %v, after its lease", alive, err)
	}
	if err := e.owners.CheckOwner(name); !errors.Is(err, store.ErrCutOff) {
		t.Errorf("held: %v", err)
	}
	if !fence(t, other, name) {
		t.Error("not dead")
	}
	p.Heal()
	if again := registered(t, e); again == name {
		t.Error("it still has its name")
	}
	if err := e.owners.CheckOwner(name); !errors.Is(err, store.ErrTakenOver) {
		t.Errorf("held: %v", err)
	}
}

func TestCloseWhileTheNetworkIsSilent(t *testing.T) {
	s, url, ok := started(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	e := viaProxy(t, p, url)
	e.spans.silence, e.spans.beat = time.Hour, time.Hour // nothing else ends a wait for the server
	registered(t, e)
	p.Stall()
	defer p.Heal()
	closed := make(chan error, 1)
	go func() { closed <- e.close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("close: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for a silent server")
	}
}

func TestCleanExitLeavesNoOwner(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e, other := newTestEngine(t, url), newTestEngine(t, url)
	name := registered(t, e)
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	if alive, err := other.owners.IsAlive(t.Context(), other.pool, name); alive || err != nil {
		t.Errorf("alive %v, %v", alive, err)
	}
}

func TestRowsOfTheDeadGoAfterAWhile(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	conn := pgtest.Connect(t, url)
	if _, err := conn.Exec(t.Context(), `INSERT INTO owners (name, host, pid, version, command, seen)
		SELECT 'dead' || n, '', 0, '', '', clock_timestamp() - interval '2 hours' FROM generate_series(1, 150) n`); err != nil {
		t.Fatal(err)
	}
	// The server may have started just now; then everybody has time to come back.
	one := newTestEngine(t, url)
	if alive, err := one.owners.Await(t.Context(), "dead1"); alive || err != nil {
		t.Fatalf("alive %v, %v", alive, err)
	}
	left := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT COUNT(*) FROM owners WHERE name LIKE 'dead%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	registered(t, one)
	if n := left(); n != 50 {
		t.Errorf("%d left, want 50", n)
	}
	registered(t, one) // it removes them once
	registered(t, newTestEngine(t, url))
	if n := left(); n != 0 {
		t.Errorf("%d left, want none", n)
	}
}

// A heartbeat in the future is one from before the server's clock was set back.
func TestServerClockThatWasSetBack(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e, other := newTestEngine(t, url), newTestEngine(t, url)
	name := registered(t, e)
	e.session.stop()()
	conn := pgtest.Connect(t, url)
	if _, err := conn.Exec(t.Context(), "UPDATE owners SET seen = clock_timestamp() + interval '1 hour' WHERE name = $1", name); err != nil {
		t.Fatal(err)
	}
	if alive, err := other.owners.Await(t.Context(), name); alive || err != nil {
		t.Errorf("alive %v, %v", alive, err)
	}
}

func TestClockIsTheServers(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e := newTestEngine(t, url)
	if id := e.clock.ID(); id != "" {
		t.Errorf("a clock %q before the server said a time", id)
	}
	registered(t, e)
	var shown time.Time
	if err := e.pool.QueryRowContext(t.Context(), "SELECT clock_timestamp()").Scan(&shown); err != nil {
		t.Fatal(err)
	}
	if off := e.clock.Now() - time.Duration(shown.UnixNano()); e.clock.ID() == "" || off.Abs() > 5*time.Second {
		t.Errorf("clock %q is off by %s", e.clock.ID(), off)
	}
}

// Who waits for others is asked at times whether to wait on.
func TestBeginWaitsItsTurn(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e, other := newTestEngine(t, url), newTestEngine(t, url)
	x := begun(t, other)
	conn, err := e.writer.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = e.writer.Begin(t.Context(), conn)
	if again, drop := e.writer.Classify(err); err == nil || !again || drop || !errors.Is(fail(e.place, "write", err), store.ErrLocked) {
		t.Errorf("begin: %v, again %v, drop %v", err, again, drop)
	}
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
	if err := e.writer.Begin(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if err := e.writer.Commit(t.Context(), conn, nil); err != nil {
		t.Fatal(err)
	}
}

// A process that is stopped in the middle of a statement keeps others from writing for a
// while only.
func TestProcessStoppedInTheMiddleOfAStatement(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	for name, wait := range map[string]func(ctx context.Context, e *engine) error{
		"to write": func(ctx context.Context, e *engine) error {
			conn, err := e.writer.Connect(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := e.writer.Begin(ctx, conn); err != nil {
				return err
			}
			return e.writer.Commit(ctx, conn, nil)
		},
		"to stage": func(ctx context.Context, e *engine) error {
			_, unlock, err := e.lockStaging(ctx)
			if err != nil {
				return err
			}
			return unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, stopped := newTestEngine(t, url), newTestEngine(t, url)
			e.spans.stopped, e.spans.patience = time.Second, time.Millisecond
			e.pool.SetMaxOpenConns(2)
			if _, err := e.pool.ExecContext(t.Context(), "SET lock_timeout TO '1500ms'"); err != nil {
				t.Fatal(err)
			}
			x := begun(t, stopped)
			defer x.conn.Close()
			goOn, ended := make(chan struct{}), make(chan error)
			defer close(goOn)
			go func() {
				columns := []string{"sink", "folded", "entry"}
				ended <- load(t.Context(), x.conn, "outbox_numbers", columns, 1, func(args []any, _ int) []any {
					<-goOn
					return append(args, int64(1), "", int64(0))
				})
			}()
			err := store.Retry(t.Context(), e.writer, func(ctx context.Context) error { return wait(ctx, e) })
			if err != nil {
				t.Error(err)
			}
			goOn <- struct{}{}
			if err := <-ended; err == nil {
				t.Error("it wrote when it went on")
			}
		})
	}
}

// Who holds the lock for long and is not stopped keeps it.
func TestFreezeIsNotTakenForAStoppedProcess(t *testing.T) {
	url, ok := shared(t)
	if !ok {
		return
	}
	e, other := newTestEngine(t, url), newTestEngine(t, url)
	other.spans.stopped = time.Millisecond
	release, err := e.freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := other.writer.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := other.writer.Begin(t.Context(), conn); !errors.Is(fail("", "", err), store.ErrLocked) {
		t.Errorf("begin: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestProxyThatSharesConnectionsOut(t *testing.T) {
	for name, set := range map[string]func(*backends){
		"one for both":           func(b *backends) { b.setWriter("7 1.5"); b.setSession("7 1.5") },
		"another with each beat": func(b *backends) { b.setSession("7 1.5"); b.checkSession("8") },
	} {
		var b backends
		if set(&b); !b.arePooled() {
			t.Error(name)
		}
	}
	var b backends
	b.setWriter("7 1.5")
	b.setSession("8 1.5")
	b.checkSession("8")
	b.setWriter("9 1.5")
	b.setSession("7 2.5")
	b.checkSession("7")
	if b.arePooled() {
		t.Error("connections that were made again count as shared out")
	}
}

// While commits wait for a standby that is away, nobody else is said to be staging, and a
// check shows what they wait for.
func TestStandbyThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, url, ok := started(t)
	if !ok {
		return
	}
	d := dbAt(t.Context(), t, url, store.Options{})
	asAdmin(t, s, "ALTER SYSTEM SET synchronous_standby_names TO away")
	asAdmin(t, s, "SELECT pg_reload_conf()")
	waiter, stop, waited := pgtest.Connect(t, url), make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			_, err := waiter.Exec(t.Context(), "SELECT pg_logical_emit_message(true, 'a', 'commit')")
			select {
			case <-stop:
				waited <- err
				return
			default: // the server had not read its settings yet
			}
		}
	}()
	for waits := false; !waits; {
		if err := s.Ask(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep') FROM pg_sleep(0.01)", nil, &waits); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := d.Stage(ctx, ledger.Plan{Files: []string{"f"}, Mode: ledger.Async, BatchSize: 10})
	wantKind(t, err, store.ErrTimedOut, "no answer in time")
	if errors.Is(err, ledger.ErrBusy) {
		t.Errorf("%v, but nobody is staging", err)
	}
	found, err := d.Inspect(t.Context())
	if i := slices.IndexFunc(found.Settings, func(s store.Setting) bool { return s.Name == "synchronous_standby_names" }); err != nil || i < 0 || found.Settings[i].Value != "away" || found.Settings[i].Warning == "" {
		t.Errorf("%+v, %v; want a warning of the standby", found.Settings, err)
	}
	asAdmin(t, s, "ALTER SYSTEM RESET synchronous_standby_names")
	asAdmin(t, s, "SELECT pg_reload_conf()")
	if err := <-waited; err != nil {
		t.Errorf("waiter: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
