package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// The names in every private server: the role that tests use owns the database,
// and is no superuser.
const (
	roleName     = "waybill"
	databaseName = "waybill"
	adminName    = "postgres"
)

// defaults are the settings of a private server. What makes commits durable
// stays as PostgreSQL has it.
var defaults = []string{
	"listen_addresses=''", "max_connections=200", "shared_buffers=64MB", "max_wal_size=256MB",
	"log_line_prefix='%m [%p] %a '", "wal_level=replica", "max_wal_senders=4", "hot_standby=on",
}

// patience is how long a server may take to start, to stop or to answer.
const patience = time.Minute

// Server is a PostgreSQL server for tests. It is safe for concurrent use.
type Server struct {
	// Folder is the private folder of the server, with its socket, the file
	// log, and its files in the folder data. Empty: the server is not ours.
	Folder string
	// Port is the port that the socket's name holds, and, if the settings have
	// listen_addresses, that of 127.0.0.1.
	Port int

	url, admin string // of the role that tests use, of the superuser
	watchdog   io.Closer
	ended      func() error // waits for the watchdog
}

// Shared returns the server that all tests of this process share: the one that
// WAYBILL_TEST_POSTGRES names, or a private one, which the first call starts.
// It returns [ErrMissing] where PostgreSQL is not installed. Tests that stop the
// server or end its sessions start their own, with [Start].
func Shared() (*Server, error) { return shared() }

var shared = sync.OnceValues(func() (*Server, error) {
	if dsn := os.Getenv("WAYBILL_TEST_POSTGRES"); dsn != "" {
		return &Server{url: dsn, admin: dsn}, nil
	}
	return newServer(context.Background(), nil)
})

// newServer starts a private server with these settings beyond the defaults,
// each as in postgresql.conf.
func newServer(ctx context.Context, settings []string) (_ *Server, err error) {
	s, err := newFolder(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := run(ctx, s.Folder, "initdb", "--pgdata", s.data(), "--auth", "trust", "--username", adminName,
		"--encoding", "UTF8", "--locale", "C", "--no-sync"); err != nil {
		return nil, err
	}
	if err := s.configure(append(s.own(), settings...)); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	if err := s.createDatabase(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// newFolder makes the folder of a private server, and starts its watchdog.
func newFolder(ctx context.Context) (*Server, error) {
	root := os.TempDir()
	if len(root) > 60 || !ownerRemovesFrom(root) {
		root = "/tmp" // a socket's name has 107 bytes at most, and the watchdog removes the folder
	}
	folder, err := os.MkdirTemp(root, "pgtest-")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Folder: folder, Port: port}
	s.url, s.admin = s.urlOf(roleName, databaseName), s.urlOf(adminName, "postgres")
	// The group may pass: root without the right to pass everywhere is of it.
	if err := errors.Join(os.Chmod(folder, 0o750), giveToOwner(folder), s.startWatchdog()); err != nil { //nolint:gosec // see above
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

// watchdog waits until its standard input ends, with the process at the other
// end however that one ended, then ends the server and removes its folder.
const watchdog = `read -r _; "$1" --pgdata "$2/data" --mode immediate stop; rm -rf "$2"`

// startWatchdog starts what ends the server with this process.
func (s *Server) startWatchdog() error {
	pgctl, err := Program("pg_ctl")
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", watchdog, "pgtest-watchdog", pgctl, s.Folder) //nolint:gosec,noctx // it outlives everything here
	cmd.Dir = "/"
	if err := asOwner(cmd); err != nil {
		return err
	}
	input, output, err := os.Pipe()
	if err != nil {
		return err
	}
	defer input.Close()
	cmd.Stdin = input
	if err := cmd.Start(); err != nil {
		return errors.Join(err, output.Close())
	}
	s.watchdog, s.ended = output, cmd.Wait
	return nil
}

// Close ends the server at once and removes its folder.
func (s *Server) Close() error {
	if err := s.private(); err != nil {
		return err
	}
	return errors.Join(s.watchdog.Close(), s.ended(), os.RemoveAll(s.Folder))
}

// Start starts the server, and waits until it accepts connections.
func (s *Server) Start(ctx context.Context) error {
	return s.control(ctx, "start", "--log", filepath.Join(s.Folder, "log"))
}

// Stop stops the server. The mode is PostgreSQL's: immediate is like a power
// cut, fast ends what is under way.
func (s *Server) Stop(ctx context.Context, mode string) error {
	return s.control(ctx, "stop", "--mode", mode)
}

// Restart stops the server in that mode and starts it.
func (s *Server) Restart(ctx context.Context, mode string) error {
	if err := s.Stop(ctx, mode); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Promote makes a standby a primary, and waits until it takes writes.
func (s *Server) Promote(ctx context.Context) error { return s.control(ctx, "promote") }

// Configure adds settings, each as in postgresql.conf, and restarts the server.
func (s *Server) Configure(ctx context.Context, settings ...string) error {
	if err := s.configure(settings); err != nil {
		return err
	}
	return s.Restart(ctx, "fast")
}

// WriteFile writes a file of the server's folder data, such as pg_hba.conf or a
// key, with the mode that the server asks for. Restart makes it hold.
func (s *Server) WriteFile(name string, content []byte) error {
	if err := s.private(); err != nil {
		return err
	}
	path := filepath.Join(s.data(), name)
	return errors.Join(os.WriteFile(path, content, 0o600), giveToOwner(path))
}

// Log returns what the server logged.
func (s *Server) Log() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.Folder, "log"))
	return string(text), err
}

// Standby starts a server that follows s, with these settings beyond those of
// s. It stops following when it is configured with primary_conninfo=”. The
// caller closes it.
func (s *Server) Standby(ctx context.Context, settings ...string) (_ *Server, err error) {
	if err := s.private(); err != nil {
		return nil, err
	}
	standby, err := newFolder(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, standby.Close())
		}
	}()
	if err := run(ctx, standby.Folder, "pg_basebackup", "--host", s.Folder, "--port", strconv.Itoa(s.Port), "--username", adminName,
		"--pgdata", standby.data(), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"); err != nil {
		return nil, err
	}
	if err := standby.configure(append(standby.own(), settings...)); err != nil {
		return nil, err
	}
	if err := standby.Start(ctx); err != nil {
		return nil, err
	}
	return standby, nil
}

