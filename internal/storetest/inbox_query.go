package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

func queriesByEverything(w *world) {
	kind := func(id, kind, number string) string {
		return fmt.Sprintf(`{"eventId":%q,"event":%q,"data":{"trackingNumber":%q,"routerId":"R-%s"}}`, id, kind, number, number)
	}
	puts := []struct {
		body     string
		verified inbox.Verified
		after    time.Duration
	}{
		{"[" + kind(uuid(1), "router.delivered", "1Z1") + "," + kind(uuid(2), "router.moved", "1Z2") + "]", inbox.Yes, 0},
		{"[" + kind(uuid(1), "router.delivered", "1Z1") + "]", inbox.Yes, time.Second},
		{"[" + kind("text", "router.moved", "1z1") + ", 8]", inbox.No, 2 * time.Second},
		{"[" + kind(uuid(1), "router.delivered", "1Z9") + "]", inbox.Unknown, 3 * time.Second},
	}
	for _, p := range puts {
		d := delivery(p.body, p.verified)
		d.ReceivedAt = sent.Add(p.after)
		w.putInto(w.Store, d)
	}
	for name, c := range map[string]struct {
		q    inbox.Query
		want []int64
	}{
		"all":               {inbox.Query{}, []int64{1, 2, 3, 4, 5, 6}},
		"after":             {inbox.Query{After: 4}, []int64{5, 6}},
		"before":            {inbox.Query{Before: 3}, []int64{1, 2}},
		"between":           {inbox.Query{After: 2, Before: 5}, []int64{3, 4}},
		"limited":           {inbox.Query{Limit: 2}, []int64{1, 2}},
		"newest":            {inbox.Query{Newest: true}, []int64{6, 5, 4, 3, 2, 1}},
		"two newest":        {inbox.Query{Newest: true, Limit: 2}, []int64{6, 5}},
		"newest between":    {inbox.Query{Newest: true, After: 2, Before: 5}, []int64{4, 3}},
		"delivery":          {inbox.Query{Delivery: 3}, []int64{4, 5}},
		"eventId":           {inbox.Query{EventID: uuid(1)}, []int64{1, 3, 6}},
		"eventId, capitals": {inbox.Query{EventID: strings.ToUpper(uuid(1)), Newest: true}, []int64{6, 3, 1}},
		"eventId, text":     {inbox.Query{EventID: "text"}, []int64{4}},
		"kind":              {inbox.Query{Kind: "router.moved"}, []int64{2, 4}},
		"number":            {inbox.Query{TrackingNumber: "1z\u00a0\u20111"}, []int64{1, 3, 4}},
		"about a number":    {inbox.Query{Trackings: &inbox.TrackingKeys{Numbers: []string{"1 z-1"}}}, []int64{1, 3, 4}},
		"about a routerId":  {inbox.Query{Trackings: &inbox.TrackingKeys{RouterIDs: []string{"r-1Z2"}}}, []int64{2}},
		"about either":      {inbox.Query{Trackings: &inbox.TrackingKeys{Numbers: []string{"1Z9", "gone"}, RouterIDs: []string{"r-1z2"}}, Verified: []inbox.Verified{inbox.Yes}}, []int64{2}},
		"about nothing":     {inbox.Query{Trackings: &inbox.TrackingKeys{}}, nil},
		"since":             {inbox.Query{Since: sent.Add(time.Second)}, []int64{3, 4, 5, 6}},
		"verified":          {inbox.Query{Verified: []inbox.Verified{inbox.Yes}}, []int64{1, 2, 3}},
		"not verified":      {inbox.Query{Verified: []inbox.Verified{inbox.No}}, []int64{4, 5}},
		"current":           {inbox.Query{Marks: []inbox.Mark{inbox.Current}}, []int64{1, 2, 4}},
		"two marks":         {inbox.Query{Marks: []inbox.Mark{inbox.Conflict, inbox.Anomaly}}, []int64{5, 6}},
		"no marks":          {inbox.Query{Marks: []inbox.Mark{}}, nil},
		"all that is set":   {inbox.Query{After: 1, Kind: "router.delivered", TrackingNumber: "1Z1", Verified: []inbox.Verified{inbox.Yes}, Delivery: 2}, []int64{3}},
		"nothing":           {inbox.Query{Kind: "router.gone"}, nil},
	} {
		var got []int64
		for _, e := range collect(w, w.Events(w.Context(), c.q)) {
			got = append(got, e.Seq)
			if e.Raw == nil || e.ReceivedAt.IsZero() {
				w.Errorf("%s: event %d is not whole", name, e.Seq)
			}
		}
		w.same(name, got, c.want)
	}
}

func queriesPageByPage(w *world) {
	const n = 2500
	var all []string
	for i := range n {
		all = append(all, event(uuid(i), ""))
	}
	w.put("["+strings.Join(all[:n-1], ",")+"]", inbox.Yes)
	w.put("["+all[n-1]+"]", inbox.Yes)
	for limit, want := range map[int]int{0: n, 1: 1, 1000: 1000, 1001: 1001, n: n, n + 5: n} {
		for _, newest := range []bool{false, true} {
			w.same("rows", len(collect(w, w.Events(w.Context(), inbox.Query{Limit: limit, Newest: newest}))), want)
		}
	}
	i := 0
	for e, err := range w.Events(w.Context(), inbox.Query{}) {
		w.must(err)
		if string(e.Raw) != all[i] || !json.Valid(e.Data) {
			w.Fatalf("event %d: %s", i, e.Raw)
		}
		i++
	}
	for e, err := range w.Events(w.Context(), inbox.Query{Newest: true}) {
		if w.must(err); e.Seq != int64(i) {
			w.Fatalf("event %d in the place of %d", e.Seq, i)
		}
		i--
	}
}

func bodyOfLoopMayCallTheStore(w *world) {
	w.put("["+event(uuid(1), "")+","+event(uuid(2), "")+"]", inbox.Yes)
	w.refuse(delivery("x", inbox.No))
	rows := 0
	for e, err := range w.Events(w.Context(), inbox.Query{Before: 10}) {
		w.must(err)
		rows++
		for d, err := range w.Refused(w.Context(), 0) {
			w.must(err)
			w.refuse(d)
			break
		}
		w.put("["+event(fmt.Sprint("again ", e.Seq), "")+"]", inbox.Yes)
		if _, err := w.Delivery(w.Context(), e.Delivery); err != nil {
			w.Fatal(err)
		}
	}
	if rows < 2 || rows > 9 {
		w.Errorf("%d rows", rows)
	}
}

func countsWhatThereIs(w *world) {
	count := func(want inbox.Counts) {
		w.Helper()
		got := have(w.Counts(w.Context()))(w)
		w.same("counts", got, want)
	}
	count(inbox.Counts{})
	w.put("["+event(uuid(1), "")+","+event(uuid(2), "")+",9]", inbox.Unknown)
	w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	w.put("["+event(uuid(1), "")+","+event(uuid(1), `,"a":1`)+"]", inbox.No)
	w.refuse(delivery("x", inbox.No))
	count(inbox.Counts{Deliveries: 3, Refused: 1, LastEvent: 6})
}
