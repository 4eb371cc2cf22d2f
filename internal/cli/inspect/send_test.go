package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// sent asks to send a delivery.
func (k desk) sent(id, options string) sentJSON {
	k.Helper()
	a := k.ask("/deliveries/"+id+"/send", options)
	j, ok := a.value.(sentJSON)
	if !ok {
		k.Fatalf("send %s %s: %d %s", id, options, a.status, a.text)
	}
	return j
}

func TestSendAgain(t *testing.T) {
	e, other := newEndpoint(t, http.StatusAccepted, "thanks"), newEndpoint(t, http.StatusFound, "")
	body := "[ " + eventText("a", "N1", `,"n":1.00`) + " ]\n"
	old := received(body, "Authorization", "Basic abc", "X-Secret-Copy", testSecret, "X-Kept", "1")
	old.ReceivedAt = old.ReceivedAt.Add(-time.Hour)
	k := newDesk(t, []string{e.URL + "/hook?own=1", other.URL}, func(db *store.DB) {
		d := signed(t, "timestamped-kv", old)
		d.RawQuery = "q=1"
		putAll(t, db, d)
	}, "WAYBILL_WEBHOOK_SECRET="+testSecret, "WAYBILL_WEBHOOK_SCHEME=timestamped-kv")
	k.page.Targets[0].Headers = []webhook.Field{{Name: "X-Own", Value: "of-the-target"}}

	j := k.sent("1", `{"target":"1"}`)
	got := <-e.got
	if j.Type != "replay" || j.ID != "1" || j.Attempt != 2 || j.Status != 202 || !j.Expected ||
		j.Reply != "thanks" || j.Problem != "" || j.Signed || j.Synthetic || j.Recovered || j.Target != e.URL+"/hook" ||
		len(j.Notes) > 0 {
		t.Errorf("result %+v", j)
	}
	if got.body != body || got.uri != "/hook?own=1&q=1" || got.Get("X-Kept") != "1" || got.Get("Authorization") != "" || got.Get("X-Secret-Copy") != "" || got.Get(forward.HeaderSeq) != "1" || got.Get(forward.HeaderAttempt) != "2" ||
		got.Get("X-Own") != "of-the-target" || got.Get(inbox.HeaderSynthetic) != "" {
		t.Errorf("target got %+v", got)
	}
	stamp, _, _ := strings.Cut(got.Get("X-Signature"), ",")

	if j = k.sent("1", `{"target":"1","sign":true}`); !j.Signed {
		t.Errorf("signed anew: %+v", j)
	}
	if got = <-e.got; got.body != body || strings.HasPrefix(got.Get("X-Signature"), stamp+",") {
		t.Errorf("signed anew: %+v", got)
	}
	verify(t, "timestamped-kv", got)

	if j = k.sent("1", `{"target":"2"}`); j.Status != 302 || j.Expected || j.Location != "http://127.0.0.1:1/elsewhere" {
		t.Errorf("redirect: %+v", j)
	}
	if got = <-other.got; got.uri != "/in?q=1" {
		t.Errorf("a target without a path got %q", got.uri)
	}
	counts, err := k.db.Counts(t.Context())
	if err != nil || counts.Deliveries != 1 {
		t.Errorf("%d deliveries, %v; want nothing stored", counts.Deliveries, err)
	}
}

// verify fails unless a request is signed now.
func verify(t *testing.T, preset string, got request) {
	t.Helper()
	p, _ := webhook.PresetByName(preset)
	v, err := webhook.NewVerifier(p.Scheme, []webhook.Secret{{Value: []byte(testSecret)}})
	if err != nil {
		t.Fatal(err)
	}
	m := webhook.Request{Method: "POST", Body: []byte(got.body)}
	for name, values := range got.Header {
		for _, value := range values {
			m.Header = append(m.Header, webhook.Field{Name: name, Value: value})
		}
	}
	if verdict := v.Verify(m, time.Now()); !verdict.OK {
		t.Errorf("not signed now: %+v", verdict)
	}
}

