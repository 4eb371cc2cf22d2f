package doctor

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// newProber asks a service, for a second at most.
func newProber(t *testing.T, h http.HandlerFunc) prober {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	const param = "trackingNumber"
	client, err := api.New(api.Options{BaseURL: server.URL, Key: "k", Workers: 1, NumberParam: param})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return prober{service: client, gate: pace.New(1, 0), numberParam: param, patience: time.Second}
}

const shown = `{"message":"success","code":0,"error":null,"data":{"trackingNumber":"N","statusLabel":"DELIVERED"}}`

func TestProbeSuggestsWhatTellsAbsenceApart(t *testing.T) {
	tests := []struct {
		name, known, none string // answers about the known tracking, and about none; %s is what was asked for, %d counts
		status            int    // of the second
		want              *tracking.Absent
		proven            bool
	}{
		{"a message", shown, `{"message":"no data"}`, 200, &tracking.Absent{Status: 200, Message: "no data"}, true},
		{"a message that could stand anywhere", shown, `{"message":"success","data":null}`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Path: "/data", Equals: "null"}}, true},
		{"a message with the reference", shown, `{"message":"no %s","data":[],"error":null}`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Path: "/data", Equals: "[]"}}, true},
		{"a code among what varies", shown, `{"message":"none of %s","id":"a%d","time":1764000000000,"code":4404}`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Path: "/code", Equals: "4404"}}, true},
		{"a word", shown, `{"state":"UNKNOWN~"}`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Path: "/state", Equals: `"UNKNOWN~"`}}, true},
		{"an odd name", shown, `{"a/b":false}`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Path: "/a~1b", Equals: "false"}}, true},
		{"nothing", shown, `{}`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Equals: "{}"}}, true},
		{"null", shown, `null`, 200, &tracking.Absent{Status: 200, Match: tracking.Match{Equals: "null"}}, true},
		{"a status alone", shown, ``, 400, &tracking.Absent{Status: 400}, true},
		{"a status and words", shown, `{"message":"unknown referId"}`, 422, &tracking.Absent{Status: 422, Message: "unknown referId"}, true},
		{"known 404", shown, `{"message":"x"}`, 404, nil, false},
		{"nothing that differs", shown, `{"error":null}`, 200, nil, false},
		{"answers that differ in words", shown, `{"message":"none, answer %d"}`, 200, nil, false},
		{"a page", shown, `<html>`, 200, nil, false},
		{"Processing for everything", shown, `{"message":"Processing"}`, 200, nil, false},
		{"no status yet", `{"message":"Processing"}`, `{"message":"no data"}`, 200, &tracking.Absent{Status: 200, Message: "no data"}, false},
		{"no status yet, and a value", `{"message":"Processing"}`, `{"data":null}`, 200, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			p := newProber(t, func(w http.ResponseWriter, r *http.Request) {
				if refer := r.URL.Query().Get("referId"); refer != "K" && r.URL.Query().Get("trackingNumber") != "N" {
					n++
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, strings.NewReplacer("%s", refer, "%d", fmt.Sprint(n)).Replace(tt.none))
					return
				}
				_, _ = io.WriteString(w, tt.known)
			})
			got, err := p.probe(t.Context(), []tracking.Item{{ReferID: "K", Number: "N"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.absent.suggestion); diff != "" || got.absent.proven != tt.proven {
				t.Errorf("proven %v, want %v, of %+v (-want +got):\n%s", got.absent.proven, tt.proven, got.absent, diff)
			}
			if recognised := got.absent.why == ""; recognised != (tt.status == 404) {
				t.Errorf("not recognised because %q", got.absent.why)
			}
		})
	}
}

