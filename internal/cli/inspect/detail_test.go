package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/inspect"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const testSecret = "a-secret-of-this-test"

// desk is a page on a store, asked without its server.
type desk struct {
	*testing.T
	page *Page
	db   *store.DB
	mux  *http.ServeMux
}

// newDesk returns a page with these targets and settings, written as in the environment.
// fill stores what it shows.
func newDesk(t *testing.T, targets []string, fill func(db *store.DB), env ...string) desk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.db")
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fill(db)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	c, _, _ := clitest.Call(t, append([]string{"WAYBILL_STORE=" + path, "WAYBILL_ACCOUNT=shop"}, env...)...)
	o := Options{Call: c}
	for _, text := range targets {
		u, err := forward.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Targets = append(o.Targets, forward.Target{URL: u})
	}
	p, err := Open(t.Context(), Place{Addr: "127.0.0.1:0"}, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return desk{t, p, db, http.NewServeMux()}.withRoutes()
}

// answer is what a route returned.
type answer struct {
	status int
	value  any // an [inspect.File], or what the JSON says
	text   string
}

func (k desk) withRoutes() desk {
	for _, route := range k.page.Routes() {
		k.mux.HandleFunc(route.Method+" "+route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			a := answer{status: http.StatusOK}
			v, err := route.Serve(r)
			if err != nil {
				e := (*inspect.Error)(nil)
				if !errors.As(err, &e) {
					e = k.page.explain(err)
				}
				a.status, v = e.Status, e
			}
			text, err := json.Marshal(v)
			if err != nil {
				k.Error(err)
			}
			if a.text = string(text); a.status == http.StatusOK {
				a.value = v
			}
			*r.Context().Value(answerKey{}).(*answer) = a
		})
	}
	return k
}

type answerKey struct{}

// ask asks a route; a body makes it a POST.
func (k desk) ask(path string, body ...string) answer {
	k.Helper()
	var a answer
	ctx := context.WithValue(k.Context(), answerKey{}, &a)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if len(body) > 0 {
		r = httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body[0]))
	}
	k.mux.ServeHTTP(httptest.NewRecorder(), r)
	if a.status == 0 {
		k.Fatalf("%s: no such route", path)
	}
	return a
}

// show returns a delivery.
func (k desk) show(id string) deliveryJSON {
	k.Helper()
	a := k.ask("/deliveries/" + id)
	j, ok := a.value.(deliveryJSON)
	if !ok {
		k.Fatalf("delivery %s: %d %s", id, a.status, a.text)
	}
	return j
}

// wants fails unless the answer has that status and those texts.
func (k desk) wants(a answer, status int, texts ...string) {
	k.Helper()
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			k.Errorf("answer without %q: %s", text, a.text)
		}
	}
	if a.status != status {
		k.Errorf("status %d, want %d: %s", a.status, status, a.text)
	}
}

// received returns a delivery that came now, with headers name, value, …
func received(body string, header ...string) inbox.Delivery {
	d := inbox.Delivery{ReceivedAt: time.Now().UTC().Truncate(time.Millisecond), Method: "POST", Path: "/in", RemoteAddr: "192.0.2.7:1", Verified: inbox.Unknown, Body: []byte(body)}
	for i := 0; i < len(header); i += 2 {
		d.Header = append(d.Header, webhook.Field{Name: header[i], Value: header[i+1]})
	}
	return d
}

// signed returns a delivery signed in a preset, verified.
func signed(t *testing.T, preset string, d inbox.Delivery) inbox.Delivery {
	t.Helper()
	p, ok := webhook.PresetByName(preset)
	if !ok {
		t.Fatal("no preset " + preset)
	}
	out, err := webhook.Sign(p.Scheme, webhook.Secret{Value: []byte(testSecret)}, d.Request(), d.ReceivedAt)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Apply(d.Request())
	d.Header, d.RawQuery, d.Verified, d.BodyAuthenticated, d.Scheme, d.SecretName = r.Header, r.RawQuery, inbox.Yes, true, preset, "env:WAYBILL_WEBHOOK_SECRET"
	return d
}

