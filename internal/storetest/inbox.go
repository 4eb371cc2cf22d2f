package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Inbox tests a store against the contract of package inbox.
func Inbox(t *testing.T, h Harness) {
	t.Helper()
	suite(t, h, inboxTests)
}

var inboxTests = map[string]func(*world){
	"KeepsDeliveriesWhole":            keepsDeliveriesWhole,
	"EveryFieldIsKept":                everyFieldOfDeliveriesIsKept,
	"KeepsEventsWhole":                keepsEventsWhole,
	"EmptyBody":                       emptyBody,
	"OneIsCurrentForEachKey":          oneIsCurrentForEachKey,
	"WithinOneDelivery":               withinOneDelivery,
	"PutTogetherAsOneByOne":           putTogetherAsOneByOne,
	"AnomaliesAreNotCompared":         anomaliesAreNotCompared,
	"StoresAllOrNothing":              storesAllOrNothing,
	"SurvivesKill":                    survivesKill,
	"NumbersGrowAsRowsAppear":         numbersGrowAsRowsAppear,
	"OneIsCurrentAfterConcurrentPuts": oneIsCurrentAfterConcurrentPuts,
	"QueriesByEverything":             queriesByEverything,
	"VerifiedAgainAreListedAsCame":    verifiedAgainAreListedAsTheyCame,
	"QueriesPageByPage":               queriesPageByPage,
	"BodyOfLoopMayCallTheStore":       bodyOfLoopMayCallTheStore,
	"CountsWhatThereIs":               countsWhatThereIs,
	"ListsWithoutBodies":              listsWithoutBodies,
	"ListsEventsAsTheyAre":            listsEventsAsTheyAre,
	"ListsWhatWasForwarded":           listsWhatWasForwarded,
	"ListsRefused":                    listsRefused,
	"RefusedHaveTheirOwnNumbers":      refusedHaveTheirOwnNumbers,
	"RefusedAreBoundInNumber":         refusedAreBoundInNumber,
	"RefusedAreBoundInBytes":          refusedAreBoundInBytes,
	"RefusedLeaveTheirShare":          refusedLeaveTheirShare,
	"RefusedSurviveJunk":              refusedSurviveJunk,
	"RefusedSurviveForgeries":         refusedSurviveForgeries,
	"RefusedSurviveTheirAddress":      refusedSurviveTheirAddress,
	"ContextEndedBeforePut":           contextEndedBeforePut,
	"HeadersOfAnyBytes":               headersOfAnyBytes,
	"AllWritersConcurrently":          allWritersConcurrently,
	"OddTextsDoNotStopDeliveries":     oddTextsDoNotStopDeliveries,
	"LongTextsDoNotStopDeliveries":    longTextsDoNotStopDeliveries,
	"VerifiedAgainAreReleasedOnce":    verifiedAgainAreReleasedOnce,
	"VerifiedAgainAreCompared":        verifiedAgainAreCompared,
	"VerifiedStaysVerified":           verifiedStaysVerified,
	"PrunesBytesAndNothingElse":       prunesBytesAndNothingElse,
	"CountsUnverifiedBytes":           countsUnverifiedBytes,
	"PrunesUnverifiedRows":            prunesUnverifiedRows,
	"ReadmitsOnce":                    readmitsOnce,
	"KnowsListenersThatLive":          knowsListenersThatLive,
	"HintsAtChangesOfOthers":          hintsAtChangesOfOthers,
	"RevisionFollowsEveryChange":      revisionFollowsEveryChange,
	"SyntheticAreComparedApart":       syntheticAreComparedApart,
	"FindsEventsByTheBeginning":       findsEventsByTheBeginning,
}

func delivery(body string, verified inbox.Verified) inbox.Delivery {
	d := inbox.Delivery{
		ReceivedAt: sent.Add(123 * time.Millisecond), Method: "POST", Path: "/hooks/%C3%A9", RawQuery: "a=1&b=%20", RemoteAddr: "127.0.0.1:4711",
		Header: []webhook.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Twice", Value: "1"}, {Name: "X-Twice", Value: "2"}},
		Body:   []byte(body), Verified: verified,
	}
	switch verified {
	case inbox.Yes:
		d.Scheme, d.SecretName, d.BodyAuthenticated = "mine", "env:SECRET", true
	case inbox.No:
		d.Scheme, d.Reason = "mine", webhook.ReasonSignatureMismatch
	case inbox.Unknown:
	}
	return d
}

