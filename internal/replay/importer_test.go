package replay_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func opened(t *testing.T) *store.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// exported returns what a store holds, in the form of files, read again.
func exported(t *testing.T, db *store.DB) []webhook.Capture {
	t.Helper()
	var all []webhook.Capture
	for d, err := range replay.Deliveries(t.Context(), db, replay.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(d.Capture())
		if err != nil {
			t.Fatal(err)
		}
		var c webhook.Capture
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func imported(t *testing.T, i *replay.Importer, all []webhook.Capture) (total replay.Imported, known int) {
	t.Helper()
	for _, c := range all {
		done, err := i.Import(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		total.Events += done.Events
		total.Verified = total.Verified || done.Verified
		if done.Known {
			known++
		}
	}
	return total, known
}

// hostile are deliveries whose bytes no careless form would keep.
func hostile() []inbox.Delivery {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	var all []inbox.Delivery
	for i, body := range []string{
		`[{"eventId":"a","event":"x","n":1.0,"n":1.00}]` + "\r\n\x20", `[{"eventId":"a"},{"eventId":"b","t":"\u00e9é\u2028` + "\u2028" + `"}]`,
		"", "<html>\x00\xff", `{"eventId":"c"}`, `[{"event":"no id"}]`, `[{"eventId":"d"},7]`, "\ufeff[]", `[{"eventId":"a","event":"x","n":1.0,"n":1.00}]` + "\r\n\x20",
	} {
		all = append(all, inbox.Delivery{
			ReceivedAt: at.Add(time.Duration(i) * time.Second), Method: "POST", Path: "/p\xff%2F", RawQuery: "a=%zz&a", RemoteAddr: "192.0.2.1:1",
			Header: []webhook.Field{{Name: "B", Value: "1"}, {Name: "a", Value: "M\xfcller"}, {Name: "B", Value: ""}, {Name: "X-Token", Value: "s"}},
			Body:   []byte(body), Verified: inbox.Yes, BodyAuthenticated: true, Scheme: "elsewhere",
		})
	}
	return all
}

func TestImportKeepsBytesAndTimes(t *testing.T) {
	from, to := opened(t), opened(t)
	for _, d := range hostile() {
		b := webhook.Decode(d.Body)
		d.Single, d.Anomaly = b.Single, b.Anomaly
		if _, err := from.Put(t.Context(), d, inbox.Prepare(d, b)); err != nil {
			t.Fatal(err)
		}
	}
	captures := exported(t, from)
	total, known := imported(t, &replay.Importer{Store: to}, captures)
	if total.Events != 5 || known != 0 || total.Verified {
		t.Errorf("%+v, %d known; want 5 events, none verified without a scheme", total, known)
	}
	for seq := range int64(len(captures)) {
		a, errA := from.Delivery(t.Context(), seq+1)
		b, errB := to.Delivery(t.Context(), seq+1)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if b.Verified != inbox.Unknown || b.Scheme != "" || b.BodyAuthenticated {
			t.Errorf("delivery %d: verdict %s by %q was believed", seq+1, b.Verified, b.Scheme)
		}
		a.Verified, a.Scheme, a.BodyAuthenticated = b.Verified, b.Scheme, b.BodyAuthenticated
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("delivery %d: (-exported +imported)\n%s", seq+1, diff)
		}
	}
	// Again, in another process and twice in one: nothing is added.
	for range 2 {
		if total, known := imported(t, &replay.Importer{Store: to}, append(captures, captures...)); total.Events != 0 || known != 2*len(captures) {
			t.Errorf("again: %d events, %d of %d known", total.Events, known, 2*len(captures))
		}
	}
	counts, err := to.Counts(t.Context())
	if err != nil || counts.Deliveries != int64(len(captures)) {
		t.Errorf("%d deliveries (%v); want %d", counts.Deliveries, err, len(captures))
	}
}

func TestImportKnowsWhatWasPruned(t *testing.T) {
	from, to := opened(t), opened(t)
	d := hostile()[0]
	if _, err := from.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Fatal(err)
	}
	captures := exported(t, from)
	imported(t, &replay.Importer{Store: to}, captures)
	if _, err := to.Prune(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if total, known := imported(t, &replay.Importer{Store: to}, captures); total.Events != 0 || known != 1 {
		t.Errorf("%d events, %d known; want the delivery known by what was kept of it", total.Events, known)
	}
	// The same event at another time is another delivery, and no other event.
	captures[0].At = captures[0].At.Add(time.Hour)
	if total, known := imported(t, &replay.Importer{Store: to}, captures); total.Events != 0 || known != 0 {
		t.Errorf("an hour later: %d events, %d known; want none of both", total.Events, known)
	}
}

func TestImportJudgesAnew(t *testing.T) {
	scheme, ok := webhook.PresetByName("timestamped-kv")
	if !ok {
		t.Fatal("no preset")
	}
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	r := webhook.Request{Method: "POST", Path: "/", Body: []byte(`[{"eventId":"old","event":"router.delivered","data":{"trackingNumber":"N"}}]`)}
	out, err := webhook.Sign(scheme.Scheme, webhook.Secret{Value: []byte("s3cret")}, r, at)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = out.Header
	good := webhook.Capture{Sample: webhook.Sample{Request: r, At: at}, Verified: "no"}
	forged := good
	forged.Body, forged.Verified = []byte(`[{"eventId":"forged"}]`), "yes"
	late := good
	late.At = at.Add(time.Hour)
	v, err := webhook.NewVerifier(scheme.Scheme, []webhook.Secret{{Value: []byte("s3cret")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		c      webhook.Capture
		want   inbox.Verified
		reason webhook.Reason
	}{
		"genuine, years ago": {good, inbox.Yes, ""},
		"forged":             {forged, inbox.No, webhook.ReasonSignatureMismatch},
		"received too late":  {late, inbox.No, webhook.ReasonTimestampTooOld},
	} {
		db := opened(t)
		imported(t, &replay.Importer{Store: db, Verifier: v, Scheme: "timestamped-kv"}, []webhook.Capture{tt.c})
		e, err := db.Event(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if e.Verified != tt.want || e.Reason != tt.reason || e.Anomaly != "" || !e.ReceivedAt.Equal(tt.c.At) {
			t.Errorf("%s: %s %s, anomaly %q, received %v; want %s %s", name, e.Verified, e.Reason, e.Anomaly, e.ReceivedAt, tt.want, tt.reason)
		}
	}
}

// A delivery without a time was received now.
func TestImportWithoutTime(t *testing.T) {
	db := opened(t)
	before := time.Now().Truncate(time.Millisecond)
	imported(t, &replay.Importer{Store: db}, []webhook.Capture{{Sample: webhook.Sample{Request: webhook.Request{Method: "POST", Path: "/", Body: []byte(`[]`)}}}})
	d, err := db.Delivery(t.Context(), 1)
	if err != nil || d.ReceivedAt.Before(before) || d.ReceivedAt.After(time.Now()) {
		t.Errorf("received %v (%v); want now", d.ReceivedAt, err)
	}
}
