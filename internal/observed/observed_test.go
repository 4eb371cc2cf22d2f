package observed_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/observed"
)

var at = time.UnixMilli(5000)

// names returns the undocumented entries, those of kinds alone if there are any.
func names(all []observed.Entry, kinds ...observed.Kind) []string {
	all, _ = observed.Sum(all)
	var found []string
	for _, e := range all {
		if !e.Documented && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) {
			found = append(found, string(e.Kind)+" "+e.Value)
		}
	}
	return found
}

func answer(source observed.Source, status int, body string) observed.Answer {
	return observed.Answer{Source: source, Status: status, Body: []byte(body), JSON: json.Valid([]byte(body))}
}

func TestAnswersShowWhatIsNotDocumented(t *testing.T) {
	tests := []struct {
		name string
		a    observed.Answer
		want []string
	}{
		{"nothing new", answer(observed.Query, 200, `{"message":"Processing"}`), nil},
		{
			"a tracking", answer(observed.Query, 200, `{"message":"x","data":{"referId":"R","trackingNumber":"N","status":1,"summary":{"status":1,"statusLabel":"DELIVERED","id":"i"},"error":null}}`),
			nil,
		},
		{
			"fields and a status", answer(observed.Query, 200, `{"data":[{"trackingNumber":"N","eta":{"from":1,"to":{"x":2}},"summary":{"status":7,"statusLabel":"LOST","extra":1}}]}`),
			[]string{"status 7 LOST", "field query data[].eta.from", "field query data[].eta.to.x", "field query data[].summary.extra"},
		},
		{
			"an envelope", answer("create-v2", 202, `{"code":0,"page":{"size":1},"items":[{"referId":"R","ok":true}],"error":null,"list":[]}`),
			[]string{
				"field create-v2 code", "field create-v2 error", "field create-v2 items[].ok", "field create-v2 list", "field create-v2 page.size", "http-status create-v2 202",
			},
		},
		{"another name for delivered", answer(observed.Query, 200, `{"summary":{"status":1,"statusLabel":"RETURNED"}}`), []string{"status 1 RETURNED"}},
		{"keys that are identifiers", answer(observed.Query, 200, `{"ORD-12345":{"trackingNumber":"N","ref 9":1}}`), []string{"field query *.*"}},
		{
			"errors", answer("create-v1", 422, `{"error":{"code":"E_ROW","detail":"order 12345 of Jane"}}`),
			[]string{"http-status create-v1 422", "error create-v1 error E_ROW"},
		},
		{"a web page", answer(observed.Query, 502, "<html>"), []string{"http-status query 502"}},
		{"deep", answer("api", 200, strings.Repeat("[", 9000)+strings.Repeat("]", 9000)), []string{"field api " + strings.Repeat("[]", 16)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := observed.NewRecorder()
			r.Answer(tt.a, at)
			if got := names(r.Take()); !slices.Equal(got, tt.want) {
				t.Errorf("undocumented:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestEventsAreHeldAgainstTheDocumentToThePath(t *testing.T) {
	r := observed.NewRecorder()
	r.Event(observed.Event{
		Header: map[string][]string{"content-type": {"application/json"}, "x-SIGN": {"sha256=ab12"}},
		Body: []byte(`{"eventId":"e","event":"router.held","version":2,"data":{"referId":"R","status":7,"statusTrack":"held","created":"x",
			"summary":{"id":"i","statusLabel":"HELD","status":7},"detail":{"trackingEvents":[{"eventType":"x","signer":"Jane Doe"}]},"error":{"code":17}}}`),
	}, at)
	all := r.Take()
	want := []string{
		"status 7 HELD", "status 7 held", "event router.held", "field delivery data.created", "field delivery data.detail.trackingEvents[].signer",
		"field delivery data.referId", "field delivery version", "header delivery X-Sign", "error delivery data.error 17",
	}
	if got := names(all); !slices.Equal(got, want) {
		t.Errorf("undocumented:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Of nothing that identifies a shipment, a person or a key does the register hold a
// part, wherever in an answer it stands.
func TestRegisterHoldsNoValues(t *testing.T) {
	const secret = "Zq7-kept-4711-Süd@x.example"
	literal, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := observed.NewRecorder()
	for _, form := range []string{
		`{"message":%s}`, `{%s:1}`, `{%s:{"trackingNumber":"N"}}`, `[%s]`, `{"error":{"code":%s,"type":%s}}`, `{"data":{"trackingNumber":%s,"status":%s,"statusTrack":%s,"x":[{"y":%s}]}}`,
		`{"summary":{"statusLabel":%s,"latestEvent":%s}}`, `{"event":%s,"data":{"status":%s,"error":%s}}`, `{"trackingEvents":[{"eventType":%s,"eventCity":%s}]}`,
	} {
		body := strings.ReplaceAll(form, "%s", string(literal))
		a := answer(observed.Query, 200, body)
		a.Header = map[string][]string{secret: {secret}, "X-Id": {secret}}
		if !a.JSON {
			t.Fatal(body)
		}
		r.Answer(a, at)
		if strings.HasPrefix(body, "{") {
			r.Event(observed.Event{Body: []byte(body), Header: a.Header}, at)
		}
	}
	all := r.Take()
	if len(all) < 20 {
		t.Fatalf("%d entries", len(all))
	}
	for _, e := range all {
		for _, part := range []string{"Zq7", "kept", "4711", "Süd", "example"} {
			if strings.Contains(e.Value, part) {
				t.Errorf("%q in %+v", part, e)
			}
		}
	}
}

// What is likely an identifier or a sentence is no word of a vocabulary.
func TestIdentifiersAreNoWords(t *testing.T) {
	for _, text := range []string{"SO-123-A", "ORD-12-AB", "A-1", "1Z9A9B9C", "a1b2c3d4e5f6", "Delivered to Maria Huber"} {
		r := observed.NewRecorder()
		r.Answer(answer(observed.Query, 200, fmt.Sprintf(`{"data":{"trackingNumber":"N","status":%[1]q,"statusTrack":%[1]q,%[1]q:1},"error":{"code":%[1]q}}`, text)), at)
		for _, e := range r.Take() {
			if strings.Contains(e.Value, text) {
				t.Errorf("%q in %+v", text, e)
			}
		}
	}
	for _, text := range []string{"Out for delivery", "IN_TRANSIT", "E_422", "E422", "line2", "out-for-delivery"} {
		r := observed.NewRecorder()
		r.Answer(answer(observed.Query, 200, fmt.Sprintf(`{"data":{"trackingNumber":"N","status":%q}}`, text)), at)
		if got := names(r.Take(), observed.Status); !slices.Equal(got, []string{"status " + text}) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestEveryAnswerIsCountedOnce(t *testing.T) {
	r := observed.NewRecorder()
	body := func(n int) string {
		steps := strings.Repeat(`,{"eventType":"y"}`, n)
		return fmt.Sprintf(`{"data":{"trackingNumber":"N%d","status":%d,"detail":{"trackingEvents":[{"eventType":"x"}%s]}}}`, n, 2+n%3, steps)
	}
	for n := range 300 {
		r.Answer(answer(observed.Query, 200, body(n)), time.UnixMilli(int64(n)))
	}
	all := r.Take()
	want := map[string]int64{"2": 100, "3": 100, "4": 100, "query data.status": 300, "query data.detail.trackingEvents[].eventType": 300, "query 200": 300}
	for _, e := range all {
		if n, ok := want[e.Value]; ok && (e.Count != n || e.Last.UnixMilli() < 297) {
			t.Errorf("%s: %d, last %d; want %d", e.Value, e.Count, e.Last.UnixMilli(), n)
		}
		delete(want, e.Value)
	}
	if len(want) > 0 {
		t.Errorf("not met: %v", want)
	}
	if again := r.Take(); len(again) > 0 {
		t.Errorf("taken twice: %v", again)
	}
	r.Answer(answer(observed.Query, 200, body(1)), time.UnixMilli(900))
	for _, e := range r.Take() {
		if e.Count != 1 || e.First.UnixMilli() != 900 {
			t.Errorf("after that: %+v", e)
		}
	}
}

// Answers that look alike count once each, however many kinds of them there are.
func TestKindsOfAnswersAreCounted(t *testing.T) {
	r := observed.NewRecorder()
	const kinds, times = 400, 3
	for n := range kinds * times {
		more := strings.Repeat(`,{"x":1}`, n/kinds)
		body := fmt.Sprintf(`{"data":[{"trackingNumber":"N%d","status":%d}%s]}`, n, n%kinds, more)
		r.Answer(answer(observed.Query, 200, body), at)
	}
	want := map[observed.Kind]int64{observed.Status: times, observed.HTTPStatus: kinds * times}
	for _, e := range r.Take() {
		count := want[e.Kind]
		switch e.Value {
		case "query data[].x":
			count = kinds * (times - 1)
		case "query data[].trackingNumber", "query data[].status":
			count = kinds * times
		}
		if e.Count != count {
			t.Errorf("%s %s: %d; want %d", e.Kind, e.Value, e.Count, count)
		}
	}
}

// However much is sent, so much is kept.
func TestRecorderIsBounded(t *testing.T) {
	r := observed.NewRecorder()
	letters := func(n int) string {
		return strings.Map(func(c rune) rune { return c - '0' + 'a' }, fmt.Sprintf("%05d", n))
	}
	const sent = 3000
	for n := range sent {
		r.Answer(answer(observed.Query, 200, `{"data":{"status":"`+letters(n)+`","trackingNumber":"N","x`+letters(n)+strings.Repeat("y", 300)+`":1,"f`+letters(n)+`":1}}`), at)
	}
	kinds, beyond := map[observed.Kind]int{}, map[observed.Kind]int64{}
	for _, e := range r.Take() {
		kinds[e.Kind]++
		if e.Value == "" {
			beyond[e.Kind] = e.Count
		}
		if len(e.Value) > 200 {
			t.Errorf("%d bytes of a value", len(e.Value))
		}
	}
	for _, k := range []observed.Kind{observed.Status, observed.Field} {
		if kinds[k] > observed.MaxEntries+1 || beyond[k] < sent-observed.MaxEntries-5 {
			t.Errorf("%s: %d entries, %d beyond", k, kinds[k], beyond[k])
		}
	}
}

// One event with many names counts once beyond the limit; one that is too long is not read.
func TestLargeEventsAreBounded(t *testing.T) {
	letters := func(n int) string {
		return strings.Map(func(c rune) rune { return c - '0' + 'a' }, fmt.Sprintf("%05d", n))
	}
	var body strings.Builder
	body.WriteString(`{"event":"router.held"`)
	for n := range 20_000 {
		fmt.Fprintf(&body, `,"x%s":1`, letters(n))
	}
	r := observed.NewRecorder()
	r.Event(observed.Event{Body: []byte(body.String() + "}")}, at)
	fields := 0
	for _, e := range r.Take() {
		if e.Kind == observed.Field {
			fields++
		}
		if e.Count != 1 {
			t.Errorf("%s %q: %d times in one event", e.Kind, e.Value, e.Count)
		}
	}
	if fields != observed.MaxEntries+1 {
		t.Errorf("%d entries", fields)
	}
	r = observed.NewRecorder()
	fmt.Fprintf(&body, `,"y":%q}`, strings.Repeat("y", 4<<20))
	r.Event(observed.Event{Body: []byte(body.String())}, at)
	if got := r.Take(); len(got) > 0 {
		t.Errorf("of a large event %d entries; want none", len(got))
	}
}

func TestRegistersAdmitUpToALimit(t *testing.T) {
	entry := func(name string) observed.Entry {
		return observed.Entry{Key: observed.Key{Kind: observed.Field, Value: name}, Count: 1, First: at, Last: at}
	}
	var known []observed.Entry
	for n := range observed.MaxEntries - 1 {
		known = append(known, entry(fmt.Sprint("query a", n)))
	}
	got := observed.Admit(known, []observed.Entry{entry("query new"), entry("query b"), entry("query c"), entry("query a1"), {Key: observed.Key{Kind: observed.Field}, Count: 5}})
	var lines []string
	for _, e := range got {
		lines = append(lines, fmt.Sprint(e.Value, " ", e.Count))
	}
	if want := []string{" 7", "query a1 1", "query new 1"}; !slices.Equal(lines, want) {
		t.Errorf("admitted %q; want %q", lines, want)
	}
	all, notKept := observed.Sum(known, got)
	if len(all) != observed.MaxEntries || notKept[observed.Field] != 7 {
		t.Errorf("%d entries, %v not kept", len(all), notKept)
	}
}

func FuzzRecorder(f *testing.F) {
	for _, body := range []string{`{"data":{"status":1,"summary":{"x":[]}}}`, `[[{}]]`, `{"a":{"trackingEvents":[null,{"eventType":1}]},"error":[1]}`, `""`, `{"statusLabel":"\ud800"}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := observed.NewRecorder()
		valid := json.Valid(body)
		r.Answer(observed.Answer{Source: observed.Query, Status: 200, Body: body, JSON: valid}, at)
		if valid {
			r.Event(observed.Event{Body: body}, at)
		}
		for _, e := range r.Take() {
			if e.Value == "" || len(e.Value) > 200 {
				t.Errorf("%+v", e)
			}
		}
	})
}