// event is the JSON of an event with that eventId.
func event(id, more string) string {
	return fmt.Sprintf(`{"eventId":%q,"event":"router.delivered","eventTime":"2026-03-01T10:00:00.000Z","data":{"trackingNumber":"1Z1","status":1,"statusTrack":"delivered","routerId":"r-1","summary":{"statusLabel":"DELIVERED","latestEvent":"Handed over"}%s}}`, id, more)
}

func uuid(n int) string { return fmt.Sprintf("9f2d4c1e-8b3a-4f6d-9e7c-%012x", n) }

func (w *world) put(body string, verified inbox.Verified) inbox.Receipt {
	w.Helper()
	return w.putInto(w.Store, delivery(body, verified))
}

func (w *world) putInto(s Store, d inbox.Delivery) inbox.Receipt {
	w.Helper()
	batch := webhook.Decode(d.Body)
	d.Single, d.Anomaly = batch.Single, batch.Anomaly
	r := have(s.Put(w.Context(), d, inbox.Prepare(d, batch)))(w)
	return r
}

// marks returns the marks of a receipt, or of all rows of the inbox.
func (w *world) marks() []inbox.Mark {
	w.Helper()
	return each(w, w.Events(w.Context(), inbox.Query{}), func(e inbox.Event) inbox.Mark { return e.Mark })
}

func keepsDeliveriesWhole(w *world) {
	for i, verified := range []inbox.Verified{inbox.Yes, inbox.No, inbox.Unknown} {
		want := delivery(" [ "+event(uuid(i), "")+" ] ", verified)
		want.Anomaly = "" // as decoded
		r := w.putInto(w.Store, want)
		want.Seq = int64(i + 1)
		w.same("number", r.Delivery, want.Seq)
		w.same("delivery", have(w.Delivery(w.Context(), r.Delivery))(w), want)
	}
	single := delivery(event(uuid(9), ""), inbox.Yes)
	r := w.putInto(w.Store, single)
	w.same("single", have(w.Delivery(w.Context(), r.Delivery))(w).Single, true)
	_, err := w.Delivery(w.Context(), 99)
	w.is("no such delivery", err, inbox.ErrNoDelivery)
}

func keepsEventsWhole(w *world) {
	body := "[" + event(uuid(1), "") + ",\n 7 ,{\"event\":\"x\",\"event\":\"y\"}]"
	for _, verified := range []inbox.Verified{inbox.Yes, inbox.No} {
		d := delivery(body, verified)
		want := inbox.Prepare(d, webhook.Decode(d.Body))
		r := w.putInto(w.Store, d)
		w.same("rows", len(r.Rows), 3)
		for i := range want {
			want[i].Seq, want[i].Delivery, want[i].Mark = r.Rows[i].Seq, r.Delivery, r.Rows[i].Mark
		}
		w.same("events", collect(w, w.Events(w.Context(), inbox.Query{Delivery: r.Delivery})), want)
		for _, e := range want {
			w.same("event", have(w.Event(w.Context(), e.Seq))(w), e)
		}
	}
	for _, seq := range []int64{-1, 0, 7, 99} {
		_, err := w.Event(w.Context(), seq)
		w.is("no such event", err, inbox.ErrNoEvent)
	}
}

func emptyBody(w *world) {
	d := delivery("", inbox.Unknown)
	for _, body := range [][]byte{nil, {}} {
		d.Body, d.Header, d.Path = body, nil, ""
		r := w.putInto(w.Store, d)
		got := have(w.Delivery(w.Context(), r.Delivery))(w)
		if got.Body == nil || len(got.Body) > 0 || got.Header != nil || got.Anomaly == "" {
			w.Errorf("delivery %v", got)
		}
		w.same("rows", len(r.Rows), 1)
		w.same("mark", r.Rows[0].Mark, inbox.Anomaly)
		e := have(w.Event(w.Context(), r.Rows[0].Seq))(w)
		if e.Raw == nil || len(e.Raw) > 0 || e.Key != nil {
			w.Errorf("event %v", e)
		}
	}
}

