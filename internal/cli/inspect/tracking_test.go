package inspect_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/inspect"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/term"
)

// hostile is text that must reach a browser as it is, in JSON that no browser reads as
// anything else.
const hostile = `<img/src=x/onerror=alert(1)>`

// shop is a store with a sandbox that its trackings are of, and a page about it.
type shop struct {
	t    *testing.T
	env  []string
	call *command.Call
	get  func(path string) (int, map[string]any)
}

// openShop serves a page about a store in which trackings were created: two orders of
// one parcel, one of two, two that share a number, one with hostile text, and one that
// was rejected.
func openShop(t *testing.T) *shop {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Reject: "^BAD"})
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(box)
	t.Cleanup(func() {
		service.Close()
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	s := &shop{t: t, env: []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + filepath.Join(dir, "s.db")}}
	orders := "referId,rawTrackingNumber,carrierCode\nR1,N1,dhl\nR2,N2,ups\nR2,N3,ups\nR3,SHARED1,\nR4,SHARED1,\n" + hostile + ",N5,\nBAD1,N6,dhl\n"
	file := filepath.Join(dir, "orders.csv")
	if err := os.WriteFile(file, []byte(orders), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(command.Partial, "create", file, "--batch-size", "1") // a batch that is refused would be asked about first
	s.run(command.Partial, "show", "--run", "1")
	s.call, s.get = servePage(t, s.env)
	return s
}

// servePage serves a page with these settings, and returns how to ask it.
func servePage(t *testing.T, env []string) (*command.Call, func(path string) (int, map[string]any)) {
	t.Helper()
	c, _, _ := clitest.Call(t, env...)
	return c, serveCall(t, c)
}

// serveCall serves the page of a call, and returns how to ask it.
func serveCall(t *testing.T, c *command.Call) func(path string) (int, map[string]any) {
	t.Helper()
	p, err := inspect.Open(t.Context(), inspect.Place{Addr: "127.0.0.1:0"}, inspect.Options{Call: c})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Timeout: 30 * time.Second}
	base, token, _ := strings.Cut(p.SecretURL(), "#token=")
	ask := func(url string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Waybill-Token", token)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, body
	}
	return func(path string) (int, map[string]any) {
		t.Helper()
		status, body := ask(base + "api/v1" + path)
		if bytes.ContainsAny(body, "<>") {
			t.Errorf("%s: the answer has < or > in it: %s", path, body)
		}
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%s: %d %v: %s", path, status, err, body)
		}
		return status, v
	}
}

// run runs a command line, and returns what it prints.
func (s *shop) run(want command.Code, args ...string) string {
	s.t.Helper()
	var out, errs bytes.Buffer
	home := s.t.TempDir()
	a := &app.App{
		IO: term.New(strings.NewReader(""), &out, &errs, term.Facts{}), Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: s.env, WorkDir: home, Home: home}
		},
	}
	if code := cli.Run(s.t.Context(), a, args); code != want {
		s.t.Fatalf("%v: status %d; want %d: %s%s", args, code, want, out.String(), errs.String())
	}
	return out.String()
}

// receive stores an event of a verified delivery, or of one that did not verify.
func (s *shop) receive(verified inbox.Verified, id, number, label string, more ...string) {
	s.t.Helper()
	quoted := func(text string) string {
		b, err := json.Marshal(text)
		if err != nil {
			s.t.Fatal(err)
		}
		return string(b)
	}
	body := fmt.Sprintf(`[{"eventId":%q,"event":"router.moved","data":{"trackingNumber":%s,"status":7,"summary":{"statusLabel":%s}%s}}]`,
		id, quoted(number), quoted(label), strings.Join(more, ""))
	db, err := s.call.Store(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	d, rows := inbox.Decode(inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Body: []byte(body), Verified: verified, BodyAuthenticated: verified == inbox.Yes})
	if _, err := db.Inbox.Put(s.t.Context(), d, rows); err != nil {
		s.t.Fatal(err)
	}
}

// array returns a member of an answer that is an array of objects.
func array(v map[string]any, name string) (all []map[string]any) {
	list, _ := v[name].([]any)
	for _, e := range list {
		o, _ := e.(map[string]any)
		all = append(all, o)
	}
	return all
}

