package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
)

// connectTo connects to the target as an open store does.
func connectTo(t *testing.T, text string, a *access) (*pgx.Conn, error) {
	t.Helper()
	var err error
	if a.target, err = Parse(text, ParseOptions{Insecure: true}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), a.config())
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	}
	return conn, fail(a.target.Place(), "open", err)
}

// wantKind checks that err is of the kind, says some words, has a hint and no secret.
func wantKind(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	failed, ok := errors.AsType[*store.Error](err)
	if !ok || failed.Kind != kind { //nolint:errorlint // the very kind
		t.Errorf("error %v, want one of kind %v", err, kind)
		return
	}
	if failed.Hint() == "" || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error()+failed.Hint(), "secret") {
		t.Errorf("error %q, hint %q: no hint, several lines, or a secret", err, failed.Hint())
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func asAdmin(t *testing.T, s *pgtest.Server, query string) {
	t.Helper()
	if err := s.Ask(t.Context(), query, nil); err != nil {
		t.Fatal(err)
	}
}

func TestSettingsOfConnections(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := s.NewURL(t)
	var version int
	if err := s.Ask(t.Context(), "SELECT current_setting('server_version_num')::int / 10000", nil, &version); err != nil {
		t.Fatal(err)
	}
	for _, hostile := range []struct {
		setting string
		since   int // version of the server
	}{
		{"standard_conforming_strings TO off", 0},
		{"search_path TO pg_catalog", 0},
		{"client_encoding TO 'LATIN1'", 0},
		{"timezone TO 'Asia/Tokyo'", 0},
		{"datestyle TO 'SQL'", 0},
		{"default_transaction_isolation TO 'serializable'", 0},
		{"bytea_output TO 'escape'", 0},
		{"lock_timeout TO '1ms'", 0},
		{"statement_timeout TO '10s'", 0},
		{"idle_session_timeout TO '1s'", 14},
		{"transaction_timeout TO '1s'", 17},
	} {
		if version >= hostile.since {
			asAdmin(t, s, "ALTER ROLE waybill SET "+hostile.setting)
		}
	}
	conn, err := connectTo(t, url, &access{})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sessionSettings {
		var got string
		if set.since > version {
			continue
		}
		if err := conn.QueryRow(t.Context(), "SELECT setting FROM pg_settings WHERE lower(name) = $1", set.name).Scan(&got); err != nil || strings.TrimSuffix(got, ", MDY") != set.value && !strings.HasPrefix(set.name, "tcp_") {
			t.Errorf("%s is %q, %v; want %s", set.name, got, err, set.value)
		}
	}
	var path string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('search_path')").Scan(&path); err != nil || !strings.HasPrefix(path, "test_") {
		t.Errorf("search_path is %q, %v", path, err)
	}

	asAdmin(t, s, "ALTER ROLE waybill SET synchronous_commit TO off")
	_, err = connectTo(t, url, &access{})
	wantKind(t, err, store.ErrUnsynced, "synchronous_commit is off")
	if _, err := connectTo(t, url, &access{reads: true}); err != nil {
		t.Error(err)
	}
	asAdmin(t, s, "ALTER ROLE waybill RESET ALL")
	asAdmin(t, s, "ALTER ROLE waybill SET default_transaction_read_only TO on")
	_, err = connectTo(t, url, &access{})
	wantKind(t, err, store.ErrReadOnly, "default_transaction_read_only")
	asAdmin(t, s, "ALTER ROLE waybill RESET ALL")
	if err := s.Configure(t.Context(), "fsync=off"); err != nil {
		t.Fatal(err)
	}
	_, err = connectTo(t, url, &access{})
	wantKind(t, err, store.ErrUnsynced, "fsync is off")
}

