package doctor

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/term"
)

// noHost is no name that a resolver is asked for.
var noHost = strings.Repeat("a", 64) + ".invalid"

// TestMain gives the process a proxy, which is read from the environment once. It
// answers requests and refuses connections.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	for name, value := range map[string]string{"HTTP_PROXY": proxy.URL, "HTTPS_PROXY": proxy.URL, "NO_PROXY": ".invalid"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

// scene is what a doctor meets.
type scene struct {
	t     *testing.T
	home  string
	env   []string
	args  []string
	facts term.Facts
	alter func(*examination)
}

func (s *scene) path(name string) string { return filepath.Join(s.home, name) }

// write makes a file below the home folder.
func (s *scene) write(name string, mode fs.FileMode, text string) string {
	s.t.Helper()
	path := s.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *scene) set(name, value string) { s.env = append(s.env, name+"="+value) }

// serve makes a service that answers with handle.
func (s *scene) serve(handle http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handle)
	s.t.Cleanup(server.Close)
	s.set("WAYBILL_BASE_URL", server.URL)
	s.set("WAYBILL_API_KEY", "key-of-a-test")
	return server
}

func (s *scene) serveTLS(certificate *tls.Certificate) *httptest.Server {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if certificate != nil {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	s.set("WAYBILL_BASE_URL", server.URL)
	return server
}

// trust writes a certificate into the file of authorities.
func (s *scene) trust(der []byte) {
	s.set("WAYBILL_CA_FILE", s.write("ca.pem", 0o600, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))))
}

