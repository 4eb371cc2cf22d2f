package track

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const reportAccount = "WAYBILL_ACCOUNT=acme-account"

// seen returns what an answer said of a tracking, the last checkpoint of which is that old.
func seen(referID, number, label, carrier, event string, age time.Duration) ledger.Sighting {
	at := time.Now().Add(-age)
	return ledger.Sighting{
		Key: tracking.Key{ReferID: referID, Number: number}, Phase: ledger.Processed, StatusLabel: label, CarrierCode: carrier, LatestEvent: event,
		Times: tracking.Times{Checkpoint: at}, Transit: 50 * time.Hour, Seen: at.Add(time.Minute), Source: ledger.FromQuery,
	}
}

// reporting returns a call on a store that knows these, and a listing of all of them.
func reporting(t *testing.T, all ...ledger.Sighting) *listing {
	t.Helper()
	c, _, _ := clitest.Call(t, reportAccount)
	db, err := c.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]ledger.RecordedAnswer, len(all))
	for i, s := range all {
		answers[i] = ledger.RecordedAnswer{ReferID: s.Key.ReferID, Asked: time.Now(), Seen: []ledger.Sighting{s}}
	}
	if err := db.Trackings.Record(t.Context(), "acme-account", answers); err != nil {
		t.Fatal(err)
	}
	return &listing{call: c}
}

// render returns the page of a report.
func (l *listing) render(t *testing.T, mask bool) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := l.writeReport(t.Context(), &b, mask); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const week = 7 * day

// A report counts what is stuck, and has problems first in its table, then what is stuck.
func TestReportOrder(t *testing.T) {
	l := reporting(t,
		seen("A1", "N1", "DELIVERED", "ups", "Delivered", day), seen("A2", "N2", "DELIVERED", "UPS", "Delivered", 2*day),
		seen("A3", "N3", "IN_TRANSIT", "dhl", "Departed", day), seen("A4", "N4", "IN_TRANSIT", "dhl", "Departed", 2*week),
		seen("A5", "N5", "RETURNED", "ups", "Returned", 3*week))
	r := newReporter(l, false)
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := r.page(t.Context())
	if p.Counts != (report.Split{2, 2, 1, 0}) {
		t.Errorf("counts %v", p.Counts)
	}
	if p.Stuck != 2 {
		t.Errorf("%d stuck; want 2, one of them returned", p.Stuck)
	}
	var order []string
	for _, row := range p.Rows {
		order = append(order, row.Reference+row.Stuck)
	}
	if got := strings.Join(order, ","); got != "A521 days,A414 days,A3,A2,A1" {
		t.Errorf("rows %s; want problems first, then stuck ones", got)
	}
}

// meddler is a store in which something is written after each reading.
type meddler struct {
	ledger.Trackings
	ledger.Statistics
	write func()
}

func (m *meddler) Count(ctx context.Context, account string, f ledger.Filter) ([]ledger.Group, error) {
	defer m.write()
	return m.Statistics.Count(ctx, account, f)
}

func (m *meddler) Statuses(ctx context.Context, account string, f ledger.Filter) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		defer m.write()
		m.Trackings.Statuses(ctx, account, f)(yield)
	}
}