func oneIsCurrentForEachKey(w *world) {
	type put struct {
		more     string
		verified inbox.Verified
		mark     inbox.Mark
	}
	for name, c := range map[string]struct {
		puts []put
		then []inbox.Mark
	}{
		"repeats": {
			[]put{{"", inbox.Yes, inbox.Current}, {"", inbox.Yes, inbox.Duplicate}, {"", inbox.Unknown, inbox.Duplicate}, {"", inbox.No, inbox.Duplicate}},
			[]inbox.Mark{inbox.Current, inbox.Duplicate, inbox.Duplicate, inbox.Duplicate},
		},
		"the first stands among verified ones": {
			[]put{{"", inbox.Yes, inbox.Current}, {`,"a":1`, inbox.Yes, inbox.Conflict}, {`,"a":1`, inbox.Yes, inbox.Conflict}, {"", inbox.Yes, inbox.Duplicate}},
			[]inbox.Mark{inbox.Current, inbox.Conflict, inbox.Conflict, inbox.Duplicate},
		},
		"the first stands among unverified ones": {
			[]put{{"", inbox.Unknown, inbox.Current}, {`,"a":1`, inbox.No, inbox.Conflict}, {"", inbox.No, inbox.Duplicate}},
			[]inbox.Mark{inbox.Current, inbox.Conflict, inbox.Duplicate},
		},
		"a verified one supersedes": {
			[]put{{"", inbox.Unknown, inbox.Current}, {`,"a":1`, inbox.Yes, inbox.Current}, {"", inbox.Yes, inbox.Conflict}, {`,"a":1`, inbox.No, inbox.Duplicate}},
			[]inbox.Mark{inbox.Superseded, inbox.Current, inbox.Conflict, inbox.Duplicate},
		},
		"a verified one supersedes its like": {
			[]put{{"", inbox.No, inbox.Current}, {"", inbox.Yes, inbox.Current}},
			[]inbox.Mark{inbox.Superseded, inbox.Current},
		},
		"an unverified one supersedes nothing": {
			[]put{{"", inbox.Yes, inbox.Current}, {`,"a":1`, inbox.Unknown, inbox.Conflict}, {`,"a":2`, inbox.No, inbox.Conflict}},
			[]inbox.Mark{inbox.Current, inbox.Conflict, inbox.Conflict},
		},
	} {
		id := "id of " + name
		for i, p := range c.puts {
			r := w.put("["+event(id, p.more)+"]", p.verified)
			if got := r.Rows[0].Mark; got != p.mark {
				w.Errorf("%s, put %d: %q, want %q", name, i, got, p.mark)
			}
		}
		then := each(w, w.Events(w.Context(), inbox.Query{EventID: id}), func(e inbox.Event) inbox.Mark {
			return e.Mark
		})
		w.same(name, then, c.then)
	}
	// A UUID is the same in capitals; the bytes are not.
	w.put("["+event(uuid(171), "")+"]", inbox.Yes)
	r := w.put("["+event(strings.ToUpper(uuid(171)), "")+"]", inbox.Yes)
	w.same("in capitals", r.Rows[0].Mark, inbox.Conflict)
}

func withinOneDelivery(w *world) {
	a, other := event(uuid(1), ""), event(uuid(1), `,"a":1`)
	bare, id := `{"event":"x"}`, event(uuid(2), "")
	r := w.put("["+strings.Join([]string{a, a, other, bare, bare, `{"event": "x"}`, id}, ",")+"]", inbox.Yes)
	var marks []inbox.Mark
	for i, p := range r.Rows {
		marks = append(marks, p.Mark)
		if i > 0 && p.Seq != r.Rows[i-1].Seq+1 {
			w.Errorf("row %d has number %d after %d", i, p.Seq, r.Rows[i-1].Seq)
		}
	}
	want := []inbox.Mark{
		inbox.Current, inbox.Duplicate, inbox.Conflict,
		inbox.Current, inbox.Duplicate, inbox.Current, inbox.Current,
	}
	w.same("marks", marks, want)
	w.same("marks as kept", w.marks(), want)
}