// store makes a store, which stays open.
func (s *scene) store() *store.DB {
	s.t.Helper()
	path := s.path("w.db")
	s.set("WAYBILL_STORE", path)
	db, err := sqlite.Open(s.t.Context(), path, store.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// alterStore makes a store that SQL has changed.
func (s *scene) alterStore(text string) {
	s.t.Helper()
	if err := s.store().Close(); err != nil {
		s.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", s.path("w.db"))
	if err == nil {
		_, err = db.Exec(text)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// sink makes a target, to which a listener sends if listens.
func (s *scene) sink(target string, listens bool) {
	s.t.Helper()
	db := s.store()
	u, err := forward.ParseURL(target)
	if err != nil {
		s.t.Fatal(err)
	}
	sink, err := db.OpenSink(s.t.Context(), forward.Target{URL: u}.Key(), nil)
	if err == nil && listens {
		err = db.AddListener(s.t.Context(), inbox.Listener{URL: closedPort(s.t), Host: app.Computer(), Sinks: []int64{sink.ID}})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// closedPort returns a URL of this computer where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}

// shortLived returns a certificate of its own authority that expires soon.
func shortLived(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(50 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (s *scene) factory(stdout io.Writer) *command.Factory {
	return &command.Factory{App: &app.App{
		IO:      term.New(strings.NewReader(""), stdout, io.Discard, s.facts),
		Getenv:  func(string) string { return "" },
		Keyring: keys{},
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: s.env, WorkDir: s.home, Home: s.home}
		},
	}}
}

// keys is a keyring that has every entry.
type keys struct{}

func (keys) Get(context.Context, string) (string, error) { return "key-of-the-keyring", nil }
func (keys) Set(context.Context, string, string) error   { return errors.New("not settable") }
func (keys) Delete(context.Context, string) error        { return errors.New("not settable") }

// examine runs the command of the scene and returns what it found, its exit status and
// standard output.
func (s *scene) examine() ([]finding, command.Code, string) {
	s.t.Helper()
	var stdout bytes.Buffer
	f := s.factory(&stdout)
	var all []finding
	var o options
	for i, arg := range s.args {
		switch arg {
		case "--offline":
			o.offline = true
		case "--probe":
			o.probing = true
			if i+1 < len(s.args) {
				o.ref = s.args[i+1]
			}
		}
	}
	cmd := &cobra.Command{Use: "doctor"}
	command.GlobalFlags(cmd.Flags())
	cmd.SetContext(s.t.Context())
	err := f.RunAlways(func(ctx context.Context, c *command.Call, _ []string, broken error) error {
		x := newExamination(c, broken, o)
		if s.alter != nil {
			s.alter(x)
		}
		var err error
		if all, err = x.run(ctx); err != nil {
			return err
		}
		return errors.Join(printAll(c, all), problems(all))
	})(cmd, nil)
	return all, f.Finish(s.t.Context(), err), stdout.String()
}

func jsonService(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, `{"message":"x"}`)
	}
}

// scenes has each kind of finding at least once.
var scenes = []struct {
	name string
	make func(*scene)
	want []*kind
}{
	{"nothing", func(*scene) {}, []*kind{configMissing, keyMissing, urlMissing, connectionUnknown, keyNotTried, storeMissing, spaceEnough, webhooksUnused, versionKnown, terminalNone}},
	{"a service", func(s *scene) { s.serve(jsonService(404)) }, []*kind{configNotNeeded, valuesSet, keyFound, urlFound, connected, clockRight, keyAccepted}},
	{"a file", func(s *scene) { s.write(".config/waybill/config.yaml", 0o600, "rate: 2\n") }, []*kind{configFound, valuesSet}},
	{"a file that others may read", func(s *scene) { s.write(".config/waybill/config.yaml", 0o644, "rate: 2\n") }, []*kind{configFound, configReadable}},
	{"a broken file", func(s *scene) { s.write(".config/waybill/config.yaml", 0o600, "ratte: 2\n") }, []*kind{configBroken, settingsUnusable, versionKnown}},
	{"a secret that others may read in a file", func(s *scene) {
		s.write(".config/waybill/config.yaml", 0o644, "api_key: k1\n")
	}, []*kind{configBroken, settingsUnusable}},
	{"a broken variable", func(s *scene) { s.set("WAYBILL_RATE", "x") }, []*kind{configBroken}},
	{"a variable that is none", func(s *scene) { s.set("WAYBILL_RATTE", "2") }, []*kind{unknownVariable}},
	{"no key in its file", func(s *scene) { s.set("WAYBILL_API_KEY_FILE", s.write("key", 0o600, "")) }, []*kind{keyUnusable}},
	{"a key in the keyring", func(s *scene) { s.set("WAYBILL_API_KEY_KEYRING", "entry") }, []*kind{keyFound}},
	{"a key that others may read", func(s *scene) { s.set("WAYBILL_API_KEY_FILE", s.write("key", 0o644, "k1\n")) }, []*kind{keyReadable}},
	{"http through a proxy", func(s *scene) {
		s.set("WAYBILL_BASE_URL", "http://service.example")
		s.set("WAYBILL_INSECURE_HTTP", "true")
	}, []*kind{urlUnencrypted, proxyUsed, connected}},
	{"a proxy that refuses", func(s *scene) { s.set("WAYBILL_BASE_URL", "https://service.example") }, []*kind{proxyUsed, proxyFailed}},
	{"an unknown host", func(s *scene) {
		s.set("WAYBILL_BASE_URL", "https://"+noHost)
		s.set("WAYBILL_API_KEY", "k1")
	}, []*kind{hostUnknown, keyNotTried}},
	{"a closed port", func(s *scene) { s.set("WAYBILL_BASE_URL", closedPort(s.t)) }, []*kind{connectionFailed}},
	{"a certificate", func(s *scene) { s.trust(s.serveTLS(nil).Certificate().Raw) }, []*kind{connected, certificateValid}},
	{"a certificate that expires", func(s *scene) {
		made := shortLived(s.t)
		s.serveTLS(&made)
		s.trust(made.Certificate[0])
	}, []*kind{certificateExpiring}},
	{"a certificate of an unknown authority", func(s *scene) { s.serveTLS(nil) }, []*kind{certificateUntrusted}},
	{"a certificate of another host", func(s *scene) {
		server := s.serveTLS(nil)
		s.trust(server.Certificate().Raw)
		s.set("WAYBILL_BASE_URL", strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	}, []*kind{certificateInvalid}},
	{"no authorities", func(s *scene) {
		s.serve(jsonService(404))
		s.set("WAYBILL_CA_FILE", s.path("none.pem"))
	}, []*kind{authoritiesUnusable, connectionUnknown, keyNotTried}},
	{"another time", func(s *scene) {
		s.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(-5*time.Minute).UTC().Format(http.TimeFormat))
		})
	}, []*kind{clockWrong}},
	{"no time", func(s *scene) { s.serve(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }) }, []*kind{clockUnknown}},
	{"a refused key", func(s *scene) { s.serve(jsonService(401)) }, []*kind{connected, keyRefused}},
	{"a redirect", func(s *scene) { s.serve(jsonService(302)) }, []*kind{responseUnexpected}},
	{"a page", func(s *scene) { s.serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }) }, []*kind{responseUnexpected}},
	{"trouble", func(s *scene) { s.serve(jsonService(503)) }, []*kind{serviceInTrouble}},
	{"offline", func(s *scene) {
		s.serve(jsonService(404))
		s.set("WAYBILL_STORE", "postgres://u@"+noHost+"/db")
		s.args = []string{"--offline"}
	}, []*kind{connectionUnknown, keyNotTried, storeNotTried}},

	{"a store", func(s *scene) { s.store() }, []*kind{storeFound, storeSound, spaceEnough, listenerNone, responsesUnproven}},
	{"what is proven", func(s *scene) {
		s.set("WAYBILL_ACCOUNT", "shop")
		db := s.store()
		for _, state := range []ledger.State{ledger.Accepted, ledger.Pending, ledger.Unknown} {
			if _, err := db.Prove(s.t.Context(), ledger.Proof{Shape: string(state), State: state, Proven: time.Now(), Run: 1}, state, nil); err != nil {
				s.t.Fatal(err)
			}
		}
	}, []*kind{responsesTaken, responsesNotTaken, responsesDoubtful}},
	{"no place for a store", func(s *scene) { s.alter = func(x *examination) { x.call.Config.Store = "" } }, []*kind{storeWithoutPlace}},
	{"another file", func(s *scene) { s.set("WAYBILL_STORE", s.write("w.db", 0o600, strings.Repeat("no database", 999))) }, []*kind{storeUnusable}},
	{"no server", func(s *scene) { s.set("WAYBILL_STORE", "postgres://u@"+noHost+"/db") }, []*kind{storeUnusable}},
	{"a store of a development build", func(s *scene) { s.alterStore("DELETE FROM counters WHERE name = 'schema'") }, []*kind{storeUnusable}},
	{"a newer store", func(s *scene) { s.alterStore("PRAGMA user_version = 3000") }, []*kind{storeUnusable}},
	{"a damaged store", func(s *scene) { s.alterStore("UPDATE counters SET value = -1 WHERE name = 'run'") }, []*kind{storeDamaged}},
	{"a store that others may read", func(s *scene) {
		s.store()
		if err := os.Chmod(s.path("w.db"), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}, []*kind{storeReadable, storeFound}},
	{"a store that can't be written", func(s *scene) {
		s.store()
		s.alter = func(x *examination) { x.writable = func(string) bool { return false } }
	}, []*kind{storeReadOnly, storeFound}},
	{"a folder that can't be written", func(s *scene) {
		s.alter = func(x *examination) { x.writable = func(string) bool { return false } }
	}, []*kind{storeUnusable}},
	{"a large store", func(s *scene) {
		s.store()
		s.alter = func(x *examination) { x.read = time.Nanosecond }
	}, []*kind{storeFound, storeNotRead}},
	{"little space", func(s *scene) { s.alter = withFree(400 << 20) }, []*kind{spaceLow}},
	{"no space", func(s *scene) { s.alter = withFree(5 << 20) }, []*kind{spaceGone}},

	{"a secret without a scheme", func(s *scene) { s.set("WAYBILL_WEBHOOK_SECRET", "s1") }, []*kind{schemeMissing}},
	{"a scheme", func(s *scene) {
		s.set("WAYBILL_WEBHOOK_SECRET", "s1")
		s.set("WAYBILL_WEBHOOK_SCHEME", "hmac-body-hex")
	}, []*kind{schemePinned}},
	{"a scheme without a secret", func(s *scene) { s.set("WAYBILL_WEBHOOK_SCHEME", "hmac-body-hex") }, []*kind{schemeUnusable}},
	{"no verifying", func(s *scene) {
		s.set("WAYBILL_WEBHOOK_SECRET", "s1")
		s.set("WAYBILL_WEBHOOK_VERIFY", "off")
	}, []*kind{verifyingOff}},
	{"observing", func(s *scene) {
		s.set("WAYBILL_WEBHOOK_SECRET", "s1")
		s.set("WAYBILL_WEBHOOK_SCHEME", "hmac-body-hex")
		s.set("WAYBILL_WEBHOOK_VERIFY", "observe")
	}, []*kind{verifyingOff}},
	{"a secret that others may read", func(s *scene) { s.set("WAYBILL_WEBHOOK_SECRETS", "file:"+s.write("secret", 0o644, "s1\n")) }, []*kind{secretReadable}},

	{"a listener", func(s *scene) {
		server := httptest.NewServer(http.NotFoundHandler())
		s.t.Cleanup(server.Close)
		s.listens(inbox.Listener{URL: server.URL, Host: app.Computer()})
	}, []*kind{listenerAnswers}},
	{"a listener that is silent", func(s *scene) { s.listens(inbox.Listener{URL: closedPort(s.t), Host: app.Computer()}) }, []*kind{listenerSilent}},
	{"a listener elsewhere", func(s *scene) { s.listens(inbox.Listener{URL: "http://127.0.0.1:1", Host: "other/1"}) }, []*kind{listenerElsewhere}},
	{"a target", func(s *scene) {
		server := httptest.NewServer(http.NotFoundHandler())
		s.t.Cleanup(server.Close)
		s.sink(server.URL, true)
	}, []*kind{targetReachable}},
	{"a target that is silent", func(s *scene) { s.sink(closedPort(s.t), true) }, []*kind{targetUnreachable}},
	{"a target without a listener", func(s *scene) { s.sink(closedPort(s.t), false) }, []*kind{targetUnused}},
	{"a target over http", func(s *scene) { s.sink("http://"+noHost, true) }, []*kind{targetUnencrypted, targetUnreachable}},
	{"a target that is forbidden", func(s *scene) { s.sink("http://169.254.169.254/", false) }, []*kind{targetNotTried}},

	{"a probe", func(s *scene) { s.probe("trackingNumber", 404, `{"message":"x"}`, "K") }, []*kind{absenceRecognised, numberFound}},
	{"a probe of other settings", func(s *scene) { s.probe("number", 200, `{"message":"no data"}`, "K") }, []*kind{absenceUnset, numberUnset}},
	{"a probe of a page", func(s *scene) { s.probe("", 200, "<html>", "K") }, []*kind{absenceUnknown, numberUnknown}},
	{"a probe without a tracking", func(s *scene) { s.probe("number", 200, `{"message":"no data"}`, "gone") }, []*kind{absenceUnproven, numberUntried}},
	{"a probe without a store", func(s *scene) { s.probe("trackingNumber", 404, "") }, []*kind{absenceRecognised, numberUntried}},
	{"a probe without a key", func(s *scene) { s.args = []string{"--probe"} }, []*kind{probeFailed}},

	{"a terminal", func(s *scene) {
		s.facts = term.Facts{OutTerminal: true, Env: map[string]string{"LANG": "C.UTF-8"}}
	}, []*kind{terminalKnown}},
	{"an ASCII terminal", func(s *scene) { s.facts = term.Facts{OutTerminal: true, Env: map[string]string{"LANG": "C"}} }, []*kind{terminalASCII}},
	{"a service that is silent", func(s *scene) {
		end := make(chan struct{})
		s.serve(func(http.ResponseWriter, *http.Request) { <-end })
		s.t.Cleanup(func() { close(end) })
		s.alter = func(x *examination) { x.limit = 50 * time.Millisecond }
	}, []*kind{timedOut}},
}

// probe makes a service that shows the tracking N of the order K, by number if asked with
// param, and is probed with a REF.
func (s *scene) probe(param string, status int, none string, ref ...string) {
	s.serve(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("referId") == "K" || q.Get(param) == "N" {
			fmt.Fprint(w, shown)
			return
		}
		w.WriteHeader(status)
		fmt.Fprint(w, none)
	})
	s.args = append([]string{"--probe"}, ref...)
}