func putAll(t *testing.T, db *store.DB, all ...inbox.Delivery) {
	t.Helper()
	for _, d := range all {
		d, rows := inbox.Decode(d)
		if _, err := db.Put(t.Context(), d, rows); err != nil {
			t.Fatal(err)
		}
	}
}

// endpoint keeps what it got.
type endpoint struct {
	*httptest.Server
	got chan request
}

type request struct {
	http.Header
	uri, body string
}

func newEndpoint(t *testing.T, status int, reply string) endpoint {
	t.Helper()
	e := endpoint{got: make(chan request, 10)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		e.got <- request{r.Header, r.RequestURI, string(body)}
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}))
	t.Cleanup(e.Close)
	return e
}

func eventText(id, number, more string) string {
	return fmt.Sprintf(`{"eventId":%q,"event":"router.delivered","data":{"trackingNumber":%q%s}}`, id, number, more)
}

var inEnforce = []string{"WAYBILL_WEBHOOK_SECRET=" + testSecret, "WAYBILL_WEBHOOK_SCHEME=hmac-body-hex"}

func TestDeliveryShowsHeadersBodyAndEvents(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		d := signed(t, "hmac-body-hex", received("["+eventText("a", "N1", `,"n":1.0,"n":1.00,"token":"`+testSecret+`"`)+",7]", "Authorization", "Basic abc", "X-Api-Key", "k", "X-Twice", "1", "X-Twice", "2"))
		d.RawQuery = "token=clear&a=b&s=" + testSecret
		putAll(t, db, d)
	}, inEnforce...)
	a := k.ask("/deliveries/1")
	for _, secret := range []string{testSecret, "Basic abc", "clear"} {
		if strings.Contains(a.text, secret) {
			t.Errorf("the answer shows %s: %s", secret, a.text)
		}
	}
	j := k.show("1")
	var headers []string
	for _, h := range j.Headers {
		headers = append(headers, h.Name+": "+h.Value)
	}
	if want := "Authorization: ***, X-Api-Key: ***, X-Twice: 1, X-Twice: 2, X-Signature: "; !strings.HasPrefix(strings.Join(headers, ", "), want) {
		t.Errorf("headers %q; want %s…", headers, want)
	}
	if j.Query != "token=***&a=b&s=***" || j.Body.Masked != true || !j.Body.JSON || j.Body.Cut || !strings.Contains(*j.Body.Text, `"n":1.0,"n":1.00,"token":"***"`) {
		t.Errorf("query %q, body %+v", j.Query, j.Body)
	}
	if j.EventCount != 2 || j.Next != nil || j.Events[0].Type != "event" || j.Events[1].Type != "anomaly" || j.Events[1].Place != 2 || j.Events[0].Effect == "" || j.Events[1].ID != "1.2" {
		t.Errorf("events %+v", j.Events)
	}
	if !strings.Contains(a.text, `"events":[{"type":"event"`) || strings.Contains(a.text, `"raw":[`) || strings.Contains(a.text, `"data":`) {
		t.Errorf("events repeat the body: %s", a.text)
	}
	if j.Commands.Show == "" || !strings.Contains(j.Commands.Raw, "waybill events show 1 --raw") || j.Commands.Learn != "" {
		t.Errorf("commands %+v", j.Commands)
	}
	file, ok := k.ask("/deliveries/1/body").value.(inspect.File)
	if !ok || file.Name != "delivery-1.json" || !strings.Contains(string(file.Body), testSecret) {
		t.Errorf("download %q: %s; want the bytes as they came", file.Name, file.Body)
	}
}

