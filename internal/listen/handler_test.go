package listen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options listen.Options
		method  string
		body    string
		header  []string // name, value…
		status  int
		answer  string
		stored  int
	}{
		{"delivery", listen.Options{}, http.MethodPost, delivered, nil, 200, "stored\n", 1},
		{"GET", listen.Options{}, "GET", "", nil, 200, "ready for deliveries\n", 0},
		{"HEAD", listen.Options{}, "HEAD", "", nil, 200, "ready for deliveries\n", 0}, // the recorder keeps what a connection leaves out
		{"GET with a body", listen.Options{}, "GET", delivered, nil, 200, "ready for deliveries\n", 0},
		{"PUT", listen.Options{}, "PUT", delivered, nil, 200, "stored\n", 1},
		{"PUT without a body", listen.Options{}, "PUT", "", nil, 405, "method not allowed\n", 0},
		{"DELETE", listen.Options{}, "DELETE", "", nil, 405, "method not allowed\n", 0},
		{"OPTIONS", listen.Options{}, "OPTIONS", "", nil, 405, "method not allowed\n", 0},
		{"compressed", listen.Options{}, http.MethodPost, delivered, []string{"Content-Encoding", "gzip"}, 415, "compressed bodies are not accepted\n", 0},
		{"compressed, second value", listen.Options{}, http.MethodPost, delivered, []string{"Content-Encoding", "identity", "Content-Encoding", "br"}, 415, "compressed bodies are not accepted\n", 0},
		{"identity", listen.Options{}, http.MethodPost, delivered, []string{"Content-Encoding", "identity"}, 200, "stored\n", 1},
		{"as great as may be", listen.Options{MaxBody: int64(len(delivered))}, http.MethodPost, delivered, nil, 200, "stored\n", 1},
		{"too great", listen.Options{MaxBody: int64(len(delivered)) - 1}, http.MethodPost, delivered, nil, 413, "body too large\n", 0},
		{"header too large", listen.Options{}, http.MethodPost, delivered, []string{"X-A", strings.Repeat("a", 16<<10), "X-A", strings.Repeat("b", 16<<10)}, 431, "header too large\n", 0},
		{"header large", listen.Options{}, http.MethodPost, delivered, []string{"X-A", strings.Repeat("a", 31<<10)}, 200, "stored\n", 1},
		{"any content type", listen.Options{}, http.MethodPost, delivered, []string{"Content-Type", "text/plain"}, 200, "stored\n", 1},
		{"no JSON", listen.Options{}, http.MethodPost, "<html>", nil, 200, "stored\n", 1},
		{"empty", listen.Options{}, http.MethodPost, "", nil, 200, "stored\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := &memory{}
			tt.options.Store = box
			req := httptest.NewRequestWithContext(t.Context(), tt.method, "/any/path", strings.NewReader(tt.body))
			for i := 0; i < len(tt.header); i += 2 {
				req.Header.Add(tt.header[i], tt.header[i+1])
			}
			rec := httptest.NewRecorder()
			receiver(t, tt.options).Handler().ServeHTTP(rec, req)
			if rec.Code != tt.status || rec.Body.String() != tt.answer {
				t.Errorf("answer %d %q; want %d %q", rec.Code, rec.Body, tt.status, tt.answer)
			}
			if got := rec.Header().Get("Connection"); (got == "close") != (tt.status >= 400) {
				t.Errorf("status %d with Connection %q", rec.Code, got)
			}
			if got := rec.Header().Get("Allow"); (got == "GET, HEAD, POST") != (tt.status == 405) {
				t.Errorf("status %d with Allow %q", rec.Code, got)
			}
			if kept, refused := box.kept(); len(kept) != tt.stored || len(refused) != 0 {
				t.Errorf("%d deliveries stored, %d refused; want %d and none", len(kept), len(refused), tt.stored)
			}
		})
	}
}

// Where what does not count is not forwarded, its sender is told.
func TestAnswerSaysWhatIsNotForwarded(t *testing.T) {
	h := receiver(t, listen.Options{Store: &memory{}, Verify: signing(t), Withholds: true}).Handler()
	for signed, want := range map[string]string{signature(delivered): "stored\n", "zz": "stored, not forwarded\n"} {
		if rec := send(t, h, delivered, signed); rec.Code != http.StatusOK || rec.Body.String() != want {
			t.Errorf("answer %d %q; want 200 %q", rec.Code, rec.Body, want)
		}
	}
}