func TestServersThatRefuse(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t, "listen_addresses='127.0.0.1'", "password_encryption=scram-sha-256") // the default from 14
	if !ok {
		return
	}
	at := "postgres://waybill@127.0.0.1:" + strconv.Itoa(s.Port)
	url := at + "/waybill"
	asAdmin(t, s, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	asAdmin(t, s, "ALTER ROLE waybill PASSWORD 'right'")
	asAdmin(t, s, "ALTER ROLE waybill CONNECTION LIMIT 0")
	_, err := connectTo(t, url, &access{})
	wantKind(t, err, store.ErrNoConnections, "too many connections")
	asAdmin(t, s, "ALTER ROLE waybill CONNECTION LIMIT 10")
	_, err = connectTo(t, at+"/latin", &access{})
	wantKind(t, err, store.ErrEncoding, "LATIN1")
	_, err = connectTo(t, at+"/missing", &access{})
	wantKind(t, err, store.ErrNoDatabase, `"missing"`)
	_, err = connectTo(t, at+"/template0", &access{})
	wantKind(t, err, store.ErrUnreachable, "not currently accepting connections")

	if err := s.WriteFile("pg_hba.conf", []byte("local all all trust\nhost waybill waybill 127.0.0.1/32 scram-sha-256\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	target, err := Parse(url, ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target.config.Password = "secret"
	_, err = pgx.ConnectConfig(t.Context(), (&access{target: target}).config())
	wantKind(t, fail(target.Place(), "open", err), store.ErrLogin, "password authentication failed")
	target.config.Password = "right"
	conn, err := pgx.ConnectConfig(t.Context(), (&access{target: target}).config())
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
	wantKind(t, fail(target.Place(), "read", err), store.ErrUnreachable)
	if !breaks(err) || !canRetry(err) {
		t.Errorf("%v: breaks %v, again %v", err, breaks(err), canRetry(err))
	}
	_, err = connectTo(t, at+"/postgres", &access{})
	wantKind(t, err, store.ErrLogin, "pg_hba.conf")

	// Whoever listens in place of the server may ask for the password itself.
	if err := s.WriteFile("pg_hba.conf", []byte("local all all trust\nhost waybill waybill 127.0.0.1/32 password\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	_, err = pgx.ConnectConfig(t.Context(), (&access{target: target}).config())
	wantKind(t, fail(target.Place(), "open", err), store.ErrLogin, "server requested password authentication")

	if err := s.Stop(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	_, err = connectTo(t, url, &access{})
	wantKind(t, err, store.ErrUnreachable, "connection refused")
}

// TestStandbyIsPassedOver connects to the first host that can write, or to any for
// reading.
func TestStandbyIsPassedOver(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t, "listen_addresses='127.0.0.1'")
	if !ok {
		return
	}
	primary := "postgres://waybill@127.0.0.1:" + strconv.Itoa(s.Port) + "/waybill"
	made, err := openAt(t, primary, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.LowerBatchLimit(t.Context(), ledger.Async, 7); err != nil {
		t.Fatal(err)
	}
	standby, err := s.Standby(t.Context(), "listen_addresses='127.0.0.1'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	}()
	alone := "postgres://waybill@127.0.0.1:" + strconv.Itoa(standby.Port) + "/waybill"
	_, err = connectTo(t, alone, &access{})
	wantKind(t, err, store.ErrReadOnly, "standby")
	both := "postgres://waybill@127.0.0.1:" + strconv.Itoa(standby.Port) + ",127.0.0.1:" + strconv.Itoa(s.Port) + "/waybill"
	for a, want := range map[*access]bool{{}: false, {reads: true}: true} {
		conn, err := connectTo(t, both, a)
		if err != nil {
			t.Fatal(err)
		}
		var is bool
		if err := conn.QueryRow(t.Context(), "SELECT pg_is_in_recovery()").Scan(&is); err != nil || is != want {
			t.Errorf("reads %v: standby %v, %v; want %v", a.reads, is, err, want)
		}
	}
	for _, url := range []string{alone, both} {
		if url == both {
			if err := s.Stop(t.Context(), "immediate"); err != nil {
				t.Fatal(err)
			}
		}
		db, err := openAt(t, url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantKind(t, db.Writable(), store.ErrReadOnly, "standby")
		if _, err := db.Account(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestAnOldServer speaks to what says that it is PostgreSQL 12.
func TestAnOldServer(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1000))
		// AuthenticationOk, ParameterStatus, ReadyForQuery.
		status := "server_version\x0012.22\x00"
		_, _ = io.WriteString(conn, "R\x00\x00\x00\x08\x00\x00\x00\x00"+"S\x00\x00\x00"+string(rune(4+len(status)))+status+"Z\x00\x00\x00\x05I")
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, err = connectTo(t, "postgres://ops@"+listener.Addr().String()+"/d?sslmode=disable", &access{})
	wantKind(t, err, store.ErrServerTooOld, "PostgreSQL 12.22")
}

func TestSilentServer(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = connectTo(t, "postgres://ops@"+listener.Addr().String()+"/d?sslmode=disable&connect_timeout=1", &access{})
	wantKind(t, err, store.ErrUnreachable, "no answer in time")
}

// authority issues certificates for tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // its certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{key: newKey(t), file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	write(t, a.file, string(a.sign(t, a.cert, &a.key.PublicKey)), 0o600)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a authority) sign(t *testing.T, cert *x509.Certificate, public *ecdsa.PublicKey) []byte {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, cert, a.cert, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
}

// certify gives the server a certificate for a name and an address.
func (a authority) certify(t *testing.T, s *pgtest.Server, name, address string) {
	t.Helper()
	key := newKey(t)
	cert := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP(address)},
	}, &key.PublicKey)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"server.crt": cert, "server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := s.WriteFile(name, content); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t, "listen_addresses='127.0.0.1'")
	if !ok {
		return
	}
	ours, others := newAuthority(t), newAuthority(t)
	at := "postgres://waybill@127.0.0.1:" + strconv.Itoa(s.Port) + "/waybill?sslmode=verify-full&sslrootcert="
	_, err := connectTo(t, at+ours.file, &access{})
	wantKind(t, err, store.ErrNoTLS, "server refused TLS connection")

	ours.certify(t, s, "localhost", "127.0.0.1")
	if err := s.Configure(t.Context(), "ssl=on"); err != nil {
		t.Fatal(err)
	}
	conn, err := connectTo(t, at+ours.file, &access{})
	if err != nil {
		t.Fatal(err)
	}
	var encrypted bool
	if err := conn.QueryRow(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&encrypted); err != nil || !encrypted {
		t.Errorf("encrypted: %v, %v", encrypted, err)
	}
	_, err = connectTo(t, at+others.file, &access{})
	wantKind(t, err, store.ErrNoTLS, "certificate signed by unknown authority")

	ours.certify(t, s, "db.example", "127.0.0.2")
	if err := s.Restart(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	_, err = connectTo(t, at+ours.file, &access{})
	wantKind(t, err, store.ErrNoTLS, "127.0.0.1")
	_, err = connectTo(t, strings.Replace(at, "127.0.0.1", "localhost", 1)+ours.file, &access{})
	wantKind(t, err, store.ErrNoTLS, "localhost")
}