func anomaliesAreNotCompared(w *world) {
	for range 2 {
		for _, body := range []string{"[7, 7]", "not JSON"} {
			for _, p := range w.put(body, inbox.Yes).Rows {
				w.same("mark", p.Mark, inbox.Anomaly)
			}
		}
	}
	w.same("rows", len(w.marks()), 6)
	// What a caller says of other marks and of numbers is not read.
	d := delivery("["+event(uuid(1), "")+"]", inbox.Yes)
	rows := inbox.Prepare(d, webhook.Decode(d.Body))
	d.Seq, rows[0].Seq, rows[0].Delivery, rows[0].Mark = 77, 78, 79, inbox.Conflict
	r := have(w.Put(w.Context(), d, rows))(w)
	w.same("receipt", r, inbox.Receipt{Delivery: 5, Rows: []inbox.Placement{{Seq: 7, Mark: inbox.Current}}})
}

func storesAllOrNothing(w *world) {
	d := delivery("["+event(uuid(1), "")+","+event(uuid(2), "")+"]", inbox.Yes)
	good := inbox.Prepare(d, webhook.Decode(d.Body))
	for name, spoil := range map[string]func(*inbox.Event){
		"beyond the body":   func(e *inbox.Event) { e.Length++; e.Offset = len(d.Body) - e.Length + 1 },
		"before the body":   func(e *inbox.Event) { e.Offset = -1 },
		"of negative size":  func(e *inbox.Event) { e.Length = -1 },
		"without a key":     func(e *inbox.Event) { e.Key = nil },
		"far from the body": func(e *inbox.Event) { e.Offset = int(^uint(0) >> 1) },
	} {
		bad := slices.Clone(good)
		spoil(&bad[1])
		if _, err := w.Put(w.Context(), d, bad); err == nil {
			w.Errorf("a row %s was stored", name)
		}
	}
	w.same("counts", have(w.Counts(w.Context()))(w), inbox.Counts{})
}

func survivesKill(w *world) {
	w.put("["+event(uuid(1), "")+"]", inbox.Unknown)
	w.kill()
	w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	w.kill()
	w.same("marks", w.marks(), []inbox.Mark{inbox.Superseded, inbox.Current})
}

// numbersGrowAsRowsAppear reads on from the last number while others write.
func numbersGrowAsRowsAppear(w *world) {
	const writers, each = 4, 40
	stores := []Store{w.Store, w.open()}
	ctx, cancel := context.WithCancel(w.Context())
	var wg, reading sync.WaitGroup
	seen := map[int64]bool{}
	reading.Go(func() {
		last := int64(0)
		for round := 0; ; round++ {
			done := ctx.Err() != nil
			for e, err := range w.Events(w.Context(), inbox.Query{After: last}) { //nolint:contextcheck // ctx only says when the writers are done
				if err != nil {
					w.Errorf("events: %v", err)
					return
				}
				seen[e.Seq] = true
				last = e.Seq
			}
			if done {
				return
			}
		}
	})
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				d := delivery("["+event(fmt.Sprintf("%d-%d", i, n), "")+","+event(fmt.Sprintf("%d-%d-b", i, n), "")+"]", inbox.Yes)
				if _, err := stores[i%2].Put(w.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
					w.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	reading.Wait()
	w.same("rows that the reader saw", len(seen), writers*each*2)
}

func oneIsCurrentAfterConcurrentPuts(w *world) {
	const writers = 8
	stores := []Store{w.Store, w.open()}
	marks := make([]inbox.Mark, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			d := delivery("["+event(uuid(5), "")+"]", inbox.Yes)
			r, err := stores[i%2].Put(w.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body)))
			if err != nil {
				w.Errorf("put: %v", err)
				return
			}
			marks[i] = r.Rows[0].Mark
		})
	}
	wg.Wait()
	slices.Sort(marks)
	want := slices.Repeat([]inbox.Mark{inbox.Duplicate}, writers)
	want[0] = inbox.Current
	w.same("marks", marks, want)
}