func withFree(n int64) func(*examination) {
	return func(x *examination) { x.free = func(string) (int64, bool) { return n, true } }
}

func (s *scene) listens(l inbox.Listener) {
	s.t.Helper()
	if err := s.store().AddListener(s.t.Context(), l); err != nil {
		s.t.Fatal(err)
	}
}

// Every kind of finding is made by a scene; what no scene can make is made of what the
// check would have got.
func TestFindings(t *testing.T) {
	met := map[*kind]bool{}
	note := func(all []finding) {
		for _, f := range all {
			met[f.kind] = true
		}
	}
	for _, tt := range scenes {
		t.Run(tt.name, func(t *testing.T) {
			s := &scene{t: t, home: t.TempDir()}
			tt.make(s)
			all, code, _ := s.examine()
			note(all)
			var got []*kind
			worst := command.OK
			for _, f := range all {
				got = append(got, f.kind)
				if f.Status == problem {
					worst = command.Failed
				}
				if f.Check == "" || f.Message == "" || (f.Status == warning || f.Status == problem) && f.Hint == "" && f.NextCommand == "" {
					t.Errorf("%+v: want a check, a message and a remedy", f)
				}
			}
			for _, k := range tt.want {
				if !slices.Contains(got, k) {
					t.Errorf("no %+v: %+v", *k, all)
				}
			}
			if code != worst {
				t.Errorf("exit status %d; want %d", code, worst)
			}
		})
	}
	note(settingFindings("store", []store.Setting{{Name: "fsync", Value: "off", Warning: "turn it on"}}))
	note(contactFindings(api.Contact{Err: errors.New("invalid proxy address")}))
	source, err := os.ReadFile("finding.go")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for k := range met {
		made[k.check]++
	}
	listed := map[string]int{}
	for _, k := range regexp.MustCompile(`newKind\("([a-z-]*)", `).FindAllSubmatch(source, -1) {
		listed[string(k[1])]++
	}
	if diff := cmp.Diff(listed, made); diff != "" {
		t.Errorf("kinds by check (-listed +made by a test)\n%s", diff)
	}
}