func TestAPageShowsTheAccountOfItsStoreAlone(t *testing.T) {
	s := openShop(t)
	_, get := servePage(t, append(s.env, "WAYBILL_ACCOUNT=beta"))
	if status, got := get("/tracking?referId=R1"); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(got["error"], got["hint"]), "belongs to account") {
		t.Errorf("for another account: %d %v", status, got)
	}
	_, get = servePage(t, s.env[2:])
	if status, got := get("/tracking?referId=R1"); status != http.StatusOK {
		t.Errorf("without an account: %d %v", status, got)
	}
	_, get = servePage(t, []string{"WAYBILL_ACCOUNT=a", "WAYBILL_STORE=" + filepath.Join(t.TempDir(), "none.db")})
	if status, got := get("/tracking?referId=R1"); status != http.StatusNotFound {
		t.Errorf("without a store: %d %v", status, got)
	}
}

func TestATrackingIsShownAsShowHasIt(t *testing.T) {
	s := openShop(t)
	var shown map[string]any
	if err := json.Unmarshal([]byte(s.run(command.OK, "show", "R1", "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	_, got := s.get("/tracking?referId=R1")
	parts := array(got, "trackings")
	if len(parts) != 1 {
		t.Fatalf("%d trackings: %v", len(parts), got)
	}
	for name, value := range shown {
		switch name {
		case "ref", "raw", "others", "message", "askedAt", "checkpoints", "anomalies", "learntAt":
			continue
		}
		if !reflect.DeepEqual(parts[0][name], value) {
			t.Errorf("%s is %v; show has %v", name, parts[0][name], value)
		}
	}
	stops, want := array(parts[0], "timeline"), array(shown, "checkpoints")
	if len(stops) != len(want) || len(stops) < 2 {
		t.Fatalf("%d checkpoints; show has %d", len(stops), len(want))
	}
	for i, stop := range stops {
		if stop["GMTTimestamp"] != want[i]["GMTTimestamp"] || stop["eventType"] != want[i]["eventType"] || stop["offset"] == "" {
			t.Errorf("checkpoint %d is %v; show has %v", i, stop, want[i])
		}
		if (stop["gap"] == nil) != (i == len(stops)-1) {
			t.Errorf("checkpoint %d has the gap %v", i, stop["gap"])
		}
	}
	if want := map[string]any{"show": "waybill show R1", "wait": "waybill wait R1"}; !reflect.DeepEqual(parts[0]["commands"], want) {
		t.Errorf("commands %v", parts[0]["commands"])
	}
}

func TestATrackingHasItsEventsAndWhatCannotBeRight(t *testing.T) {
	s := openShop(t)
	at := func(event, local, utc string) string {
		return fmt.Sprintf(`{"eventType":%q,"eventTimestamp":%q,"GMTTimestamp":%q}`, event, local, utc)
	}
	timeline := func(stops ...string) string {
		return `,"detail":{"trackingEvents":[` + strings.Join(stops, ",") + `]}`
	}
	left, strange := at("Left", "2025-01-05T11:00:00", "2025-01-05T10:00:00Z"), at("Strange", "2025-01-06T12:00:00", "2025-01-05T10:30:00Z")
	s.receive(inbox.Yes, "e1", "FOREIGN1", hostile, timeline(left, strange))
	s.receive(inbox.Yes, "e2", "FOREIGN1", "MOVED", timeline(left, strange, at("Here", "2025-01-09T15:30:00", "2025-01-09T10:00:00Z")))
	s.receive(inbox.No, "e3", "FOREIGN1", "FORGED")
	status, got := s.get("/tracking?trackingNumber=FOREIGN1")
	parts := array(got, "trackings")
	if status != http.StatusOK || len(parts) != 1 {
		t.Fatalf("status %d: %v", status, got)
	}
	p := parts[0]
	if p["statusText"] != "MOVED" || p["learntFrom"] != "event" || p["referId"] != "" {
		t.Errorf("status %v from %v, referId %v", p["statusText"], p["learntFrom"], p["referId"])
	}
	if unverified, _ := p["unverified"].(map[string]any); unverified["statusLabel"] != "FORGED" {
		t.Errorf("unverified %v", p["unverified"])
	}
	var stops []string
	for _, stop := range array(p, "timeline") {
		text := fmt.Sprint(stop["eventType"], " ", stop["local"], " ", stop["offset"])
		if gap, _ := stop["gap"].(map[string]any); gap != nil {
			text += fmt.Sprint(" ", gap["text"], " ", gap["long"])
		}
		for _, a := range array(stop, "anomalies") {
			text += fmt.Sprint(" ", a["kind"])
		}
		stops = append(stops, text)
	}
	want := "Here 2025-01-09 15:30 +05:30 4 days true\n" +
		"Strange 2025-01-06 12:00  30 min false impossible_offset\n" +
		"Left 2025-01-05 11:00 +01:00"
	if all := strings.Join(stops, "\n"); all != want {
		t.Errorf("timeline\n%s\nwant\n%s", all, want)
	}
	events := array(got, "events")
	if len(events) != 3 || events[0]["id"] != "3" || events[0]["trust"] == "yes" || events[2]["statusText"] != hostile {
		t.Errorf("events %v", events)
	}
	if want := "waybill show FOREIGN1 --by tracking-number"; p["commands"].(map[string]any)["show"] != want {
		t.Errorf("commands %v", p["commands"])
	}
	_, got = s.get("/tracking?trackingNumber=UNSEEN1")
	if got["code"] != "not_found" {
		t.Errorf("a number of which nothing is known: %v", got)
	}
	s.receive(inbox.No, "e4", "UNSEEN1", "FORGED")
	if _, got = s.get("/tracking?trackingNumber=UNSEEN1"); len(array(got, "events")) != 1 || array(got, "trackings")[0]["phase"] != "undecided" {
		t.Errorf("a number with an unverified event alone: %v", got)
	}
}

func TestATrackingIsFoundByOrderAndNumber(t *testing.T) {
	s := openShop(t)
	for _, line := range []struct{ query, want string }{
		{"referId=R2", "R2 N2, R2 N3"},
		{"referId=R2&trackingNumber=n-3", "R2 N3"},
		{"trackingNumber=SHARED1", "R3 SHARED1, R4 SHARED1"},
		{"referId=" + url.QueryEscape(hostile), hostile + " N5"},
		{"referId=BAD1", "BAD1 N6"},
	} {
		_, got := s.get("/tracking?" + line.query)
		var all []string
		for _, p := range array(got, "trackings") {
			all = append(all, fmt.Sprint(p["referId"], " ", p["trackingNumber"]))
		}
		if strings.Join(all, ", ") != line.want {
			t.Errorf("%s: %v; want %s", line.query, all, line.want)
		}
	}
	_, got := s.get("/tracking?referId=BAD1")
	if p := array(got, "trackings")[0]; p["tone"] != "bad" || p["reason"] == "" {
		t.Errorf("a rejected one: %v", p)
	}
	if status, _ := s.get("/tracking?"); status != http.StatusBadRequest {
		t.Errorf("without a name: status %d", status)
	}
}

// A read-only page writes nothing to a store, also not to one that is made later.
func TestReadOnlyPageWritesNothing(t *testing.T) {
	s := openShop(t)
	s.receive(inbox.Yes, "e1", "N1", "MOVED")
	dir := strings.TrimSuffix(s.call.Config.Store, "s.db")
	env := slices.Concat(s.env[:2], []string{"WAYBILL_STORE=" + dir + "later.db"})
	reader, _, stderr := clitest.Call(t, env...)
	reader.ReadOnly = true
	get := serveCall(t, reader)
	if status, v := get("/deliveries"); status != http.StatusOK || len(array(v, "deliveries")) != 0 {
		t.Fatalf("without a store: %d %v", status, v)
	}
	s.run(command.OK, "store", "copy", dir+"s.db", dir+"later.db")
	file, err := sql.Open("sqlite", dir+"later.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.ExecContext(t.Context(), "UPDATE batches SET state = 'sending', owner = 'gone' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/tracking?referId=R1", "/session", "/deliveries", "/deliveries/1"} {
		if status, v := get(path); status != http.StatusOK {
			t.Errorf("%s: %d %v", path, status, v)
		}
	}
	if _, err := reader.Store(t.Context()); !errors.Is(err, inbox.ErrReadOnly) {
		t.Errorf("the store can be written: %v", err)
	}
	db, err := reader.ExistingStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at, last, err := db.Events.Followed(t.Context()); err != nil || at >= last {
		t.Errorf("the events were recorded: %d of %d, %v", at, last, err)
	}
	var state string
	if err := file.QueryRowContext(t.Context(), "SELECT state FROM batches WHERE id = 1").Scan(&state); err != nil || state != "sending" {
		t.Errorf("rows of a process that ended were changed: %s, %v", state, err)
	}
	if stderr.Len() > 0 {
		t.Errorf("printed: %s", stderr)
	}
}