// Without a scheme deliveries are what the options say: unknown, or unsigned.
func TestDeliveriesThatNothingVerifies(t *testing.T) {
	for given, want := range map[inbox.Verified]inbox.Verified{"": inbox.Unknown, inbox.Unsigned: inbox.Unsigned} {
		box := &memory{}
		if rec := send(t, receiver(t, listen.Options{Store: box, Unverifiable: given, Withholds: true}).Handler(), delivered, ""); rec.Code != http.StatusOK {
			t.Errorf("answer %d; want 200", rec.Code)
		}
		if kept, _ := box.kept(); len(kept) != 1 || kept[0].Verified != want {
			t.Errorf("kept %+v; want one that is %s", kept, want)
		}
	}
}

// send posts a body to h with a signature, if there is one.
func send(t *testing.T, h http.Handler, body, sig string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook", strings.NewReader(body))
	if sig != "" {
		req.Header.Set("X-Signature", sig)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

func TestEnforceRefusesAndKeepsEvidence(t *testing.T) {
	box := &memory{}
	h := receiver(t, listen.Options{Store: box, Verify: signing(t), Scheme: "mine", Enforce: true}).Handler()
	for _, tt := range []struct {
		body, sig string
		want      webhook.Reason
	}{
		{delivered, "", webhook.ReasonSignatureMissing},
		{delivered, "zz", webhook.ReasonSignatureMalformed},
		{delivered, signature(delivered + " "), webhook.ReasonSignatureMismatch},
		{"", signature(""), webhook.ReasonBodyEmpty},
	} {
		rec := send(t, h, tt.body, tt.sig)
		if rec.Code != http.StatusUnauthorized || rec.Body.String() != "signature not accepted\n" {
			t.Errorf("%s: answer %d %q; want a constant 401", tt.want, rec.Code, rec.Body)
		}
		kept, refused := box.kept()
		if len(kept) != 0 || len(refused) == 0 {
			t.Fatalf("%s: %d stored, %d refused; want evidence only", tt.want, len(kept), len(refused))
		}
		last := refused[len(refused)-1]
		if last.Reason != tt.want || last.Verified != inbox.No || last.Scheme != "mine" || string(last.Body) != tt.body {
			t.Errorf("evidence %+v; want reason %s and the body", last, tt.want)
		}
	}
	if rec := send(t, h, delivered, signature(delivered)); rec.Code != http.StatusOK {
		t.Errorf("good delivery: %d; want 200", rec.Code)
	}
	kept, _ := box.kept()
	if len(kept) != 1 || kept[0].Verified != inbox.Yes || kept[0].SecretName != "env:S" || !kept[0].BodyAuthenticated || kept[0].Reason != "" {
		t.Errorf("stored %+v; want one, verified by env:S", kept)
	}
	// Authentic but unreadable is kept too: it will not get better by being sent again.
	if rec := send(t, h, "{", signature("{")); rec.Code != http.StatusOK {
		t.Errorf("authentic but unreadable: %d; want 200", rec.Code)
	}
	kept, _ = box.kept()
	if len(kept) != 2 || kept[1].Anomaly == "" || string(kept[1].Body) != "{" {
		t.Errorf("stored %+v; want the unreadable one marked", kept)
	}
}

func TestObserveKeepsAndMarks(t *testing.T) {
	box := &memory{}
	h := receiver(t, listen.Options{Store: box, Verify: signing(t), Scheme: "mine"}).Handler()
	if rec := send(t, h, delivered, "zz"); rec.Code != http.StatusOK {
		t.Errorf("answer %d; want 200", rec.Code)
	}
	kept, refused := box.kept()
	if len(kept) != 1 || len(refused) != 0 || kept[0].Verified != inbox.No || kept[0].Reason != webhook.ReasonSignatureMalformed {
		t.Fatalf("stored %+v; want one, not verified, with the reason", kept)
	}
	if row := box.rows[0]; row.Verified != inbox.No || row.Reason != webhook.ReasonSignatureMalformed || row.EventID != "e-1" {
		t.Errorf("row %+v; want it marked like its delivery", row)
	}
}

func TestDeliveryIsKeptAsReceived(t *testing.T) {
	box := &memory{}
	srv := httptest.NewServer(receiver(t, listen.Options{Store: box}).Handler())
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	body := "\xef\xbb\xbf [ {\"eventId\":\"\xff\"} ]\r\n"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/a%2fb//c?x=%7E&x=+&y", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "hooks.example"
	req.Header = http.Header{"X-B": {"2", "1"}, "X-A": {"\xe9"}, "User-Agent": {"sender/1"}, "Accept-Encoding": {"identity"}}
	before := time.Now()
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, close %v", res.StatusCode, err)
	}
	kept, _ := box.kept()
	if len(kept) != 1 {
		t.Fatalf("%d deliveries stored; want 1", len(kept))
	}
	got := kept[0]
	if got.ReceivedAt.Before(before) || got.ReceivedAt.After(time.Now()) || !strings.HasPrefix(got.RemoteAddr, "127.0.0.1:") {
		t.Errorf("received at %v from %q", got.ReceivedAt, got.RemoteAddr)
	}
	got.ReceivedAt, got.RemoteAddr = time.Time{}, ""
	want := inbox.Delivery{
		Seq: 1, Method: "POST", Path: "/a%2fb//c", RawQuery: "x=%7E&x=+&y", Body: []byte(body), Verified: inbox.Unknown,
		Header: []webhook.Field{
			{Name: "Host", Value: "hooks.example"},
			{Name: "Accept-Encoding", Value: "identity"},
			{Name: "Content-Length", Value: fmt.Sprint(len(body))},
			{Name: "User-Agent", Value: "sender/1"},
			{Name: "X-A", Value: "\xe9"},
			{Name: "X-B", Value: "2"},
			{Name: "X-B", Value: "1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

func TestStoreErrors(t *testing.T) {
	for _, cause := range []error{inbox.ErrFull, inbox.ErrLocked, inbox.ErrReadOnly, context.DeadlineExceeded, errors.New("broken")} {
		var failing error
		box := &memory{before: func(context.Context, string) error { return failing }}
		var log bytes.Buffer
		h := receiver(t, listen.Options{Store: box, Verify: signing(t), Report: reportTo(&log)}).Handler()
		failing = fmt.Errorf("store: write: %w", cause)
		rec := send(t, h, delivered, signature(delivered))
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "5" {
			t.Errorf("%v: answer %d, Retry-After %q; want 503 and 5", cause, rec.Code, rec.Header().Get("Retry-After"))
		}
		if strings.Contains(rec.Body.String(), cause.Error()) {
			t.Errorf("%v: the sender is told %q", cause, rec.Body)
		}
		if got := log.String(); !strings.Contains(got, cause.Error()) || strings.Contains(got, "hunter2") || strings.Contains(got, signature(delivered)) || strings.Contains(got, "e-1") {
			t.Errorf("%v: logged %q; want the error, no secret, signature or body", cause, got)
		}
		// When the cause is gone, so is the trouble.
		failing = nil
		if rec := send(t, h, delivered, ""); rec.Code != http.StatusOK {
			t.Errorf("%v, then none: answer %d; want 200", cause, rec.Code)
		}
		if kept, _ := box.kept(); len(kept) != 1 {
			t.Errorf("%v, then none: %d stored; want 1", cause, len(kept))
		}
	}
}

// What is answered without being stored is reported, of each kind once in a while: it may
// be the service's.
func TestRejectedRequestsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := receiver(t, listen.Options{Store: &memory{}, MaxBody: 10, Report: reportTo(&log)}).Handler()
		for range 3 {
			send(t, h, delivered, "")
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/", nil))
		}
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		for what, want := range map[string]int{"answered 413 and not stored: body too large; raise --max-body": 1, "answered 405 and not stored: method not allowed; a delivery has a body": 1, "\n": 2} {
			if n := strings.Count(log.String(), what); n != want {
				t.Errorf("%d times %q; want %d in %s", n, what, want, &log)
			}
		}
		time.Sleep(time.Minute) // of fake time
		send(t, h, delivered, "")
		if !strings.Contains(log.String(), "requests: 4") {
			t.Errorf("a minute later: %s", &log)
		}
	})
}

// Bodies over the limit are not read to their end, whether or not they say how long they are.
func TestEndlessBody(t *testing.T) {
	box := &memory{}
	srv := httptest.NewServer(receiver(t, listen.Options{Store: box, MaxBody: 100 << 10}).Handler())
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	for _, length := range []int64{-1, 1 << 40} {
		body := &endless{}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatalf("length %d: %v; want an answer", length, err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close {
			t.Errorf("length %d: status %d, closing %v; want 413 and the connection closed", length, res.StatusCode, res.Close)
		}
	}
	if kept, _ := box.kept(); len(kept) != 0 {
		t.Errorf("%d deliveries stored; want none", len(kept))
	}
}

// endless is a body without an end.
type endless struct{}

func (*endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestChunkedBody(t *testing.T) {
	box := &memory{}
	srv := httptest.NewServer(receiver(t, listen.Options{Store: box, MaxBody: int64(len(delivered))}).Handler())
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, io.MultiReader(strings.NewReader(delivered[:10]), strings.NewReader(delivered[10:])))
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("status %d, close %v; want 200", res.StatusCode, err)
	}
	if kept, _ := box.kept(); len(kept) != 1 || string(kept[0].Body) != delivered {
		t.Errorf("stored %+v; want the whole body", kept)
	}
}

// Deliveries in a row that are wrong in nothing but their time are about
// clocks, and that is told once; one that is sent again and again is not.
func TestClocksThatDiffer(t *testing.T) {
	signed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	late := func(second int) webhook.Verdict {
		return webhook.Verdict{Reason: webhook.ReasonTimestampTooOld, Skew: -7 * time.Minute, Timestamp: signed.Add(time.Duration(second) * time.Second)}
	}
	forged := webhook.Verdict{Reason: webhook.ReasonSignatureMismatch}
	early := webhook.Verdict{Reason: webhook.ReasonTimestampInFuture, Skew: time.Hour, Timestamp: signed}
	for _, tt := range []struct {
		name     string
		verdicts []webhook.Verdict
		told     []int // after which of them
		says     string
	}{
		{"three, forged ones between", []webhook.Verdict{late(1), forged, late(2), forged, late(3), late(4)}, []int{5}, "7m0s behind"},
		{"a good one between", []webhook.Verdict{late(1), late(2), {OK: true}, late(3), late(4), late(5)}, []int{6}, "7m0s behind"},
		{"many in a second", []webhook.Verdict{late(1), late(1), late(1), late(2), late(2), late(3)}, []int{6}, "7m0s behind"},
		{"one sent again and again", []webhook.Verdict{late(1), late(1), late(1), late(1)}, nil, ""},
		{"one early, two late", []webhook.Verdict{early, late(1), late(2), late(3)}, []int{4}, "7m0s behind"},
		{"again after it was right", []webhook.Verdict{late(1), late(2), late(3), {OK: true}, late(4), late(5), late(6)}, []int{3, 7}, "7m0s behind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			i := 0
			verify := func(webhook.Request, time.Time) webhook.Verdict { i++; return tt.verdicts[i-1] }
			h := receiver(t, listen.Options{Store: &memory{}, Verify: verify, Enforce: true, Report: reportTo(&log)}).Handler()
			var told []int
			for n := range tt.verdicts {
				before := log.Len()
				send(t, h, delivered, "")
				if log.Len() > before {
					told = append(told, n+1)
				}
			}
			if !slices.Equal(told, tt.told) || strings.Count(log.String(), tt.says) < len(tt.told) {
				t.Errorf("told after deliveries %v: %s; want it after %v and %q", told, log.String(), tt.told, tt.says)
			}
		})
	}
}

// A slow body and a slow store together still get an answer.
func TestAnswerAfterAllThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(d time.Duration) { time.Sleep(d) } // of fake time
		r := receiver(t, listen.Options{Store: &memory{before: func(context.Context, string) error { slow(29 * time.Second); return nil }}})
		s := serve(t, r)
		head, body, _ := strings.Cut(post(delivered), "[")
		c, replies := s.dial(head)
		defer c.Close()
		slow(14 * time.Second)
		if _, err := io.WriteString(c, "["+body); err != nil {
			t.Fatal(err)
		}
		if got := <-replies; got.status != http.StatusOK || got.after != 43*time.Second {
			t.Errorf("answer %+v; want 200 after 43s", got)
		}
		s.end()
	})
}