func TestProbeFindsTheParameter(t *testing.T) {
	const absent = `{"message":"not found"}`
	tests := []struct {
		name   string
		answer func(param, number string) string // empty is 404
		works  string
		tried  int
	}{
		{"the configured one", func(p, n string) string { return one(p == "trackingNumber" && n == "N") }, "trackingNumber", 1},
		{"another", func(p, n string) string { return one(p == "tracking_number" && n == "N") }, "tracking_number", 3},
		{"none", func(string, string) string { return "" }, "", 6},
		{"all without looking", func(string, string) string { return shown }, "", 6},
		{"a list of all", func(string, string) string { return "[" + shown + "]" }, "", 6},
		{"another tracking for everything", func(string, string) string { return strings.ReplaceAll(shown, `"N"`, `"M"`) }, "", 6},
		{"an echo", func(_, n string) string { return `{"trackingNumber":"` + n + `","status":200}` }, "", 6},
		{"Processing for everything", func(string, string) string { return `{"message":"Processing"}` }, "", 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProber(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					t.Errorf("a %s: a probe only reads", r.Method)
				}
				text := one(r.URL.Query().Get("referId") == "K")
				for param, values := range r.URL.Query() {
					if param != "referId" {
						text = tt.answer(param, values[0])
					}
				}
				if text == "" {
					w.WriteHeader(http.StatusNotFound)
					text = absent
				}
				_, _ = io.WriteString(w, text)
			})
			got, err := p.probe(t.Context(), []tracking.Item{{ReferID: "gone", Number: "N"}, {ReferID: "K", Number: "N"}})
			if err != nil || !got.known || got.absent.why != "" {
				t.Fatalf("%v: %+v", err, got)
			}
			if got.works != tt.works || len(got.tried) != tt.tried {
				t.Errorf("%q works of %+v; want %q of %d", got.works, got.tried, tt.works, tt.tried)
			}
		})
	}
}

// one is the answer about the known tracking, or none.
func one(known bool) string {
	if known {
		return shown
	}
	return ""
}

func TestProbeWithNothingToLearnFrom(t *testing.T) {
	for _, status := range []int{404, 401, 403, 302, 500} {
		p := newProber(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		got, err := p.probe(t.Context(), nil)
		if (err == nil) != (status == 404) || got.known || err == nil && got.absent.why != "" {
			t.Errorf("status %d: %v, %+v; want an absence of 404 alone", status, err, got)
		}
	}
}

// A bundle has what doctor found, says which settings are set, and not to what; it has
// neither secrets, nor names of maps, nor the home folder.
func TestBundleContent(t *testing.T) {
	s := &scene{t: t, home: t.TempDir()}
	s.serve(jsonService(404))
	s.store()
	s.write(".config/waybill/config.yaml", 0o600, "rate: 2\naccount: acme-account\ncarriers: {Acme Name: dhl, Other: ups}\nwebhook: {secret: webhook-secret-0123}\n")
	target := closedPort(t)
	s.sink(target+"/in/of-acme", false)
	text := s.bundle()
	for _, want := range []string{
		target + ": ",
		`"message": "~/.config/waybill/config.yaml (`, `"check": "access"`, "webhook.secret (", "rate (", "carriers (", `"message": "waybill `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for _, secret := range []string{"webhook-secret-0123", "key-of-a-test", "acme-account", "Acme Name", "of-acme", s.home} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in it: %s", secret, text)
		}
	}
}

// What can't be read is said.
func TestBundleOfWhatIsBroken(t *testing.T) {
	s := &scene{t: t, home: t.TempDir()}
	s.set("WAYBILL_STORE", s.write("w.db", 0o600, strings.Repeat("no database", 999)))
	if text := s.bundle(); !strings.Contains(text, "not a waybill store") {
		t.Errorf("%s", text)
	}
	s.env = []string{"WAYBILL_RATE=x"}
	if text := s.bundle(); !strings.Contains(text, "WAYBILL_RATE: must be a number") {
		t.Errorf("%s", text)
	}
}

// bundle returns the content of all files of a bundle.
func (s *scene) bundle() string {
	s.t.Helper()
	path := s.path("found.zip")
	cmd := New(s.factory(io.Discard))
	command.GlobalFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--bundle", path})
	_ = cmd.ExecuteContext(s.t.Context()) // problems are found
	z, err := zip.OpenReader(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	var text strings.Builder
	for _, part := range z.File {
		r, err := part.Open()
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := io.Copy(&text, r); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		s.t.Fatal(err)
	}
	return text.String()
}
