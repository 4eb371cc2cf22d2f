package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func changes(t *testing.T, texts ...string) []webhook.Change {
	t.Helper()
	var all []webhook.Change
	for _, text := range texts {
		c, err := webhook.ParseChange(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func made(t *testing.T, m webhook.SyntheticEvents, n int) (string, webhook.Event) {
	t.Helper()
	body, err := m.Body(n)
	if err != nil {
		t.Fatal(err)
	}
	b := webhook.Decode(body)
	if len(b.Rows) != 1 || b.Anomaly != "" || b.Single || b.Rows[0].Anomaly != "" || b.Rows[0].Part {
		t.Fatalf("%s decodes to %+v", body, b)
	}
	return string(body), b.Rows[0].Event
}

func TestMadeEventsHaveTheForm(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.FixedZone("", 3600))
	body, e := made(t, webhook.SyntheticEvents{At: at, Seed: 1}, 0)
	if e.Kind != "router.delivered" || e.Status != "1" || e.StatusTrack != "delivered" || e.StatusLabel != "DELIVERED" ||
		e.EventTime != "2026-03-01T07:00:00.000Z" {
		t.Errorf("%+v", e)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(e.EventID) || !uuid.MatchString(e.RouterID) {
		t.Errorf("ids %s and %s", e.EventID, e.RouterID)
	}
	// Every field that the interface shows is there.
	for _, name := range []string{
		"eventId", "event", "eventTime", "data", "trackingNumber", "status", "statusTrack", "routerId", "summary", "detail", "error", "id", "statusLabel",
		"latestEvent", "latestCheckpointTime", "transitTime", "created", "updated", "statusSummary", "trackingEvents",
		"eventType", "eventCity", "eventState", "eventZIPCode", "eventTimestamp", "GMTTimestamp",
	} {
		if !strings.Contains(body, `"`+name+`":`) {
			t.Errorf("%s is missing in %s", name, body)
		}
	}
}

func TestMadeEventsFollowFromTheSeed(t *testing.T) {
	m := webhook.SyntheticEvents{At: time.Unix(1e9, 0), Seed: 7}
	bodies, ids := map[string]bool{}, map[string]bool{}
	for n := range 200 {
		body, e := made(t, m, n)
		again, _ := made(t, m, n)
		if body != again {
			t.Fatalf("event %d differs: %s and %s", n, body, again)
		}
		bodies[body], ids[e.EventID] = true, true
	}
	m.Seed = 8
	_, e := made(t, m, 0)
	ids[e.EventID] = true
	if len(bodies) != 200 || len(ids) != 201 {
		t.Errorf("%d bodies and %d ids; want 200 and 201", len(bodies), len(ids))
	}
	m.Number = "N 1"
	_, one := made(t, m, 0)
	_, two := made(t, m, 1)
	if one.TrackingNumber != "N 1" || one.RouterID != two.RouterID || one.EventID == two.EventID {
		t.Errorf("%+v and %+v are not two events of one tracking", one, two)
	}
}

func TestMadeEventsOfOtherKindsClaimNothingKnown(t *testing.T) {
	_, e := made(t, webhook.SyntheticEvents{Kind: "router.lost"}, 0)
	if e.Kind != "router.lost" || e.Status != "9000" || e.StatusTrack != "lost" || e.StatusLabel != "LOST" {
		t.Errorf("%+v", e)
	}
}

func TestChanges(t *testing.T) {
	for _, tt := range []struct {
		set  []string
		path string // into the first event, joined by dots
		want string // JSON
	}{
		{[]string{"/data/summary/latestEvent=Out for <b> & more"}, "data.summary.latestEvent", `"Out for <b> & more"`},
		{[]string{"/data/status=12345678901234567890"}, "data.status", `12345678901234567890`},
		{[]string{`/data/status="1"`}, "data.status", `"1"`},
		{[]string{"/data/error={\"code\":5}", "/data/error/text=x=y"}, "data.error", `{"code":5,"text":"x=y"}`},
		{[]string{"/data/new/deep/er=true"}, "data.new", `{"deep":{"er":true}}`},
		{[]string{"/a~1b~0c="}, "a/b~c", `""`},
		{[]string{"/data/detail/trackingEvents=[1]", "/data/detail/trackingEvents/-=2", "/data/detail/trackingEvents/0=null"}, "data.detail.trackingEvents", `[null,2]`},
	} {
		m := webhook.SyntheticEvents{Set: changes(t, tt.set...)}
		for range 2 { // the second is not made of the first
			body, err := m.Body(0)
			if err != nil {
				t.Fatal(err)
			}
			var events []json.RawMessage
			if err := json.Unmarshal(body, &events); err != nil {
				t.Fatal(err)
			}
			got := events[0]
			for name := range strings.SplitSeq(tt.path, ".") {
				var members map[string]json.RawMessage
				if err := json.Unmarshal(got, &members); err != nil {
					t.Fatal(err)
				}
				got = members[name]
			}
			if string(got) != tt.want || bytes.Contains(body, []byte(`\u003c`)) {
				t.Errorf("%v: %s; want %s", tt.set, got, tt.want)
			}
		}
	}
}

func TestChangesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "x", "data=1", "/data", "=1", "/a~2=1"} {
		if _, err := webhook.ParseChange(text); !errors.Is(err, webhook.ErrChange) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"/event/x=1", "/0/data/status=8", "/data/detail/trackingEvents/7=1", "/data/detail/trackingEvents/x=1"} {
		if _, err := (webhook.SyntheticEvents{Set: changes(t, text)}).Body(0); !errors.Is(err, webhook.ErrChange) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Changes are made in each event, whatever its place, and numbers keep their spelling.
func TestSetMembers(t *testing.T) {
	set := func(texts ...string) (all []webhook.Change) {
		for _, text := range texts {
			c, err := webhook.ParseChange(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		return all
	}
	for body, want := range map[string]string{
		`[{"b":1.0,"a":"<"},{"a":{}}]`: `[{"a":"x","b":1.0,"c":[2]},{"a":"x","c":[2]}]`,
		` {"a":12345678901234567890}`:  `{"a":"x","c":[2]}`,
		`[]`:                           `[]`,
	} {
		got, err := webhook.SetMembers([]byte(body), set("/a=x", "/c=[2]"))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s (%v); want %s", body, got, err, want)
		}
	}
	for _, body := range []string{"", "no", "7", "[7]", `{"a":1} {}`} {
		if got, err := webhook.SetMembers([]byte(body), set("/a=x")); !errors.Is(err, webhook.ErrChange) {
			t.Errorf("%s: %s (%v); want an error", body, got, err)
		}
	}
}