// Terminate ends sessions of the role that tests use, at most that many, chosen
// at random, and returns how many.
func (s *Server) Terminate(ctx context.Context, most int) (ended int, err error) {
	err = s.Ask(ctx, `SELECT count(*) FROM (
			SELECT pid FROM pg_stat_activity
			WHERE usename = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()
			ORDER BY random() LIMIT $2) AS chosen
		WHERE pg_terminate_backend(pid)`, []any{roleName, most}, &ended)
	return ended, err
}

// Ask runs one query as the superuser, on a connection of its own, and puts the
// columns of its first row into into. Without into there need be no row.
func (s *Server) Ask(ctx context.Context, query string, args []any, into ...any) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if len(into) == 0 {
		_, err := conn.Exec(ctx, query, args...)
		return err
	}
	return conn.QueryRow(ctx, query, args...).Scan(into...)
}

// OverTCP returns a URL of this server with 127.0.0.1 in place of the socket.
// The server's settings must have listen_addresses=127.0.0.1.
func (s *Server) OverTCP(of string) (string, error) {
	return withAddress(of, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)))
}

// withAddress returns the URL with another address.
func withAddress(of, address string) (string, error) {
	u, err := url.Parse(of)
	if err != nil {
		return "", err
	}
	values := u.Query()
	values.Del("host")
	values.Del("port")
	u.Host, u.RawQuery = address, values.Encode()
	return u.String(), nil
}

func (s *Server) data() string { return filepath.Join(s.Folder, "data") }

// own returns the settings that every server has, its place included.
func (s *Server) own() []string {
	return append([]string{"unix_socket_directories='" + s.Folder + "'", "port=" + strconv.Itoa(s.Port)}, defaults...)
}

func (s *Server) configure(settings []string) error {
	if err := s.private(); err != nil {
		return err
	}
	// The file that is read last: it has what pg_basebackup wrote, too.
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + strings.Join(settings, "\n") + "\n")
	return errors.Join(err, file.Close())
}

func (s *Server) control(ctx context.Context, action string, args ...string) error {
	if err := s.private(); err != nil {
		return err
	}
	args = append([]string{action, "--pgdata", s.data(), "--wait", "--silent", "--timeout", strconv.Itoa(int(patience.Seconds()))}, args...)
	if err := run(ctx, s.Folder, "pg_ctl", args...); err != nil {
		log, _ := s.Log() // what it says is extra
		return fmt.Errorf("%w\n%s", err, log)
	}
	return nil
}

func (s *Server) private() error {
	if s.Folder == "" {
		return errors.New("the server of WAYBILL_TEST_POSTGRES is not ours to stop: start one with pgtest.Start")
	}
	return nil
}

func (s *Server) urlOf(role, database string) string {
	values := url.Values{"host": {s.Folder}, "port": {strconv.Itoa(s.Port)}}
	return (&url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: values.Encode()}).String()
}

// createDatabase creates the role and the database of the tests. Text sorts by
// a language there, where the server can do it, so that a query which relies on
// the order of bytes, and does not say so, is found.
func (s *Server) createDatabase(ctx context.Context) error {
	if err := s.Ask(ctx, "CREATE ROLE "+roleName+" LOGIN", nil); err != nil {
		return err
	}
	create := "CREATE DATABASE " + databaseName + " OWNER " + roleName + " TEMPLATE template0"
	if err := s.Ask(ctx, create+" LOCALE_PROVIDER icu ICU_LOCALE 'en-US'", nil); err == nil {
		return nil
	}
	return s.Ask(ctx, create, nil)
}

// freePort returns a port of 127.0.0.1 that was free just now.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