func TestDeliveryOfManyEventsIsShownInParts(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		var all []string
		for i := range 120 {
			all = append(all, eventText(fmt.Sprintf("e%d", i), "N", ""))
		}
		putAll(t, db, received("["+strings.Join(all, ",")+"]"))
	})
	var ids []string
	j := k.show("1").eventsJSON
	for {
		for _, e := range j.Events {
			ids = append(ids, e.EventID)
		}
		if j.EventCount != 120 {
			t.Errorf("%d events", j.EventCount)
		}
		if j.Next == nil {
			break
		}
		j, _ = k.ask(fmt.Sprintf("/deliveries/1/events?from=%d", *j.Next)).value.(eventsJSON)
	}
	if len(ids) != 120 || ids[119] != "e119" || ids[50] != "e50" {
		t.Errorf("events %v; want 120 in order", ids)
	}
	k.wants(k.ask("/deliveries/1/events?from=-1"), http.StatusOK, `"next":50`)
	k.wants(k.ask("/deliveries/1/events?from=x"), http.StatusOK, `"next":50`)
}

func TestDeliveryNamesTheEventThatCounts(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		first := received("[" + eventText("a", "N1", "") + "]")
		second := received("[" + eventText("a", "N1", `,"new":1`) + "]")
		same := first
		putAll(t, db, first, second, same, signed(t, "hmac-body-hex", received("["+eventText("a", "N2", "")+"]")))
	}, inEnforce...)
	two := k.show("2").Events[0]
	if two.Type != "conflict" || two.Current != "4" {
		t.Fatalf("the second: %+v", two)
	}
	if three := k.show("3").Events[0]; three.Type != "duplicate" || three.Effect == "" {
		t.Errorf("the third: %+v", three)
	}
	if one := k.show("1").Events[0]; one.Type != "superseded" || one.Current != "4" {
		t.Errorf("the first: %+v; want it superseded by the last", one)
	}
	if four := k.show("4").Events[0]; four.Type != "event" || len(four.Repeats) != 3 {
		t.Errorf("the fourth: %+v", four)
	}
}

func TestDeliveryShowsAnyBytes(t *testing.T) {
	large := `["` + strings.Repeat("ü", 5<<19) + `"]`
	bodies := []string{"", "\x00\xff" + strings.Repeat("z", maxBodyHex), "<p>\x1b[31m\u202e</p> " + testSecret, large, "\xff" + testSecret}
	k := newDesk(t, nil, func(db *store.DB) {
		for _, b := range bodies {
			putAll(t, db, received(b))
		}
	}, inEnforce...)
	for i, b := range bodies {
		j, file := k.show(fmt.Sprint(i+1)), k.ask(fmt.Sprintf("/deliveries/%d/body", i+1)).value.(inspect.File)
		if string(file.Body) != b || j.Body.Bytes != len(b) || j.Events[0].Type != "anomaly" {
			t.Errorf("body %d: %d bytes, download %d; want %d", i+1, j.Body.Bytes, len(file.Body), len(b))
		}
		if j.Body.JSON != (b == large) || (file.Name == fmt.Sprintf("delivery-%d.json", i+1)) != (b == large) {
			t.Errorf("body %d: JSON %v, %s", i+1, j.Body.JSON, file.Name)
		}
	}
	if b := k.show("2").Body; !b.Cut || b.Text != nil || len(b.Hex) != 2*maxBodyHex || !strings.HasPrefix(b.Hex, "00ff7a") {
		t.Errorf("bytes that are no text: cut %v, %.20s", b.Cut, b.Hex)
	}
	if b := k.show("3").Body; *b.Text != "<p>\x1b[31m\u202e</p> ***" || !b.Masked || b.Cut {
		t.Errorf("text: %+v", b)
	}
	if b := k.show("4").Body; !b.Cut || len(*b.Text) > maxBodyText || len(*b.Text) < maxBodyText-4 || b.Text != nil && !bytes.HasPrefix([]byte(large), []byte(*b.Text)) {
		t.Errorf("large body: cut %v, %d bytes", b.Cut, len(*b.Text))
	}
	if b := k.show("5").Body; strings.Contains(b.Hex, fmt.Sprintf("%x", testSecret)) || !b.Masked {
		t.Errorf("a secret in hex: %+v", b)
	}
}

