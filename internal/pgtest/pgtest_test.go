package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

func TestURLIsOfANewSchema(t *testing.T) {
	first, ok := pgtest.URL(t)
	if !ok {
		return
	}
	second, _ := pgtest.URL(t)
	if first == second {
		t.Errorf("both are %s", first)
	}
	for _, url := range []string{first, second} {
		conn := pgtest.Connect(t, url)
		var schema, fsync, commit string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting('search_path'), current_setting('fsync'), current_setting('synchronous_commit')").Scan(&schema, &fsync, &commit); err != nil {
			t.Fatal(err)
		}
		if fsync != "on" || commit != "on" {
			t.Errorf("fsync %s, synchronous_commit %s", fsync, commit)
		}
		for _, query := range []string{"CREATE SCHEMA " + schema, "CREATE TABLE one (n bigint)", "INSERT INTO one VALUES (1)"} {
			if _, err := conn.Exec(t.Context(), query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
	}
}

func TestARestartLosesNoCommit(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := s.NewURL(t)
	conn := pgtest.Connect(t, url)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE public.kept AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context(), "immediate"); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("a stopped server accepts connections")
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := s.Ask(t.Context(), "SELECT 1", nil, &n); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if err := pgtest.Connect(t, url).QueryRow(t.Context(), "SELECT n FROM public.kept").Scan(&n); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := s.NewURL(t)
	conns := []*pgx.Conn{pgtest.Connect(t, url), pgtest.Connect(t, url), pgtest.Connect(t, url)}
	for _, most := range []int{1, 10} {
		if ended, err := s.Terminate(t.Context(), most); err != nil || ended != min(most, len(conns)) {
			t.Errorf("ended %d of at most %d: %v", ended, most, err)
		}
		alive := conns[:0:0]
		for _, conn := range conns {
			_, err := conn.Exec(t.Context(), "SELECT 1")
			if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code != "57P01" {
				t.Errorf("a terminated session says %v", err)
			}
			if err == nil {
				alive = append(alive, conn)
			}
		}
		if conns = alive; most == 1 && len(conns) != 2 || most == 10 && len(conns) != 0 {
			t.Errorf("%d sessions live after at most %d ended", len(conns), most)
		}
	}
}

func TestStandbyLagsWhenItIsCutOff(t *testing.T) {
	t.Parallel()
	primary, ok := pgtest.Start(t)
	if !ok {
		return
	}
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := standby.Ask(t.Context(), "CREATE TABLE refused (n int)", nil); err == nil {
		t.Error("a standby takes writes")
	}
	if err := standby.Configure(t.Context(), "primary_conninfo=''"); err != nil {
		t.Fatal(err)
	}
	if err := primary.Ask(t.Context(), "CREATE TABLE late (n int)", nil); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := standby.Ask(t.Context(), "CREATE TABLE late (n int)", nil); err != nil {
		t.Errorf("the standby followed, or takes no writes: %v", err)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	p := s.NewProxy(t)
	url, err := p.URL(s.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	exec := func(conn *pgx.Conn, query string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := conn.Exec(ctx, query, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	must := func(query string) {
		t.Helper()
		if err := exec(pgtest.Connect(t, url), query, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	must("CREATE TABLE public.t (n int)")

	conn := pgtest.Connect(t, url)
	p.Cut()
	if err := exec(conn, "SELECT 1", time.Minute); err == nil {
		t.Error("a cut connection goes on")
	}

	conn = pgtest.Connect(t, url)
	p.Stall()
	if err := exec(conn, "SELECT 1", 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("on a stalled network: %v", err)
	}
	p.Heal()

	conn = pgtest.Connect(t, url)
	must("CREATE TABLE public.cut (pid int)")
	if err := exec(conn, "INSERT INTO public.cut VALUES (pg_backend_pid())", time.Minute); err != nil {
		t.Fatal(err)
	}
	direct := pgtest.Connect(t, s.NewURL(t))
	ask := func(query string) (yes bool) {
		t.Helper()
		if err := direct.QueryRow(t.Context(), query).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	slept := make(chan error, 1)
	go func() {
		slept <- exec(conn, "SELECT pg_sleep(0.5)", time.Minute)
	}()
	for !ask("SELECT EXISTS (SELECT 1 FROM pg_stat_activity JOIN public.cut USING (pid) WHERE wait_event = 'PgSleep') FROM pg_sleep(0.01)") {
	}
	p.Refuse()
	if ask("SELECT EXISTS (SELECT 1 FROM pg_stat_activity JOIN public.cut USING (pid))") {
		t.Error("the server still works for a refused connection")
	}
	if err := <-slept; err == nil {
		t.Error("a refused connection goes on")
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("a refusing network connects")
	}
	p.Heal()

	for _, cut := range []struct {
		arm  func(...string)
		rows int
	}{{p.CutBefore, 0}, {p.CutAfter, 1}} {
		conn := pgtest.Connect(t, url)
		for _, query := range []string{"BEGIN", "TRUNCATE public.t", "INSERT INTO public.t VALUES (1)"} {
			if err := exec(conn, query, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		cut.arm("COMMIT")
		if err := exec(conn, "commit", time.Minute); err == nil {
			t.Error("a cut commit has an answer")
		}
		n := 0
		if err := pgtest.Connect(t, url).QueryRow(t.Context(), "SELECT count(*) FROM public.t").Scan(&n); err != nil || n != cut.rows {
			t.Errorf("%d rows, %v; want %d", n, err, cut.rows)
		}
	}
}

func TestConfigureAndTCP(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t, "listen_addresses='127.0.0.1'")
	if !ok {
		return
	}
	url, err := s.OverTCP(s.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Connect(t, url)
	if err := s.WriteFile("pg_hba.conf", []byte("local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(t.Context(), "work_mem='5MB'"); err != nil {
		t.Fatal(err)
	}
	memory := ""
	if err := s.Ask(t.Context(), "SELECT current_setting('work_mem')", nil, &memory); err != nil || memory != "5MB" {
		t.Errorf("work_mem %s, %v", memory, err)
	}
	_, err = pgx.Connect(t.Context(), url)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || !strings.HasPrefix(e.Code, "28") {
		t.Errorf("without a password: %v", err)
	}
}

// TestNoServerIsLeft kills a process that has a server: also one whose
// temporary files are in a folder where only we may write.
func TestNoServerIsLeft(t *testing.T) {
	t.Parallel()
	if os.Getenv("PGTEST_VICTIM") == "1" {
		if s, ok := pgtest.Start(t); ok {
			fmt.Println("\nfolder " + s.Folder)
		}
		select {} // until it is killed
	}
	if _, ok := pgtest.URL(t); !ok {
		return
	}
	for _, temporary := range []string{os.TempDir(), t.TempDir()} {
		killWithServer(t, temporary)
	}
}

// killWithServer starts this test again with that folder for temporary files,
// kills it once it has a server, and waits until the server is gone.
func killWithServer(t *testing.T, temporary string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoServerIsLeft$")
	cmd.Env = append(os.Environ(), "PGTEST_VICTIM=1", "TMPDIR="+temporary)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	folder, found := "", false
	for lines := bufio.NewScanner(output); !found && lines.Scan(); {
		folder, found = strings.CutPrefix(lines.Text(), "folder ")
	}
	if !found {
		t.Fatal("no server started")
	}
	socket, err := os.ReadDir(folder)
	if err != nil || len(socket) < 2 {
		t.Fatalf("%v, %v", socket, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a killed process ended well")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			return // its watchdog removes it after the server has stopped
		}
	}
	t.Errorf("%s is left", folder)
}