// All numbers of a report agree while others write to the store.
func TestReportAgreesWithItself(t *testing.T) {
	l := reporting(t, seen("A1", "N1", "DELIVERED", "ups", "Delivered", day), seen("A2", "N2", "IN_TRANSIT", "dhl", "Departed", 2*week))
	if err := l.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	store := *l.db
	m := &meddler{Trackings: l.db.Trackings, Statistics: l.db.Statistics, write: func() {
		n++
		s := seen(fmt.Sprint("B", n), fmt.Sprint("M", n), "IN_TRANSIT", "dhl", "Departed", 3*week)
		if err := l.db.Trackings.Record(t.Context(), "acme-account", []ledger.RecordedAnswer{{ReferID: s.Key.ReferID, Asked: time.Now(), Seen: []ledger.Sighting{s}}}); err != nil {
			t.Error(err)
		}
	}}
	store.Trackings, store.Statistics = m, m
	r := newReporter(&listing{call: l.call, db: &store, names: l.names}, true)
	if err := r.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := r.page(t.Context())
	if n == 0 || p.Counts != (report.Split{1, 1, 0, 0}) || p.Stuck != 1 || len(p.Rows) != 2 || p.Summary != "2 trackings: 1 delivered · 1 in transit" {
		t.Errorf("%d written meanwhile: counts %v, %d stuck, %d rows, %s", n, p.Counts, p.Stuck, len(p.Rows), p.Summary)
	}
}

// No identifier of the store is in a masked report, however it is spelled: neither in a
// field of its own, nor in a name, nor in a text; nor is one of a tracking that the
// filter leaves out.
func TestMaskLeavesIdentifiersOut(t *testing.T) {
	names := []string{"CANARY-77-ZX", "1Z 99 canary 88 Q", "ORDÉR-LETTERS-ONLY", "900100200300", "Kanarienvogel7"}
	var all []ledger.Sighting
	for i, name := range names {
		spelled := strings.ToLower(strings.NewReplacer("-", " ", " ", "-").Replace(name))
		all = append(all,
			seen(name, fmt.Sprint("other-number-", i), "STATUS OF "+name, "carrier "+spelled, "event of "+name, 2*week),
			seen(fmt.Sprint("other-ref-", i), name, spelled+" exception", name, "event of "+spelled, 2*week))
	}
	l := reporting(t, all...)
	if page := tracking.FoldNumber(l.render(t, false)); !strings.Contains(page, tracking.FoldNumber(names[0])) {
		t.Fatal("the report without a mask has no identifiers either")
	}
	l.words = []string{"--refer-id", names[0], "--status", names[1], "--carrier", names[2]}
	page := l.render(t, true)
	folded := tracking.FoldNumber(page)
	for _, name := range append(names, "other-number-", "other-ref-", "acme-account", "event of") {
		if i := strings.Index(folded, tracking.FoldNumber(name)); i >= 0 {
			t.Errorf("%q stands in …%s…", name, folded[max(i-60, 0):min(i+60, len(folded))])
		}
	}
	for _, text := range []string{"Identifiers are left out", "status of ***", "*** exception", "carrier ***", "--refer-id &#39;***&#39;"} {
		if !strings.Contains(page, text) {
			t.Errorf("it lacks %q", text)
		}
	}
	if strings.Count(page, `class="p"><th`)+strings.Count(page, `class="p s"><th`) == 0 {
		t.Error("a problem is none any more when its name is masked")
	}
}

// An identifier is masked however it and the name of a status spell its letters and
// digits: with other punctuation around and in it, in other case, width or form.
func TestMaskFindsOtherSpellings(t *testing.T) {
	for _, test := range []struct{ referID, label, want string }{
		{"#ORD-100234", "RETURNED #ORD-100234", "1 returned #***"},
		{"ORD-200345/", "HELD (ORD-200345/)", "1 held (***/)"},
		{"(ORD)300456", "LOST_ord_300456", "1 lost ***"},
		{"ORD/400567", "KEPT ORD 400567!", "1 kept ***!"},
		{"ORD-500678", "KEPT ＯＲＤ－５００６７８", "1 kept ***"},
		{"ＯＲＤ６００７８９", "KEPT ord 600789", "1 kept ***"},
		{"ORDÉR-LETTERS", "KEPT orde\u0301r.letters", "1 kept ***"},
		{"#A1", "KEPT A1", "1 kept a1"}, // may mean anything
	} {
		page := reporting(t, seen(test.referID, "N1", test.label, "ups", "", day)).render(t, true)
		_, summary, _ := strings.Cut(page, "1 tracking: ")
		if summary, _, _ = strings.Cut(summary, "<"); summary != test.want {
			t.Errorf("%q in %q: %q; want %q", test.referID, test.label, summary, test.want)
		}
	}
}