func TestSendEdited(t *testing.T) {
	e := newEndpoint(t, http.StatusOK, "")
	fill := func(db *store.DB) {
		putAll(t, db, signed(t, "hmac-body-hex", received("["+eventText("a", "N1", "")+"]", "X-Kept", "1")))
	}
	k := newDesk(t, []string{e.URL}, fill, inEnforce...)
	for _, body := range []string{`[{"a":1.0}]`, "not JSON \u202e", ""} {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		j, got := k.sent("1", `{"target":"1","body":`+string(text)+`}`), <-e.got
		if j.Type != "send" || !j.Synthetic || !j.Signed || j.ID != "" || (len(j.Notes) == 0) != json.Valid([]byte(body)) {
			t.Errorf("result %+v", j)
		}
		if got.body != body || got.Get(inbox.HeaderSynthetic) != "1" || got.Get(forward.HeaderSeq) != "" || got.Get(forward.HeaderAttempt) != "" || got.Get("X-Kept") != "1" || got.uri != "/in" {
			t.Errorf("target got %+v", got)
		}
		if body != "" {
			verify(t, "hmac-body-hex", got)
		}
	}
	if j, got := k.sent("1", `{"target":"1","sign":false,"body":"[]"}`), <-e.got; j.Signed || got.Get("X-Signature") != "" || got.Get("X-Kept") != "1" {
		t.Errorf("not signed: %+v, %+v", j, got)
	}
	unset := newDesk(t, []string{e.URL}, fill)
	if j, got := unset.sent("1", `{"target":"1","body":"[]"}`), <-e.got; j.Signed || len(j.Notes) != 1 || !strings.Contains(j.Notes[0], "no signature scheme") || got.body != "[]" || got.Get("X-Signature") != "" {
		t.Errorf("without a scheme: %+v, %+v", j, got)
	}
	unset.wants(unset.ask("/deliveries/1/send", `{"target":"1","sign":true}`), http.StatusBadRequest, "no signature scheme", "hint")
}

// An edited copy that is not signed has no signature or digest of the original's bytes. What
// the target is to get stays.
func TestSendEditedDropsWhatIsOfOtherBytes(t *testing.T) {
	e := newEndpoint(t, http.StatusOK, "")
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("webhook: {schemes: {in-query: {kind: hmac, signature: {from: \"query:sig\"}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newDesk(t, []string{e.URL + "/hook?sig=own"}, func(db *store.DB) {
		d := received("[]", "Digest", "SHA-256=a", "content-digest", "sha-256=:a:", "Repr-Digest", "sha-256=:a:", "Content-MD5", "a", "X-Signature", "b", "X-Kept", "1")
		d.RawQuery = "a=%20&s%69g=abc&signature=1"
		putAll(t, db, d)
	}, "WAYBILL_CONFIG="+config, "WAYBILL_WEBHOOK_SECRET="+testSecret, "WAYBILL_WEBHOOK_SCHEME=in-query")
	k.page.Targets[0].Headers = []webhook.Field{{Name: "Digest", Value: "of-the-target"}}
	k.sent("1", `{"target":"1","sign":false,"body":"[1]"}`)
	got := <-e.got
	if got.uri != "/hook?sig=own&a=%20&signature=1" || got.Get("Digest") != "of-the-target" || got.Get("X-Signature") != "b" || got.Get("X-Kept") != "1" {
		t.Errorf("target got %+v", got)
	}
	for _, name := range []string{"Content-Digest", "Repr-Digest", "Content-MD5"} {
		if got.Get(name) != "" {
			t.Errorf("target got %s: %s", name, got.Get(name))
		}
	}
	k.sent("1", `{"target":"1","sign":false}`)
	if got = <-e.got; got.uri != "/hook?sig=own&a=%20&s%69g=abc&signature=1" || got.Get("Content-Digest") == "" {
		t.Errorf("the delivery itself: target got %+v", got)
	}
}

func TestSendRefusesBadRequests(t *testing.T) {
	e := newEndpoint(t, http.StatusOK, "")
	k := newDesk(t, []string{e.URL}, func(db *store.DB) {
		putAll(t, db, received("[]"))
		if _, err := db.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		putAll(t, db, received("[]"))
	})
	for _, tt := range []struct {
		id, options string
		status      int
	}{
		{"2", "", 400},
		{"2", "{", 400},
		{"2", "[]", 400},
		{"2", "{}", 400},
		{"2", `{"target":"2"}`, 400},
		{"2", `{"target":"0"}`, 400},
		{"2", `{"target":1}`, 400},
		{"2", `{"target":"` + e.URL + `"}`, 400},
		{"2", `{"target":"1","url":"http://x"}`, 400},
		{"1", `{"target":"1"}`, 410},
		{"3", `{"target":"1"}`, 404},
		{"refused:1", `{"target":"1"}`, 404},
	} {
		a := k.ask("/deliveries/"+tt.id+"/send", tt.options)
		k.wants(a, tt.status, `"hint":"`)
	}
	select {
	case got := <-e.got:
		t.Errorf("a bad request was sent: %+v", got)
	default:
	}
}

func TestSendSaysWhatIsWrongWithARequest(t *testing.T) {
	e := newEndpoint(t, http.StatusOK, "")
	k := newDesk(t, []string{e.URL}, func(db *store.DB) { putAll(t, db, received("[]")) })
	for _, options := range []string{"", "{", " []", `{"target":1}`, `{"target":"1","sign":"no"}`, `{"target":"1","body":{}}`, `{"target":"1","url":"http:"}`} {
		a := k.ask("/deliveries/1/send", options)
		k.wants(a, http.StatusBadRequest, "the request is not a JSON object of target, sign and body", `such as {\"target\":\"1\"`)
	}
	if len(e.got) > 0 {
		t.Error("a bad request was sent")
	}
}

func TestSendToATargetThatFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{}, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the server sees the client leave
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	k := newDesk(t, []string{down, silent.URL, "http://169.254.169.254/latest"}, func(db *store.DB) { putAll(t, db, received("[]")) }, "WAYBILL_REQUEST_TIMEOUT=200ms")
	if j := k.sent("1", `{"target":"1"}`); j.Status != 0 || j.Problem == "" || j.Expected {
		t.Errorf("down: %+v", j)
	}
	if j := k.sent("1", `{"target":"2"}`); j.Status != 0 || !strings.Contains(j.Problem, "no answer in time") {
		t.Errorf("silent: %+v", j)
	}
	<-reached
	k.wants(k.ask("/deliveries/1/send", `{"target":"3"}`), http.StatusForbidden, "--allow-target")
}

// The request to the target ends with the context, which the server ends.
func TestSendEndsWithItsContext(t *testing.T) {
	reached, left := make(chan struct{}), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the server sees the client leave
		close(reached)
		<-r.Context().Done()
		close(left)
	}))
	t.Cleanup(silent.Close)
	k := newDesk(t, []string{silent.URL}, func(db *store.DB) { putAll(t, db, received("[]")) })
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/deliveries/1/send", strings.NewReader(`{"target":"1"}`))
	r.SetPathValue("id", "1")
	ended := make(chan error)
	go func() {
		_, err := k.page.send(r)
		ended <- err
	}()
	<-reached
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want that it was cut off", err)
	}
	<-left
}

