package view

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
)

// Whatever an event holds, it is appended as package encoding/json encodes it: each
// field alone, and all of them.
func TestAppendEvent(t *testing.T) {
	texts := []string{
		"", "plain ~", `"quoted\`, "line\nbreak\t\x00\x1b[31m\x7f", "<script>&amp;</script>", "é 日本 😀", "\u00ad\u0085\u200b\u202e\u2028\u2029\ufeff\ufffd",
		"\xff\xc3\xed\xa0\x80 torn \xe2\x80", "\U000e0041\U0010ffff", strings.Repeat("x\"", 10_000),
	}
	raws := []string{
		`null`, `1`, ` -0.0e+10 `, `"1-\u0044\/ \" \\"`, "\"\u2028\u202e\x7f\xff<&>\"", "{\"a b\" : [ 1 , {\t} , \"x \\\\\" ]\r\n, \"a b\":\"\\ud83d\" }", `[ ]`,
		strings.Repeat(" [", 500) + strings.Repeat("] ", 500), "{\"\xe2\x80\xae\": \"\U000e0041\"}",
	}
	numbers := []int64{0, 1, -1, 1 << 62}
	times := []time.Time{{}, time.Date(2026, 3, 5, 3, 10, 0, 120_000_000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	check := func(e Event) {
		t.Helper()
		want, wantErr := term.AppendJSON(nil, e)
		got, err := AppendEvent([]byte("x"), e)
		if (err != nil) != (wantErr != nil) || err == nil && string(got) != "x"+string(want) {
			t.Errorf("got  %.300q, %v\nwant %.300q, %v", got, err, "x"+string(want), wantErr)
		}
	}
	blank := func() Event { return Event{Status: JSONOrNull(""), Data: JSONOrNull("")} }
	fields := reflect.TypeFor[Event]().NumField()
	for n := range texts {
		all := blank()
		for i := range fields {
			one := blank()
			for _, e := range []*Event{&one, &all} {
				switch f := reflect.ValueOf(e).Elem().Field(i); f.Interface().(type) {
				case json.RawMessage:
					f.SetBytes([]byte(raws[n%len(raws)]))
				case time.Time:
					f.Set(reflect.ValueOf(times[n%len(times)]))
				case int64:
					f.SetInt(numbers[n%len(numbers)])
				case bool:
					f.SetBool(n%2 == 0)
				default:
					f.SetString(texts[n])
				}
			}
			check(one)
		}
		check(all)
	}
}

func TestErrorsOfEvents(t *testing.T) {
	for data, want := range map[string][3]string{
		`{"status":7,"error":{"code":3,"message":"no carrier"}}`: {`{"code":3,"message":"no carrier"}`, "error, MOVING (7)", "no carrier"},
		`{"error":"lost"}`: {`"lost"`, "error, MOVING (7)", "lost"},
		`{"error":null}`:   {"", "MOVING (7)", "Left"},
		``:                 {"", "MOVING (7)", "Left"},
	} {
		e := inbox.Event{Status: "7", StatusLabel: "MOVING", LatestEvent: "Left", Data: json.RawMessage(data)}
		status, latest, _ := StatusNames(nil).EventTexts(e)
		if got := [3]string{string(NewEvent(e).Error), status, latest}; got != want {
			t.Errorf("%s: %q; want %q", data, got, want)
		}
	}
}

// What is unverified is marked where waybill made it up.
func TestUnverifiedEventsThatAreMadeUp(t *testing.T) {
	for _, madeUp := range []bool{true, false} {
		if j := newUnverifiedJSON(inbox.Event{Synthetic: madeUp}); j.Synthetic != madeUp {
			t.Errorf("made up %t: synthetic %t", madeUp, j.Synthetic)
		}
	}
}