// Permissions that make a file unusable are one finding, which has the command.
func TestAFileThatOthersMayReadIsOneFinding(t *testing.T) {
	s := &scene{t: t, home: t.TempDir()}
	path := s.write(".config/waybill/config.yaml", 0o644, "api_key: k1\n")
	all, _, _ := s.examine()
	var about []finding
	for _, f := range all {
		if f.Check == "configuration" {
			about = append(about, f)
		}
	}
	if len(about) != 1 || about[0].kind != configBroken || about[0].NextCommand != "chmod 600 "+path || about[0].Hint != "" {
		t.Errorf("got %+v", about)
	}
}

// The result is an array in JSON, and the next command has the flags of this one.
func TestFindingsAsJSON(t *testing.T) {
	s := &scene{t: t, home: t.TempDir(), env: []string{"WAYBILL_OUTPUT=json"}}
	_, code, stdout := s.examine()
	var all []map[string]any
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != command.Failed {
		t.Fatalf("%v, status %d: %s", err, code, stdout)
	}
	for _, f := range all {
		for _, name := range []string{"check", "status", "message", "hint", "nextCommand"} {
			if _, ok := f[name].(string); !ok {
				t.Errorf("%v: no %s", f, name)
			}
		}
	}
	if got := all[0]["nextCommand"]; got != "waybill init" {
		t.Errorf("next command %v", got)
	}
}

// On a terminal nothing but a command or a word is wider than it.
func TestFindingsFitATerminal(t *testing.T) {
	var b bytes.Buffer
	w := term.New(strings.NewReader(""), &b, io.Discard, term.Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": "60", "NO_COLOR": "1"}}).Out
	f := found(keyMissing, "%s", strings.TrimSpace(strings.Repeat("word ", 20)))
	if err := printFinding(w, f); err != nil {
		t.Fatal(err)
	}
	const want = `problem      api-key        word word word word word word
                            word word word word word word
                            word word word word word word
                            word word
                            hint: the key is in the portal
                            under Settings, API & Webhooks
                            next: waybill auth login
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