func contextEndedBeforePut(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	d := delivery("["+event(uuid(1), "")+"]", inbox.Yes)
	_, err := w.Put(ctx, d, inbox.Prepare(d, webhook.Decode(d.Body)))
	w.is("put", err, context.Canceled)
	_, err = w.PutRefused(ctx, d)
	w.is("put refused", err, context.Canceled)
	w.is("events", end(w.Events(ctx, inbox.Query{})), context.Canceled)
	w.is("refused", end(w.Refused(ctx, 0)), context.Canceled)
	_, err = w.Counts(ctx)
	w.is("counts", err, context.Canceled)
	w.same("deliveries", have(w.Counts(w.Context()))(w).Deliveries, int64(0))
}

func headersOfAnyBytes(w *world) {
	d := delivery("[]", inbox.Unknown)
	d.Header = []webhook.Field{{Name: "X-Latin", Value: "gr\xfc\xdf"}, {Name: "", Value: ""}, {Name: "X-Long", Value: strings.Repeat("v", 70_000)}, {Name: "X\x00", Value: "\r\n"}}
	d.Path, d.RawQuery = "/\xff", "q=\xfe\x00"
	r := w.putInto(w.Store, d)
	got := have(w.Delivery(w.Context(), r.Delivery))(w)
	w.same("header", got.Header, d.Header)
	w.same("path", []byte(got.Path), []byte(d.Path))
	w.same("query", []byte(got.RawQuery), []byte(d.RawQuery))
}

// oddTextsDoNotStopDeliveries sees that texts which only describe are made
// fit: a delivery that is not stored is not answered.
func oddTextsDoNotStopDeliveries(w *world) {
	d := delivery("["+event(uuid(1), "")+"]", inbox.Yes)
	rows := inbox.Prepare(d, webhook.Decode(d.Body))
	d.Method, d.RemoteAddr, d.Anomaly = "P\xff", "\x00", "\xff"
	rows[0].TrackingNumber, rows[0].Anomaly = "1\x00", "\xff"
	r := have(w.Put(w.Context(), d, rows))(w)
	e := have(w.Event(w.Context(), r.Rows[0].Seq))(w)
	w.same("number", e.TrackingNumber, "1\ufffd")
	w.same("bytes", string(e.Raw), event(uuid(1), ""))
}

// longTextsDoNotStopDeliveries puts, follows and queues an event whose texts are longer
// than an index may hold.
func longTextsDoNotStopDeliveries(w *world) {
	var long strings.Builder
	for n := range 500 { // in no order, so that it can't be made shorter
		fmt.Fprintf(&long, "%X", sha256.Sum256([]byte{byte(n), byte(n >> 8)}))
	}
	text := long.String()
	d := delivery("["+event(text, "")+"]", inbox.Yes)
	rows := inbox.Prepare(d, webhook.Decode(d.Body))
	e := &rows[0]
	e.TrackingNumber, e.Status, e.StatusLabel, e.StatusTrack, e.LatestEvent, e.RouterID, e.Kind = text, text, text, text, text, text, text
	have(w.Put(w.Context(), d, rows))(w)
	for _, q := range []inbox.Query{{TrackingNumber: strings.ToLower(text)}, {EventID: text}, {Trackings: &inbox.TrackingKeys{Numbers: []string{text}}}} {
		w.same("found", len(collect(w, w.Events(w.Context(), q))), 1)
	}
	w.same("of another number", len(collect(w, w.Events(w.Context(), inbox.Query{TrackingNumber: text[1:]}))), 0)
	sink := have(w.OpenSink(w.Context(), inbox.SinkKey{Name: "long"}, &inbox.StartPosition{}))(w)
	have(w.Advance(w.Context(), sink.ID, 10, func([]inbox.Event) bool { return true }))(w)

	seen := eventSighting(1, "1Z1", text)
	seen.Status, seen.StatusLabel, seen.StatusTrack, seen.LatestEvent, seen.CarrierCode = text, text, text, text, text
	w.follow(seen, eventSighting(1, text, text))
	w.same("known", len(have(w.Find(w.Context(), "", "1Z1"))(w)), 1)
}