// Whatever is in force when a delivery arrives, it is judged by all of it.
func TestReloadSwapsAllAtOnce(t *testing.T) {
	store := &memory{}
	r := receiver(t, listen.Options{Store: store})
	by := func(name string) listen.Options {
		return listen.Options{Scheme: name, Enforce: name == "two", Verify: func(webhook.Request, time.Time) webhook.Verdict {
			return webhook.Verdict{OK: name != "two", SecretName: name}
		}}
	}
	all := []listen.Options{{}, by("one"), by("two"), {Unverifiable: inbox.Unsigned}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 5000 {
			r.Reload(all[i%len(all)])
		}
	}()
	h := r.Handler()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
			send(t, h, delivered, "")
		}
	}
	kept, refused := store.kept()
	for _, d := range kept {
		switch {
		case d.Scheme == "" && d.SecretName == "" && d.Verified != inbox.Yes && d.Verified != inbox.No:
		case d.Scheme == "one" && d.SecretName == "one" && d.Verified == inbox.Yes:
		default:
			t.Fatalf("kept: scheme %q, secret %q, %s", d.Scheme, d.SecretName, d.Verified)
		}
	}
	for _, d := range refused {
		if d.Scheme != "two" || d.SecretName != "two" || d.Verified != inbox.No {
			t.Fatalf("refused: scheme %q, secret %q, %s", d.Scheme, d.SecretName, d.Verified)
		}
	}
	r.Reload(listen.Options{Enforce: true})
	if got := send(t, h, delivered, ""); got.Code != 401 {
		t.Errorf("enforcing without a scheme: %d, want 401", got.Code)
	}
}
