package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// newPage returns a page that is not served, and its store.
func newPage(t testing.TB, env ...string) (*Page, *app.Store) {
	t.Helper()
	c, _, _ := clitest.Call(t, append(env, "WAYBILL_ACCOUNT=a")...)
	db, err := c.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Page{Options: Options{Call: c}, wake: make(chan struct{})}, db
}

// put stores deliveries with these bodies.
func put(t testing.TB, db *app.Store, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		d, rows := inbox.Decode(inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: inbox.Yes, Body: []byte(body)})
		if _, err := db.Inbox.Put(t.Context(), d, rows); err != nil {
			t.Fatal(err)
		}
	}
}

// fill stores n deliveries without events, many at once.
func fill(t testing.TB, db *app.Store, n int) {
	t.Helper()
	var all sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range 64 {
		all.Go(func() {
			for range next {
				if _, err := db.Inbox.Put(t.Context(), inbox.Delivery{ReceivedAt: time.Now(), Body: []byte("[]")}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// event is the JSON of an event.
func event(id, number, more string) string {
	return fmt.Sprintf(`{"eventId":%q,"event":"router.updated","data":{"trackingNumber":%q%s}}`, id, number, more)
}

func list(t testing.TB, p *Page, query string) listJSON {
	t.Helper()
	j, err := p.listDeliveries(httptest.NewRequest(http.MethodGet, "/api/v1/deliveries?"+query, nil))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return j
}

func ids(rows []rowJSON) string {
	var all []string
	for _, row := range rows {
		all = append(all, row.ID)
	}
	return strings.Join(all, " ")
}

func TestListsByNumber(t *testing.T) {
	p, db := newPage(t)
	if j := list(t, p, ""); len(j.Deliveries) != 0 || j.First != 0 || j.Last != 0 || j.Next != nil {
		t.Errorf("empty store: %+v", j)
	}
	for i := range 5 {
		put(t, db, "["+event(fmt.Sprint(i), "1Z", "")+"]")
	}
	for query, want := range map[string]string{
		"":                           "5 4 3 2 1, next 0",
		"limit=2":                    "5 4, next 4",
		"limit=2&before=4":           "3 2, next 2",
		"limit=2&before=2":           "1, next 0",
		"before=1":                   ", next 0",
		"from=2&to=4":                "4 3 2, next 0",
		"from=4&to=3":                ", next 0",
		"from=3&to=99":               "5 4 3, next 0",
		"from=-1&limit=x&before=y":   "5 4 3 2 1, next 0",
		"search=number%3D1z":         "5 4 3 2 1, next 0",
		"search=number%3D1z&limit=5": "5 4 3 2 1, next 0",
		"search=Z&limit=2":           "5 4, next 4",
		"search=9Z":                  ", next 0",

		"search=is%3Dunverified": ", next 0",
		"search=is%3Danomaly":    ", next 0",
		"search=is%3Dfailed":     ", next 0",
		"search=is%3Dmade-up":    ", next 0",
	} {
		j := list(t, p, query)
		var next int64
		if j.Next != nil {
			next = *j.Next
		}
		if got := fmt.Sprintf("%s, next %d", ids(j.Deliveries), next); got != want {
			t.Errorf("%q: %s; want %s", query, got, want)
		}
		if j.First != 1 || j.Last != 5 {
			t.Errorf("%q: from %d to %d; want 1 to 5", query, j.First, j.Last)
		}
	}
	put(t, db, "[7]")
	put(t, db, `[7,{"eventId":"x","data":{"trackingNumber":"9Z"}}]`)
	for query, want := range map[string]string{
		"is%3Danomaly": "7 6", "is%3Danomaly,number%3D9z": "7", "is%3Danomaly,9Z": "7", "9z,is%3Danomaly": "7", "is%3Dfailed,number%3D9z": "",
	} {
		if got := ids(list(t, p, "search="+query).Deliveries); got != want {
			t.Errorf("%s: %s; want %s", query, got, want)
		}
	}
	for _, query := range []string{"search=event%3Da,x", "search=is%3Dodd"} {
		_, err := p.listDeliveries(httptest.NewRequest(http.MethodGet, "/api/v1/deliveries?"+query, nil))
		if code, hint := command.CodeAndHint(err); code != command.Usage || hint == "" {
			t.Errorf("%q: error %v, code %v, hint %q; want a usage error with a hint", query, err, code, hint)
		}
	}
}

func TestFiltersAndSearches(t *testing.T) {
	p, db := newPage(t, "WAYBILL_STATUSES_7=CheckOwner at customs")
	var many []string
	for i := range 9 {
		many = append(many, event(fmt.Sprint("many", i), fmt.Sprint("M-", i), ""))
	}
	put(t, db,
		"["+event("a", "1Z-1", `,"summary":{"statusLabel":"DELIVERED","latestEvent":"An T\u00fcr 5 abgestellt"}`)+"]", // 1
		"["+strings.Join(many, ",")+"]", // 2
		"not JSON: Straße",              // 3
		`[{"eventId":"b","event":"router.x","data":{"status":7,"note":"C:\\\\Temp \ud83d\ude9a \"quoted\""}}]`, // 4
		"")
	for text, want := range map[string]string{
		"event=router.*":           "4 2 1",
		"number=1z1":               "1",
		"number=m8":                "2",
		"status=delivered":         "1",
		"/data/status=7":           "4",
		"/data/trackingNumber=M-8": "2",
		"an tür":                   "1",
		`T\u00FC`:                  "1",
		"STRASSE":                  "",
		"STRAßE":                   "3",
		"🚚":                        "4",
		`"QUOTED"`:                 "4",
		`c:\\temp`:                 "4",
		`\ud83d\ude9a`:             "4",
		"router":                   "4 2 1",
		"router=":                  "",
	} {
		if got := ids(list(t, p, url.Values{"search": {text}}.Encode()).Deliveries); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
	rows := list(t, p, "").Deliveries
	if got := rows[4].Events[0]; got.StatusText != "DELIVERED" || got.Tone != "good" || got.LatestEvent != "An Tür 5 abgestellt" {
		t.Errorf("row %+v", rows[4])
	}
	if got := rows[3]; got.EventCount != 9 || len(got.Events) != inbox.MaxOverviewEvents || got.Events[4].ID != "2.5" {
		t.Errorf("row of many events: %+v", got)
	}
	if _, err := db.Retention.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"search=router": "", "search=number%3Dm8": "2"} {
		if got := ids(list(t, p, query).Deliveries); got != want {
			t.Errorf("pruned, %s: %q; want %q", query, got, want)
		}
	}
}

func TestSearchIsBounded(t *testing.T) {
	p, db := newPage(t)
	put(t, db, `["the needle"]`)
	fill(t, db, maxExamined+10)
	first := list(t, p, "search=NEEDLE")
	if len(first.Deliveries) != 0 || first.Examined != maxExamined || first.Next == nil || *first.Next != 12 {
		t.Fatalf("first answer: %+v; want none of %d, next 12", first, maxExamined)
	}
	second := list(t, p, fmt.Sprintf("search=NEEDLE&before=%d", *first.Next))
	if ids(second.Deliveries) != "1" || second.Examined != 11 || second.Next != nil {
		t.Errorf("second answer: %+v", second)
	}

	large := strings.Repeat("x", maxExaminedBytes/2+1)
	put(t, db, large, large, large)
	if j := list(t, p, "search=NEEDLE"); j.Examined != 2 {
		t.Errorf("%d large bodies examined; want 2", j.Examined)
	}
}

// What a text finds is shown as in the list, whichever request finds it.
func TestFoundByTextIsWhole(t *testing.T) {
	p, db := newPage(t)
	put(t, db, "["+event("1", "1Z1", "")+"]", "[]", "["+event("3", "1Z3", "")+"]")
	for search, want := range map[string]string{"1z1": "1", "1Z": "3 1"} {
		found := list(t, p, "search="+search).Deliveries
		if ids(found) != want {
			t.Fatalf("%s: found %s; want %s", search, ids(found), want)
		}
		for _, row := range found {
			if whole := list(t, p, fmt.Sprintf("from=%[1]s&to=%[1]s", row.ID)).Deliveries; len(row.Events) != 1 || !reflect.DeepEqual(row, whole[0]) {
				t.Errorf("%s: found %+v; the list has %+v", search, row, whole)
			}
		}
	}
}

func TestListsRefused(t *testing.T) {
	p, db := newPage(t)
	for i := range 3 {
		d := inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", RemoteAddr: "127.0.0.1:1", Verified: inbox.No, Reason: "signature missing", Body: fmt.Appendf(nil, "body %d", i)}
		if _, err := db.Inbox.PutRefused(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	put(t, db, "[1]")
	j := list(t, p, "refused=1&limit=2")
	if ids(j.Deliveries) != "refused:3 refused:2" || j.First != 1 || j.Last != 3 || *j.Next != 2 || j.Deliveries[0].Reason != "signature missing" {
		t.Errorf("refused: %+v", j)
	}
	if got := ids(list(t, p, "refused=1&search=BODY%201").Deliveries); got != "refused:2" {
		t.Errorf("found %q; want refused:2", got)
	}
	m, err := p.message(t.Context(), matcher{refused: true}, 1)
	if err != nil || ids(m.Rows) != "refused:3 refused:2" || m.Last != 3 || m.Refused != 3 {
		t.Errorf("message: %+v, %v", m, err)
	}
}

// A token in the path shows neither in the list nor in the stream.
func TestRowsMaskSecretsInPaths(t *testing.T) {
	p, db := newPage(t, "WAYBILL_WEBHOOK_SECRET="+testSecret)
	if _, err := db.Inbox.Put(t.Context(), inbox.Delivery{ReceivedAt: time.Now(), Path: "/hook/" + testSecret, Body: []byte("[]")}, nil); err != nil {
		t.Fatal(err)
	}
	const want = "/hook/***"
	if got := list(t, p, "").Deliveries[0].Path; got != want {
		t.Errorf("the list has %q; want %q", got, want)
	}
	all, err := p.message(t.Context(), matcher{}, 0)
	if err != nil || all.Rows[0].Path != want {
		t.Errorf("the stream has %+v, %v; want %q", all.Rows, err, want)
	}
	found, err := p.message(t.Context(), matcher{text: []byte("[")}, 0)
	if err != nil || len(found.Rows) != 1 || found.Rows[0].Path != want {
		t.Errorf("the stream of a search has %+v, %v; want %q", found.Rows, err, want)
	}
}

// follow returns the IDs that a stream sends from a number on until it has sent all up to
// last, oldest first, and the number to continue after. It wakes the stream each time.
func follow(t *testing.T, p *Page, query string, after, last int64) (got []string, id int64, more bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := errors.New("done")
	err := p.stream(ctx, httptest.NewRequest(http.MethodGet, "/api/v1/stream?"+query, nil), after, func(n int64, _ string, v any) error {
		j, ok := v.(streamJSON)
		if !ok || n != j.Last || n < id {
			t.Errorf("message %d after %d: %+v", n, id, v)
		}
		for _, row := range slices.Backward(j.Rows) {
			got = append(got, row.ID)
		}
		id, more = n, more || j.More
		if n >= last {
			return done
		}
		p.mu.Lock()
		close(p.wake)
		p.wake = make(chan struct{})
		p.mu.Unlock()
		return nil
	})
	if !errors.Is(err, done) {
		t.Fatalf("stream of %s after %d: %v", query, after, err)
	}
	return got, id, more
}

func TestStreamContinuesWhereItWas(t *testing.T) {
	p, db := newPage(t)
	put(t, db, "[1]", "[2]")
	got, id, more := follow(t, p, "", 0, 2)
	if fmt.Sprint(got) != "[1 2]" || more {
		t.Errorf("sent %v, more %v; want 1 and 2", got, more)
	}
	put(t, db, "[3]", "[4]")
	p.wake = make(chan struct{})
	if got, id, _ = follow(t, p, "", id, 4); fmt.Sprint(got) != "[3 4]" {
		t.Errorf("sent %v after 2; want 3 and 4", got)
	}
	if got, _, _ = follow(t, p, "", id, 4); got != nil {
		t.Errorf("sent %v after 4; want nothing", got)
	}
	fill(t, db, 2*maxSent)
	p.wake = make(chan struct{})
	got, _, more = follow(t, p, "", 4, 4+2*maxSent)
	if len(got) != maxSent || got[0] != fmt.Sprint(5+maxSent) || !more {
		t.Errorf("sent %d rows from %s on, more %v; want the newest %d, and more", len(got), got[0], more, maxSent)
	}
}

func TestStreamFindsTheNewestThatMatch(t *testing.T) {
	p, db := newPage(t)
	var want []string
	const last = 2*examinedAtOnce + 400
	for i := 1; i < last; i += 400 {
		if i > last-maxExamined {
			want = append(want, fmt.Sprint(i))
		}
		put(t, db, "["+event(fmt.Sprint(i), "1Z", "")+"]")
		fill(t, db, 399)
	}
	for _, query := range []string{"search=number%3D1Z", "search=1z"} {
		if got, _, more := follow(t, p, query, 0, last); !slices.Equal(got, want) || !more {
			t.Errorf("%s: sent %v, more %v; want %v, and more", query, got, more, want)
		}
		if got, _, more := follow(t, p, query, 400, last); !slices.Equal(got, want) || more {
			t.Errorf("%s after 400: sent %v, more %v; want %v", query, got, more, want)
		}
	}
}

// What leaves the page can't control a terminal that prints it.
func TestAnswersEscapeControlCharacters(t *testing.T) {
	c, _, _ := clitest.Call(t, "WAYBILL_ACCOUNT=a")
	hide := maskerOf(Options{Call: c})
	if got, want := string(hide([]byte("{\"a\":\"x\u202ey\u200b\u0085\"}"))), `{"a":"x\u202ey\u200b\u0085"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