func TestDeliveryThatIsNotThere(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		putAll(t, db, received("["+eventText("a", "N1", "")+"]"))
		d := received("[]", "X-Signature", "no")
		d.Verified, d.Reason = inbox.No, webhook.ReasonSignatureMalformed
		if _, err := db.PutRefused(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.PutRefused(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	})
	for _, id := range []string{"2", "0", "-1", "x", "refused:1", "refused:9", "refused:x", "99999999999999999999"} {
		for _, of := range []string{"", "/body", "/events?from=0", "/diagnosis", "/curl"} {
			k.wants(k.ask("/deliveries/"+id+of), http.StatusNotFound, `"hint":"`)
		}
	}
	if j := k.show("1"); !j.Pruned || j.Body != nil || j.Signature != nil || j.Events[0].EventID != "a" || len(j.Headers) != 0 {
		t.Errorf("pruned: %+v", j)
	}
	for _, of := range []string{"/body", "/curl", "/diagnosis"} {
		k.wants(k.ask("/deliveries/1"+of), http.StatusGone, "pruned")
	}
	j := k.show("refused:2")
	if !j.Refused || j.ID != "refused:2" || j.Reason != "signature_malformed" || j.Forwarding == nil || len(j.Events) != 0 || !strings.Contains(j.Commands.Readmit, "waybill events readmit refused:2") {
		t.Errorf("refused: %+v", j)
	}
	if f, ok := k.ask("/deliveries/refused:2/body").value.(inspect.File); !ok || f.Name != "refused-2.json" || string(f.Body) != "[]" {
		t.Errorf("download %+v", f)
	}
	k.wants(k.ask("/deliveries/refused:2/events?from=0"), http.StatusOK, `"events":[]`)
	empty := newDesk(t, nil, func(*store.DB) {}, "WAYBILL_STORE="+filepath.Join(t.TempDir(), "none.db"))
	k.wants(empty.ask("/deliveries/1"), http.StatusNotFound)
}

func TestQueriesAreMasked(t *testing.T) {
	fill := func(db *store.DB) {
		d := received("[]", "X-Auth", "clear", "X-Kept", "1")
		d.RawQuery = "api_key=clear&X-Amz-Signature=clear&code=clear&sign=abc&q=1"
		putAll(t, db, d)
	}
	k := newDesk(t, nil, fill)
	j := k.show("1")
	if j.Query != "api_key=***&X-Amz-Signature=***&code=***&sign=abc&q=1" || j.Headers[0].Value != "***" || j.Headers[1].Value != "1" {
		t.Errorf("query %q, headers %v", j.Query, j.Headers)
	}
	if c := k.curlOf("/deliveries/1/curl"); strings.Contains(c.Command, "clear") {
		t.Errorf("the command shows a credential: %s", c.Command)
	}
}

// A command for one target has the headers of that target, and shows that a query is masked.
func TestSendCommandsAreOfTheirTarget(t *testing.T) {
	one, two := "http://127.0.0.1:3001/slow?tok=abc", "http://127.0.0.1:3002/in"
	k := newDesk(t, []string{one, two}, func(db *store.DB) { putAll(t, db, received("[]")) })
	var headers []string
	events.TargetHeaderFlag(k.page.Call.Cmd, &headers)
	if err := k.page.Call.Cmd.Flags().Set("target-header", one+"=>X-One=env:ONE"); err != nil {
		t.Fatal(err)
	}
	c := k.show("1").Commands.Send
	if !strings.Contains(c[0].Replay, "slow?***") || !strings.Contains(c[0].Replay, "--target-header X-One=env:ONE") || strings.Contains(c[0].Replay, "abc") || strings.Contains(c[1].Replay, "X-One") {
		t.Errorf("commands %+v", c)
	}
}