// Rows are kept in bounded memory: what needs attention, then the latest.
func TestReportRowsAreBounded(t *testing.T) {
	var rows reportRows
	for i := range 5 * report.MaxRows {
		row := reportRow{reference: fmt.Sprint(i), standing: &standing{class: report.Delivered}}
		switch {
		case i%1000 == 7:
			row.class = report.Problem
		case i%1000 == 8:
			row.class, row.stuck = report.UnderWay, true
		}
		rows.add(row)
	}
	if rows.rows != report.MaxRows || len(rows.byRank[rankProblem]) != 50 || len(rows.byRank[rankStuck]) != 50 {
		t.Errorf("%d rows, %d problems, %d stuck", rows.rows, len(rows.byRank[rankProblem]), len(rows.byRank[rankStuck]))
	}
	if last := rows.byRank[rankDelivered]; last[len(last)-1].reference != fmt.Sprint(5*report.MaxRows-1) || len(last) != report.MaxRows-100 {
		t.Errorf("%d delivered, the last is %s", len(last), last[len(last)-1].reference)
	}
	long := reportRow{standing: &standing{}, event: strings.Repeat("x", 100_000)}
	for range 1000 {
		rows.add(long)
	}
	if rows.bytes > report.MaxBytes {
		t.Errorf("%d bytes are kept", rows.bytes)
	}
}

// Three years are a chart of days and one of months, and all trackings are in them.
func TestReportPeriods(t *testing.T) {
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.Local)
	for _, test := range []struct {
		days, bars int
		units      string
	}{{1, 1, "day"}, {31, 31, "day"}, {60, 31 + 5, "day,week"}, {1100, 31 + 36, "day,month"}, {4000, 31 + 37, "day,month"}} {
		r := newReporter(&listing{}, false)
		r.summary = newSums(nil, nil, now).summary
		for i := range test.days {
			g := ledger.Group{Created: now.AddDate(0, 0, -i)}
			g.Phase, g.StatusLabel, g.Trackings = ledger.Processed, "DELIVERED", 2
			r.groups = append(r.groups, g)
		}
		r.groups = append(r.groups, ledger.Group{StatusCount: ledger.StatusCount{State: ledger.Pending, Trackings: 3}})
		periods, without := r.periods()
		bars, total, units := 0, int64(0), []string{}
		for _, p := range periods {
			units = append(units, p.Unit)
			bars += len(p.Bars)
			for _, b := range p.Bars {
				total += b.Total()
			}
		}
		if bars != test.bars || total != int64(2*test.days) || without != 3 || strings.Join(units, ",") != test.units {
			t.Errorf("%d days: %d bars by %v with %d trackings, %d without; want %d by %s with %d", test.days, bars, units, total, without, test.bars, test.units, 2*test.days)
		}
	}
}

// The page of an empty store says so.
func TestReportOfNothing(t *testing.T) {
	c, stdout, stderr := clitest.Call(t, reportAccount)
	file := t.TempDir() + "/report.html"
	if err := runReport(t.Context(), c, reportOptions{HTML: file}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "0 trackings") || !strings.Contains(stderr.String(), "No tracking of account acme-account is known yet") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
	if err := runReport(t.Context(), c, reportOptions{}); !command.As[*command.UsageError](err) {
		t.Errorf("without --html: %v", err)
	}
	var j reportJSON
	c, stdout, _ = clitest.Call(t, reportAccount, "WAYBILL_OUTPUT=json")
	if err := runReport(t.Context(), c, reportOptions{HTML: file, Mask: true}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stdout.Bytes(), &j); err != nil || j.File != file || !j.Masked || j.Bytes == 0 {
		t.Errorf("%s: %v", stdout, err)
	}
}
