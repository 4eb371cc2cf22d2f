package cli_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/term"
)

// canary is a secret that is looked for in all that the program writes.
type canary struct {
	what, secret string
	forms        []string
}

// newCanary makes a secret that is different in every encoding.
func newCanary(what string) canary {
	c := canary{what: what, secret: `c"n+` + what + `%&=` + rand.Text()}
	quoted, _ := json.Marshal(c.secret)
	hexed := hex.EncodeToString([]byte(c.secret))
	c.forms = []string{c.secret, string(quoted[1 : len(quoted)-1]), url.QueryEscape(c.secret), url.PathEscape(c.secret), hexed, strings.ToUpper(hexed), c.secret[len(c.secret)-20:]}
	for before := range 3 { // where it begins in a text decides what it is in base64
		b64 := base64.StdEncoding.EncodeToString([]byte("xyz"[:before] + c.secret))
		c.forms = append(c.forms, b64[8:32], strings.NewReplacer("+", "-", "/", "_").Replace(b64)[8:32])
	}
	return c
}

// in returns the form in which the canary is in text, if it is.
func (c canary) in(text []byte) (string, bool) {
	for _, form := range c.forms {
		if bytes.Contains(text, []byte(form)) {
			return form, true
		}
	}
	return "", false
}

// canaryTest is a home with secrets, and a service that echoes the key.
type canaryTest struct {
	*testing.T
	key, hook, password canary
	home, docs          string
	service, server     string // URL of the service; address of a PostgreSQL server that refuses everybody
	asked               atomic.Int64
	runs                atomic.Int64
	typed               bool // the secrets were typed
}

func (c *canaryTest) all() []canary { return []canary{c.key, c.hook, c.password} }

// check reports secrets in what was written.
func (c *canaryTest) check(where string, text []byte) {
	c.Helper()
	for _, one := range c.all() {
		if form, found := one.in(text); found {
			i := bytes.Index(text, []byte(form))
			c.Errorf("%s: the %s, as %s, in …%s…", where, one.what, form, text[max(i-120, 0):min(i+len(form)+60, len(text))])
		}
	}
}