// giveUp makes a target known and gives up all deliveries at it.
func giveUp(t *testing.T, db *store.DB, url string) int64 {
	t.Helper()
	sink, err := db.OpenSink(t.Context(), inbox.SinkKey{Name: forward.SinkName, URL: url}, &inbox.StartPosition{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Advance(t.Context(), sink.ID, 100, func([]inbox.Event) bool { return true }); err != nil {
		t.Fatal(err)
	}
	entries, _, err := db.ClaimEntries(t.Context(), sink.ID, 100, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := db.RecordAttempt(t.Context(), e.ID, inbox.AttemptOutcome{Disposition: inbox.GivenUp, Now: time.Now(), Problem: "answered 500", Status: 500, Reply: []byte("broken\x1b")}); err != nil {
			t.Fatal(err)
		}
	}
	return sink.ID
}

func TestSendRecoversWhatWasGivenUp(t *testing.T) {
	e := newEndpoint(t, http.StatusOK, "")
	k := newDesk(t, []string{e.URL, "http://127.0.0.1:1"}, func(db *store.DB) {
		unverified := received("[" + eventText("b", "N2", "") + "]")
		putAll(t, db, signed(t, "hmac-body-hex", received("["+eventText("a", "N1", "")+"]")), unverified)
		giveUp(t, db, e.URL)
		giveUp(t, db, "http://127.0.0.1:1")
	}, inEnforce...)
	state := func(id string, target int) string {
		f := k.show(id).Forwarding[target]
		return string(f.State)
	}
	if f := k.show("1").Forwarding; len(f) != 2 || f[0].State != "dead" || f[0].Status != 500 || f[0].Problem != "answered 500" || f[0].Reply != "broken\x1b" || f[0].GivenUpAt == nil || f[0].Attempts != 1 {
		t.Errorf("forwarding %+v", f)
	}
	if j, got := k.sent("1", `{"target":"1","body":"[]"}`), <-e.got; j.Recovered || state("1", 0) != "dead" {
		t.Errorf("an edited copy recovered it: %+v, %+v", j, got)
	}
	if j := k.sent("1", `{"target":"2"}`); j.Recovered || j.Problem == "" || state("1", 1) != "dead" {
		t.Errorf("a failure recovered it: %+v", j)
	}
	if j, got := k.sent("1", `{"target":"1"}`), <-e.got; !j.Recovered || state("1", 0) != "sent" ||
		got.Get(forward.HeaderAttempt) != "2" {
		t.Errorf("%+v, %+v; want it recovered", j, got)
	}
	if j, _ := k.sent("2", `{"target":"1"}`), <-e.got; j.Recovered || state("2", 0) != "dead" ||
		strings.Join(j.Notes, "; ") != "not verified: delivery 2" {
		t.Errorf("an unverified delivery was recovered: %+v", j)
	}
}

func TestSendRefusedDelivery(t *testing.T) {
	e := newEndpoint(t, http.StatusOK, "")
	k := newDesk(t, []string{e.URL}, func(db *store.DB) {
		d := received("<html>", "X-Signature", "no")
		d.Verified = inbox.No
		if _, err := db.PutRefused(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	})
	if j, got := k.sent("refused:1", `{"target":"1"}`), <-e.got; strings.Join(j.Notes, "; ") != "not verified: delivery refused:1" || j.ID != "refused:1" || got.body != "<html>" || got.Get(forward.HeaderSeq) != "" {
		t.Errorf("%+v, %+v", j, got)
	}
}

// curlOf returns the command for a delivery.
func (k desk) curlOf(path string) curlJSON {
	k.Helper()
	a := k.ask(path)
	j, ok := a.value.(curlJSON)
	if !ok {
		k.Fatalf("%s: %d %s", path, a.status, a.text)
	}
	return j
}

func TestCurl(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	bodies := []string{"[" + eventText("it's", "$(id) `id` \\ \"", "") + "]\n", "@/etc/passwd", "", "tab\there", "\x1b[201~", "\xff\x00", `["` + testSecret + `"]`, strings.Repeat("x", maxInlineBody+1)}
	inline := 3
	k := newDesk(t, []string{"http://127.0.0.1:3000", "http://127.0.0.1:3000/hooks/a1b2c3d4e5f6g7h8?token=x"}, func(db *store.DB) {
		for _, b := range bodies {
			d := received(b, "Content-Type", "application/json", "X-Signature", "abc123", "Authorization", "Basic secret", "X-Api-Key", "clear-key", "X-Empty", "", "X-Odd", "a\x1bb", "X-Bytes", "M\xfcller")
			d.Path, d.RawQuery = "/a/../b[1]", "q=%20&token=clear"
			putAll(t, db, d)
		}
	}, inEnforce...)
	for i, b := range bodies {
		j := k.curlOf("/deliveries/" + string(rune('1'+i)) + "/curl?target=1")
		for _, secret := range []string{"Basic secret", "clear-key", "=clear", testSecret, "\x1b", "\xff"} {
			if strings.Contains(j.Command, secret) {
				t.Errorf("the command shows %q: %s", secret, j.Command)
			}
		}
		for _, part := range []string{"--request POST", "'X-Signature: abc123'", "'Authorization: ***'", "'X-Api-Key: ***'", "'X-Empty;'", "Accept:", "User-Agent:", "--globoff", "--path-as-is", "'http://127.0.0.1:3000/a/../b[1]?q=%20&token=***'"} {
			if !strings.Contains(j.Command, part) {
				t.Errorf("the command lacks %s: %s", part, j.Command)
			}
		}
		if strings.Contains(j.Command, "X-Odd") || !strings.Contains(strings.Join(j.Notes, "\n"), "X-Odd") || !strings.Contains(strings.Join(j.Notes, "\n"), "***") {
			t.Errorf("notes %q", j.Notes)
		}
		if (j.File == "") != (i < inline) || j.File != "" && !strings.Contains(j.Command, "--data-binary @"+j.File) {
			t.Errorf("body %.20q: file %q in %s", b, j.File, j.Command)
		}
		if i >= inline {
			continue
		}
		out, err := exec.CommandContext(t.Context(), sh, "-c", `curl() { while [ $# -gt 0 ]; do case "$1" in --data-*) printf %s "$2"; printf x;; esac; shift; done; }; `+j.Command).Output()
		if err != nil || string(out) != b+"x" {
			t.Errorf("the shell reads %q of %q, %v", out, b, err)
		}
	}
	if j := k.curlOf("/deliveries/1/curl?target=2"); !strings.Contains(j.Command, "http://127.0.0.1:3000/hooks/***?***&q=%20&token=***") {
		t.Errorf("a target with tokens: %s", j.Command)
	}
	if j := k.curlOf("/deliveries/2/curl"); !strings.Contains(j.Command, "http://127.0.0.1:3000/a/") || !strings.Contains(strings.Join(j.Notes, "\n"), "replace http://127.0.0.1:3000") || !strings.Contains(j.Command, "--data-raw") {
		t.Errorf("without a target: %+v", j)
	}
	k.wants(k.ask("/deliveries/1/curl?target=9"), http.StatusBadRequest, "no target")
}

func TestCurlMasksTokens(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		putAll(t, db, signed(t, "bearer-token", received("[]")))
	}, "WAYBILL_WEBHOOK_SECRET="+testSecret, "WAYBILL_WEBHOOK_SCHEME=bearer-token")
	if j := k.curlOf("/deliveries/1/curl"); strings.Contains(j.Command, testSecret) || !strings.Contains(j.Command, "'Authorization: ***'") {
		t.Errorf("the command shows the token: %s", j.Command)
	}
}
