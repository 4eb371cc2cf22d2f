package track

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const reportAccount = "WAYBILL_ACCOUNT=acme-account"

// seen returns what an answer said of a tracking, the last checkpoint of which is that old.
func seen(referID, number, label, carrier, event string, age time.Duration) ledger.Sighting {
	at := time.Now().Add(-age)
	return ledger.Sighting{
		Key: tracking.Key{ReferID: referID, Number: number}, Phase: ledger.Processed,
		Report: tracking.Report{StatusLabel: label, LatestEvent: event}, CarrierCode: carrier,
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
	if err := db.Trackings.Record(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
	return &listing{call: c}
}

const week = 7 * day

// A report counts what is stuck, and has problems first in its table, then what is stuck.
func TestReportOrder(t *testing.T) {
	l := reporting(t,
		seen("A1", "N1", "DELIVERED", "ups", "Delivered", day), seen("A2", "N2", "DELIVERED", "UPS", "Delivered", 2*day),
		seen("A3", "N3", "IN_TRANSIT", "dhl", "Departed", day), seen("A4", "N4", "IN_TRANSIT", "dhl", "Departed", 2*week),
		seen("A5", "N5", "RETURNED", "ups", "Returned", 3*week))
	r := newReporter(l)
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

func (m *meddler) Count(ctx context.Context, f ledger.Filter) ([]ledger.Group, error) {
	defer m.write()
	return m.Statistics.Count(ctx, f)
}

func (m *meddler) Statuses(ctx context.Context, f ledger.Filter) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		defer m.write()
		m.Trackings.Statuses(ctx, f)(yield)
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
		if err := l.db.Trackings.Record(t.Context(), []ledger.RecordedAnswer{{ReferID: s.Key.ReferID, Asked: time.Now(), Seen: []ledger.Sighting{s}}}); err != nil {
			t.Error(err)
		}
	}}
	store.Trackings, store.Statistics = m, m
	r := newReporter(&listing{call: l.call, db: &store, names: l.names})
	if err := r.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := r.page(t.Context())
	if n == 0 || p.Counts != (report.Split{1, 1, 0, 0}) || p.Stuck != 1 || len(p.Rows) != 2 || p.Summary != "2 trackings: 1 delivered · 1 in transit" {
		t.Errorf("%d written meanwhile: counts %v, %d stuck, %d rows, %s", n, p.Counts, p.Stuck, len(p.Rows), p.Summary)
	}
}

// Rows are kept in bounded memory: what needs attention, then the latest.
func TestReportRowsAreBounded(t *testing.T) {
	var rows reportRows
	for i := range 5 * report.MaxRows {
		row := reportRow{reference: fmt.Sprint(i), statusClass: &statusClass{class: report.Delivered}}
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
	long := reportRow{statusClass: &statusClass{}, event: strings.Repeat("x", 100_000)}
	for range 1000 {
		rows.add(long)
	}
	if rows.bytes > report.MaxBytes {
		t.Errorf("%d bytes are kept", rows.bytes)
	}
}

// The last days are bars, all before them are one, and all trackings are in these.
func TestReportDays(t *testing.T) {
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.Local)
	for _, test := range []struct {
		days, bars int
		before     int64
		name       string
	}{{1, 1, 0, "before 2026-03-15"}, {31, 31, 0, "before 2026-02-13"}, {32, 31, 2, "before 2026-02-13"}, {1100, 31, 2 * 1069, "before 2026-02-13"}} {
		var groups []ledger.Group
		for i := range test.days {
			g := ledger.Group{Created: now.AddDate(0, 0, -i)}
			g.Phase, g.StatusLabel, g.Trackings = ledger.Processed, "DELIVERED", 2
			groups = append(groups, g)
		}
		groups = append(groups, ledger.Group{StatusCount: ledger.StatusCount{State: ledger.Pending, Trackings: 3}})
		r := newReporter(&listing{})
		r.sums.add(groups, now)
		var p report.Page
		r.countDays(&p)
		for _, b := range p.Days {
			if b.Total() != 2 {
				t.Errorf("%d days: %d on %s; want 2", test.days, b.Total(), b.Name)
			}
		}
		if len(p.Days) != test.bars || p.Before.Total() != test.before || p.Before.Name != test.name || p.NoDay != 3 {
			t.Errorf("%d days: %d bars, %d %s, %d without; want %d, %d %s and 3", test.days, len(p.Days), p.Before.Total(), p.Before.Name, p.NoDay, test.bars, test.before, test.name)
		}
	}
}

// The page of an empty store says so.
func TestReportOfNothing(t *testing.T) {
	c, stdout, stderr := clitest.Call(t, reportAccount)
	file := t.TempDir() + "/report.html"
	if err := runReport(t.Context(), c, reportOptions{File: file}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "0 trackings") || !strings.Contains(stderr.String(), "No tracking is known yet") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
	var j reportJSON
	c, stdout, _ = clitest.Call(t, reportAccount, "WAYBILL_OUTPUT=json")
	if err := runReport(t.Context(), c, reportOptions{File: file}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stdout.Bytes(), &j); err != nil || j.File != file {
		t.Errorf("%s: %v", stdout, err)
	}
}