// echo answers as a sandbox, and repeats the key wherever an answer has room for it.
func (c *canaryTest) echo() http.Handler {
	box, err := sandbox.New(sandbox.Config{Key: c.key.secret, Seed: 1})
	if err != nil {
		c.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		if key == c.key.secret {
			c.asked.Add(1)
		}
		if key == "" {
			key = "nothing"
		}
		quoted, _ := json.Marshal([]string{key, base64.StdEncoding.EncodeToString([]byte("user:" + key)), url.QueryEscape(key), hex.EncodeToString([]byte(key))})
		mode, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		h := w.Header()
		for _, name := range []string{"X-Echo", "Set-Cookie", "Location", "Server", "Retry-After"} {
			h.Set(name, "v="+key)
		}
		h.Set("X-Basic", "Basic "+base64.StdEncoding.EncodeToString([]byte("u:"+key)))
		switch mode {
		case "refused":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"message":"wrong keys","errors":%s,"message":%s}`, quoted, quoted[1:bytes.IndexByte(quoted, ',')])
		case "redirect":
			w.WriteHeader(http.StatusFound)
		case "page":
			fmt.Fprintf(w, "<html>%s %s", key, quoted)
		case "failed":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `{"error":%s}`, quoted)
		default:
			r.URL.Path = "/" + rest
			recorded := httptest.NewRecorder()
			box.ServeHTTP(recorded, r)
			body := recorded.Body.Bytes()
			if bytes.HasPrefix(body, []byte("{")) {
				sep := ","
				if bytes.HasPrefix(body, []byte("{}")) {
					sep = ""
				}
				body = append([]byte(`{"echo":`+string(quoted)+sep), body[1:]...)
			}
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(body)
		}
	})
}

// refuseAll is a PostgreSQL server that asks for the password in clear, and repeats it.
func (c *canaryTest) refuseAll(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			message := func(header int) []byte {
				head := make([]byte, header+4)
				if _, err := io.ReadFull(conn, head); err != nil {
					return nil
				}
				body := make([]byte, binary.BigEndian.Uint32(head[header:])-4)
				_, _ = io.ReadFull(conn, body)
				return body
			}
			if first := message(0); len(first) == 4 { // it asks for TLS
				_, _ = conn.Write([]byte("N"))
				message(0)
			}
			_, _ = conn.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03"))
			password := strings.TrimSuffix(string(message(1)), "\x00")
			fields := "SFATAL\x00VFATAL\x00C28P01\x00Mno login with " + password + "\x00D" + base64.StdEncoding.EncodeToString([]byte(password)) + "\x00\x00"
			_, _ = conn.Write(append(binary.BigEndian.AppendUint32([]byte("E"), uint32(len(fields)+4)), fields...))
		}()
	}
}

// ways are how secrets are set: each returns the environment and standard input. All
// files are below the folder of secrets.
func (c *canaryTest) ways() []func() (env []string, stdin string) {
	file := func(name, text string) string {
		path := filepath.Join(c.home, "secrets", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			c.Fatal(err)
		}
		return path
	}
	passwordFile := "WAYBILL_STORE_PASSWORD_FILE=" + file("password", c.password.secret+"\n")
	key, hook := file("key", c.key.secret+"\n"), file("hook", c.hook.secret+"\n")
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	settings := file("config.yaml", "api_key: "+quote(c.key.secret)+"\nwebhook:\n  secret: "+quote(c.hook.secret)+"\n")
	return []func() ([]string, string){
		func() ([]string, string) {
			return []string{"WAYBILL_API_KEY=" + c.key.secret, "WAYBILL_WEBHOOK_SECRET=" + c.hook.secret, passwordFile}, ""
		},
		func() ([]string, string) {
			return []string{"WAYBILL_API_KEY_FILE=" + key, "WAYBILL_WEBHOOK_SECRETS=file:" + hook + ",env:OTHER", "OTHER=" + c.hook.secret, passwordFile}, ""
		},
		func() ([]string, string) {
			return []string{"WAYBILL_API_KEY_FILE=-", "WAYBILL_WEBHOOK_SECRET=" + c.hook.secret}, c.key.secret + "\n"
		},
		func() ([]string, string) { return []string{"WAYBILL_CONFIG=" + settings, passwordFile}, "" },
		func() ([]string, string) {
			return []string{"WAYBILL_API_KEY_KEYRING=k", "WAYBILL_WEBHOOK_SECRET=" + c.hook.secret, passwordFile}, ""
		},
	}
}

// keyringOf is a keyring with one secret.
type keyringOf struct{ secret string }

func (k keyringOf) Get(context.Context, string) (string, error) { return k.secret, nil }
func (keyringOf) Set(context.Context, string, string) error     { return nil }
func (keyringOf) Delete(context.Context, string) error          { return nil }

// stopper ends a command that serves once it says so, and keeps what is written.
type stopper struct {
	bytes.Buffer
	ready func()
}

func (s *stopper) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if bytes.Contains(p, []byte("ready")) || bytes.Contains(p, []byte("istening")) {
		s.ready()
	}
	return n, err
}

// run runs a command line in a folder and checks what it prints. What serves ends once
// it is ready.
func (c *canaryTest) run(folder string, way func() ([]string, string), env []string, args ...string) string {
	c.Helper()
	return c.runUntil(func() {}, folder, way, env, args...)
}

// runUntil is run for what serves: it ends after what is done once it is ready.
func (c *canaryTest) runUntil(do func(), folder string, way func() ([]string, string), env []string, args ...string) string {
	c.Helper()
	c.runs.Add(1)
	set, stdin := way()
	set = append(set, "WAYBILL_BASE_URL="+c.service+"/plain", "WAYBILL_STORE="+filepath.Join(folder, "w.db"), "WAYBILL_TIMEOUT=50ms", "WAYBILL_REQUEST_TIMEOUT=5s",
		"WAYBILL_WEBHOOK_SCHEME=hmac-body-hex", "WAYBILL_LISTEN_ADDR=127.0.0.1:0")
	set = append(set, env...)
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	ready := sync.OnceFunc(func() {
		go func() {
			do()
			cancel()
		}()
	})
	out, errs := &stopper{ready: ready}, &stopper{ready: ready}
	a := &app.App{
		IO: term.New(strings.NewReader(stdin), out, errs, term.Facts{}),
		Getenv: func(name string) string {
			for _, e := range slices.Backward(set) {
				if value, ok := strings.CutPrefix(e, name+"="); ok {
					return value
				}
			}
			return ""
		},
		Keyring: keyringOf{c.key.secret},
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: set, WorkDir: folder, Home: folder}
		},
	}
	began := time.Now()
	code := cli.Run(ctx, a, args)
	if took := time.Since(began); took > 2*time.Second {
		c.Logf("%q took %s", args, took)
	}
	where := fmt.Sprintf("waybill %s (%v, exit %d)", strings.Join(args, " "), env, code)
	if !c.typed {
		c.check(where+" stdout", out.Bytes())
	}
	c.check(where+" stderr", errs.Bytes())
	return out.String() + errs.String()
}

// checkFolder reports secrets in files: as they are, in ZIP files, and in what stores
// have compressed.
func (c *canaryTest) checkFolder(where, folder string) {
	c.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name := where + ": " + strings.TrimPrefix(path, folder)
		if filepath.Base(path) == "config.yaml" && info.Mode().Perm() == 0o600 {
			return nil // where secrets may be
		}
		c.check(name, data)
		if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
			for _, f := range z.File {
				r, err := f.Open()
				if err != nil {
					return err
				}
				part, err := io.ReadAll(r)
				if err != nil {
					return err
				}
				c.check(name+" "+f.Name, part)
			}
		}
		if strings.HasSuffix(path, ".db") {
			c.checkStore(name, path)
		}
		return nil
	})
	if err != nil {
		c.Error(err)
	}
}

// checkStore reports secrets in the values of a store.
func (c *canaryTest) checkStore(name, path string) {
	c.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		c.Fatal(err)
	}
	defer db.Close()
	for _, table := range columnOf(c, db, "SELECT name FROM sqlite_master WHERE type = 'table'") {
		for _, column := range columnOf(c, db, "SELECT name FROM pragma_table_info('"+string(table)+"')") {
			for _, value := range columnOf(c, db, fmt.Sprintf("SELECT CAST(%[1]s AS BLOB) FROM %[2]s WHERE %[1]s IS NOT NULL", column, table)) {
				if r, err := gzip.NewReader(bytes.NewReader(value)); err == nil {
					value, _ = io.ReadAll(r)
				}
				c.check(fmt.Sprintf("%s, %s.%s", name, table, column), value)
			}
		}
	}
}

func columnOf(c *canaryTest, db *sql.DB, query string) (all [][]byte) {
	rows, err := db.QueryContext(c.Context(), query)
	if err != nil {
		return nil // what another program encrypted, or no table
	}
	defer rows.Close()
	for rows.Next() {
		var value []byte
		if err := rows.Scan(&value); err != nil {
			c.Fatal(err)
		}
		all = append(all, value)
	}
	if err := rows.Err(); err != nil {
		c.Error(err)
	}
	return all
}

// argumentsOf returns arguments that a command may take.
func argumentsOf(cmd *cobra.Command) []string {
	known := map[string]string{"FILE": "orders.csv", "REF": "ORD-1", "PATH": "/api/v1/routers/detail?referId=ORD-1", "METHOD": "GET", "KEY": "rate", "VALUE": "3"}
	var args []string
	for _, name := range command.Arguments(cmd) {
		if value, ok := known[strings.TrimRight(name, ".…")]; ok {
			args = append(args, value)
		} else if name != "|" {
			args = append(args, "1")
		}
	}
	return args
}

// flagsOf returns flags that make a command do more, or end.
func flagsOf(cmd *cobra.Command) []string {
	var flags []string
	for name, values := range map[string][]string{
		"addr": {"--addr", "127.0.0.1:0"}, "yes": {"--yes"}, "probe": {"--probe"}, "refer-id": {"--refer-id", "ORD-1"}, "tracking-number": {"--tracking-number", "1Z999AA10123456784"},
	} {
		if f := cmd.Flags().Lookup(name); f != nil {
			flags = append(flags, values...)
		}
	}
	return flags
}

// The secrets are in no output and in no file, but the one that they were set in, and
// in the requests.
func TestSecretsStayWhereTheyAreSet(t *testing.T) {
	c := &canaryTest{T: t, key: newCanary("key"), hook: newCanary("hook"), password: newCanary("password"), home: t.TempDir()}
	service := httptest.NewServer(c.echo())
	defer service.Close()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go c.refuseAll(server)
	c.service, c.server = service.URL, server.Addr().String()
	t.Setenv("PGPASSWORD", c.password.secret)
	ways := c.ways()
	prepared := c.prepare(ways[0])
	leaves := 0
	walk(tree(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || cmd.CommandPath() == "waybill completion" {
			return
		}
		leaves++
		folder := filepath.Join(c.home, fmt.Sprint("home", leaves))
		if err := os.CopyFS(folder, os.DirFS(prepared)); err != nil {
			t.Fatal(err)
		}
		t.Chdir(folder)
		c.walkCommand(cmd, folder, ways)
		c.checkFolder(cmd.CommandPath(), folder)
		if cmd.Name() != "demo" {
			c.typeSecrets(cmd, folder, ways[0])
		}
	})
	c.setUp()
	if leaves < 40 || c.asked.Load() < 20 {
		t.Errorf("%d commands sent %d requests with the key; want more", leaves, c.asked.Load())
	}
	t.Logf("%d commands in %d runs sent %d requests", leaves, c.runs.Load(), c.asked.Load())
}

// prepare makes a home with a run, answers and deliveries.
func (c *canaryTest) prepare(way func() ([]string, string)) string {
	folder := filepath.Join(c.home, "prepared")
	if err := os.Mkdir(folder, 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "orders.csv"), []byte("referId,rawTrackingNumber\nORD-1,1Z999AA10123456784\nORD-2,1Z999AA10123456785\n"), 0o600); err != nil {
		c.Fatal(err)
	}
	c.Chdir(folder)
	if text := c.run(folder, way, nil, "create", "orders.csv", "--debug", "--skip-proof", "--timeout", "30s"); !strings.Contains(text, "2 rows") || !strings.Contains(text, "***") {
		c.Errorf("create: %s", text)
	}
	c.run(folder, way, nil, "show", "ORD-1", "ORD-2")
	target := httptest.NewServer(http.NotFoundHandler())
	defer target.Close()
	if text := c.runUntil(func() {
		for _, flags := range [][]string{{"--count", "2"}, {"--scheme", "hmac-body-base64"}, {"--target-header", "X-Token=env:WAYBILL_API_KEY", "--to", target.URL}} {
			c.run(folder, way, nil, append([]string{"events", "send", "--debug", "-v", "--timeout", "10s"}, flags...)...)
		}
	}, folder, way, nil, "listen", "--debug", "-v", "--timeout", "15s", "--forward-to", target.URL); strings.Count(text, "verified: made up; yes") != 2 {
		c.Errorf("listen: %s", text)
	}
	return folder
}

// setUp writes the secrets into the configuration file, where they are from then on.
func (c *canaryTest) setUp() {
	folder := filepath.Join(c.home, "setup")
	if err := os.Mkdir(folder, 0o700); err != nil {
		c.Fatal(err)
	}
	c.Chdir(folder)
	way := func() ([]string, string) { return nil, c.key.secret + "\n" }
	c.run(folder, way, nil, "init", "--base-url", c.service+"/plain", "--api-key-file", "-", "--debug", "-v")
	c.run(folder, func() ([]string, string) { return nil, c.hook.secret + "\n" }, nil, "config", "set", "webhook.secret", "-")
	for _, line := range []string{"auth status", "auth login --api-key-file - --debug", "config list", "config get api_key -o json", "config profiles", "doctor", "show ORD-1 --debug", "auth logout", "auth login --api-key-file -", "doctor --bundle found.zip"} {
		c.run(folder, way, nil, strings.Fields(line)...)
	}
	path := filepath.Join(folder, ".config", "waybill", "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(c.key.secret[4:])) || !bytes.Contains(text, []byte(c.hook.secret[4:])) {
		c.Errorf("%v: the secrets are not in %s: %s", err, path, text)
	}
	c.checkFolder("setup", folder)
}

// walkCommand runs a command in many ways.
func (c *canaryTest) walkCommand(cmd *cobra.Command, folder string, ways []func() ([]string, string)) {
	line, args, flags := words(cmd), argumentsOf(cmd), flagsOf(cmd)
	full := slices.Concat(line, flags, args)
	if cmd.Name() == "demo" {
		c.run(folder, ways[0], nil, line...)
		return
	}
	for i, way := range ways {
		c.run(folder, way, nil, append(slices.Clone(full), "--debug")...)
		c.run(folder, way, []string{"WAYBILL_BASE_URL=" + c.service + "/" + []string{"refused", "redirect", "page", "failed", "refused"}[i], "WAYBILL_ACCOUNT=a"}, append(slices.Clone(full), "-v")...)
	}
	c.run(folder, ways[0], nil, append(slices.Clone(full), "-o", "json")...)
	c.run(folder, ways[1], nil, append(slices.Clone(full), "-o", "csv")...)
	c.run(folder, ways[3], nil, append(slices.Clone(full), "-o", "xlsx", "--out", "result.xlsx")...)
	c.run(folder, ways[3], nil, line...)
	c.run(folder, ways[0], []string{"WAYBILL_STORE=postgres://u@" + c.server + "/db?sslmode=disable"}, full...)
	c.run(folder, ways[2], []string{"WAYBILL_STORE=postgres://u@" + c.server + "/db?sslmode=disable"}, append(slices.Clone(full), "--debug", "-o", "json")...)
}

// typeSecrets types the key in wrong places. Where it is not refused it is data: then
// files and results have it, and messages do not.
func (c *canaryTest) typeSecrets(cmd *cobra.Command, folder string, way func() ([]string, string)) {
	c.typed = true
	defer func() { c.typed = false }()
	line := words(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		c.run(folder, way, nil, append(slices.Clone(line), "--"+f.Name+"="+c.key.secret)...)
	})
	c.run(folder, way, nil, append(slices.Clone(line), "--api-key", c.key.secret)...)
	c.run(folder, way, nil, append(slices.Clone(line), c.key.secret, c.hook.secret)...)
	c.run(folder, way, nil, append(slices.Clone(line), "-x"+c.hook.secret)...)
}

// A panic prints no secret.
func TestPanicPrintsNoSecret(t *testing.T) {
	if os.Getenv("CANARY_PANIC") != "" {
		a := &app.App{
			IO:      term.New(panicReader{}, os.Stdout, os.Stderr, term.Facts{}),
			Getenv:  os.Getenv,
			Sources: config.FromOS,
		}
		cli.Run(t.Context(), a, []string{"create", "-", "--debug", "-v"})
		return
	}
	key := newCanary("key")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicPrintsNoSecret$")
	cmd.Env = append(os.Environ(), "CANARY_PANIC=1", "GOTRACEBACK=all", "WAYBILL_API_KEY="+key.secret, "WAYBILL_BASE_URL=http://127.0.0.1:1", "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=")
	text, err := cmd.CombinedOutput()
	if form, found := key.in(text); err == nil || found || !strings.Contains(string(text), "panic: ") {
		t.Errorf("%v, %s: %s", err, form, text)
	}
}

// panicReader is an input that no command can survive.
type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("the input is broken") }
