package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// model does what comes to mind to a store, and to a plain model of it, and
// compares what they say.
func model(t *testing.T, h Harness) {
	t.Helper()
	const seeds, steps = 12, 40
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &modelled{world: newWorld(t, h), rng: rand.New(rand.NewPCG(seed, 1)), rows: map[tracking.Key]*modelRow{}} //nolint:gosec // to be repeated by its seed
			for range steps {
				m.step()
				m.compare()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// modelled is a store and what it ought to hold.
type modelled struct {
	*world
	rng     *rand.Rand
	rows    map[tracking.Key]*modelRow
	runs    []*modelRun
	claimed []ledger.Batch
}

type modelRow struct {
	tracking.Item
	state  ledger.State
	added  int64 // the run that brought it in
	sentBy int64 // the run whose batches it is in
	unsent bool  // to be checked first
}

// superseded reports whether another number of the row's order was accepted that
// a later run brought in.
func (m *modelled) superseded(row *modelRow) bool {
	if row.state != ledger.Rejected {
		return false
	}
	for _, other := range m.rows {
		if other.ReferID == row.ReferID && other.added > row.added && other.state == ledger.Accepted {
			return true
		}
	}
	return false
}

type modelRun struct {
	ledger.Run
	records []ledger.Row // without ID, State and Reason
	keys    map[tracking.Key]bool
}

func (m *modelled) step() {
	switch n := m.rng.IntN(14); {
	case n < 3 || len(m.runs) == 0:
		m.stage(m.rng.IntN(5) > 0)
	case n < 6:
		m.claimSome()
	case n < 9:
		m.recordSome()
	case n < 10:
		m.adoptSome()
	case n < 12:
		m.resolveSome()
	case n < 13:
		m.reopenSome()
	default:
		m.dieAndRecover()
	}
}

// entry is a record out of few, which therefore come again and again.
func (m *modelled) entry(line int) ledger.Entry {
	e := ledger.Entry{File: m.rng.IntN(2), Line: line, Item: tracking.Item{
		ReferID: fmt.Sprintf("r%d", m.rng.IntN(12)), Number: fmt.Sprintf("n%d", m.rng.IntN(4)), CarrierCode: "ups",
	}}
	if m.rng.IntN(12) == 0 {
		e.Item.CarrierCode = "dhl"
	}
	return e
}

// stage stages an input, and opens or discards the run.
func (m *modelled) stage(open bool) {
	p := plan()
	p.BatchSize = 1 + m.rng.IntN(5)
	p.CheckFirst = m.rng.IntN(4) == 0
	staging := have(m.Stage(m.Context(), p))(m.world)
	run := &modelRun{Run: ledger.Run{Plan: p}, keys: map[tracking.Key]bool{}}
	first := map[tracking.Key]ledger.Entry{}
	added := map[tracking.Key]*modelRow{}
	line := 2
	for range m.rng.IntN(4) {
		var all []ledger.Entry
		var want []ledger.Conflict
		for range m.rng.IntN(9) {
			e := m.entry(line)
			line++
			all = append(all, e)
			if c, ok := m.record(run, first, added, e); !ok {
				want = append(want, c)
			}
		}
		got := have(staging.Add(m.Context(), all))(m.world)
		if !slices.Equal(got, want) {
			m.Errorf("conflicts %v, want %v", got, want)
		}
	}
	if !open {
		m.must(staging.Discard(m.Context()))
		return
	}
	got := have(staging.Open(m.Context()))(m.world)
	run.ID, run.Created = got.ID, got.Created
	m.same("run", got, run.Run)
	for key, row := range added {
		row.added, row.sentBy = run.ID, run.ID
		m.rows[key] = row
	}
	m.runs = append(m.runs, run)
}

// record adds a record to a run, unless it contradicts an earlier one.
func (m *modelled) record(run *modelRun, first map[tracking.Key]ledger.Entry, added map[tracking.Key]*modelRow, e ledger.Entry) (ledger.Conflict, bool) {
	key := e.Item.Key()
	row, known := m.rows[key]
	before, again := first[key]
	if again && before.Item.CarrierCode != e.Item.CarrierCode {
		run.Tally.Skipped++
		return ledger.Conflict{Entry: e, First: before}, false
	}
	switch {
	case again:
		run.Tally.Repeats++
	case known:
		run.Tally.Known++
		if row.CarrierCode != e.Item.CarrierCode {
			run.Tally.OtherCarrier++
		}
		switch row.state {
		case ledger.Pending:
			run.Tally.KnownPending++
		case ledger.Sending, ledger.Unknown:
			run.Tally.KnownOpen++
		}
	default:
		run.Tally.New++
		added[key] = &modelRow{Item: e.Item, state: ledger.Pending}
		if run.Plan.CheckFirst {
			added[key].state, added[key].unsent = ledger.Unknown, true
		}
	}
	if !again {
		first[key] = e
		run.keys[key] = true
	}
	item := e.Item
	if known {
		item = row.Item
	}
	run.records = append(run.records, ledger.Row{File: run.Plan.Files[e.File], Line: e.Line, Item: item, Known: known, Repeat: again})
	return ledger.Conflict{}, true
}

func (m *modelled) anyRun() *modelRun { return m.runs[m.rng.IntN(len(m.runs))] }

func (m *modelled) claimSome() {
	run := m.anyRun()
	n := 1 + m.rng.IntN(3)
	size := 1 + m.rng.IntN(5)
	batches := have(m.Claim(m.Context(), run.ID, n, size))(m.world)
	left := 0
	for _, row := range m.rows {
		if row.sentBy == run.ID && row.state == ledger.Pending {
			left++
		}
	}
	if len(batches) > n || len(batches) == 0 && left > 0 {
		m.Errorf("claimed %d batches of at most %d, while %d rows were pending", len(batches), n, left)
	}
	for _, b := range batches {
		if len(b.Rows) == 0 || len(b.Rows) > size {
			m.Errorf("batch %d has %d rows of at most %d", b.ID, len(b.Rows), size)
		}
		if !slices.IsSortedFunc(b.Rows, func(x, y ledger.BatchRow) int { return int(x.ID - y.ID) }) {
			m.Errorf("batch %d is in no order: %v", b.ID, b.Rows)
		}
		for _, r := range b.Rows {
			row := m.rows[r.Item.Key()]
			if row == nil || row.Item != r.Item || row.state != ledger.Pending || row.sentBy != run.ID {
				m.Errorf("claimed %v for run %d, but it is %v", r, run.ID, row)
				continue
			}
			row.state, row.unsent = ledger.Sending, false
		}
	}
	m.claimed = append(m.claimed, batches...)
}

func (m *modelled) recordSome() {
	outcomes := []ledger.State{ledger.Accepted, ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Pending}
	var all []ledger.BatchOutcome
	for range 2 {
		if len(m.claimed) == 0 {
			break
		}
		i := m.rng.IntN(len(m.claimed))
		b := m.claimed[i]
		m.claimed = slices.Delete(m.claimed, i, i+1)
		s := outcome(b, outcomes[m.rng.IntN(len(outcomes))])
		s.Halve = s.State == ledger.Pending && m.rng.IntN(2) == 0
		for _, r := range b.Rows {
			row := m.rows[r.Item.Key()]
			row.state = s.State
			if m.rng.IntN(3) == 0 {
				row.state = outcomes[m.rng.IntN(len(outcomes))]
				s.Rows = append(s.Rows, ledger.RowOutcome{Row: r.ID, State: row.state, Reason: "because of the row"})
			}
		}
		all = append(all, s)
	}
	m.must(m.RecordOutcomes(m.Context(), all))
}

func (m *modelled) adoptSome() {
	run := m.anyRun()
	var want int64
	for key := range run.keys {
		if row := m.rows[key]; row.state == ledger.Pending && row.sentBy != run.ID {
			row.sentBy = run.ID
			want++
		}
	}
	m.adopt(run.ID, want)
}

// resolveSome resolves some unknown rows of a run's input.
func (m *modelled) resolveSome() {
	run := m.anyRun()
	var findings []ledger.Resolution
	unknown := 0
	for _, x := range m.unknown(run.ID) {
		row := m.rows[x.Item.Key()]
		if row == nil || row.state != ledger.Unknown || row.unsent != x.Unsent || !run.keys[x.Item.Key()] {
			m.Errorf("unknown %v, but it is %v", x, row)
			continue
		}
		unknown++
		f := ledger.Resolution{Row: x.Row, Batch: x.Batch, State: ledger.Unknown, AbsentSince: sent, Fingerprint: "none"}
		switch m.rng.IntN(4) {
		case 0:
			continue
		case 1:
			f.State = ledger.Accepted
		case 2:
			f.State = ledger.Pending
			row.sentBy = run.ID
		}
		row.state = f.State
		findings = append(findings, f)
	}
	want := 0
	for key := range run.keys {
		if m.rows[key].state == ledger.Unknown {
			want++
		}
	}
	for _, f := range findings {
		if f.State != ledger.Unknown {
			want++
		}
	}
	m.same("unknown", unknown, want)
	m.same("resolved", have(m.Resolve(m.Context(), run.ID, findings))(m.world), int64(len(findings)))
}

// reopenSome makes what a run's input has rejected or unknown pending.
func (m *modelled) reopenSome() {
	run := m.anyRun()
	from := ledger.Rejected
	if m.rng.IntN(3) == 0 {
		from = ledger.Unknown
	}
	var want int64
	for key := range run.keys {
		if row := m.rows[key]; row.state == from && !m.superseded(row) {
			row.state, row.sentBy = ledger.Pending, run.ID
			want++
		}
	}
	m.same("reopened", have(m.Reopen(m.Context(), run.ID, from, ""))(m.world), want)
}

func (m *modelled) dieAndRecover() {
	m.kill()
	m.claimed = nil
	var want int64
	for _, row := range m.rows {
		if row.state == ledger.Sending {
			row.state = ledger.Unknown
			want++
		}
	}
	m.same("recovered", have(m.Recover(m.Context()))(m.world), want)
}

// compare asks the store all that the model knows.
func (m *modelled) compare() {
	m.Helper()
	var pending int64
	for _, row := range m.rows {
		if row.state == ledger.Pending {
			pending++
		}
	}
	for _, run := range m.runs {
		var want ledger.Counts
		var elsewhere int64
		for key := range run.keys {
			row := m.rows[key]
			want.Add(row.state, 1)
			if row.state == ledger.Accepted && row.sentBy != run.ID {
				elsewhere++
			}
		}
		m.counts(run.ID, want)
		m.same("accepted rows of other runs", have(m.Run(m.Context(), run.ID))(m.world).Elsewhere, elsewhere)
		m.pending(run.ID, pending-want.Pending)
		got := collect(m.world, m.Rows(m.Context(), run.ID))
		if len(got) != len(run.records) {
			m.Errorf("run %d: %d records, want %d", run.ID, len(got), len(run.records))
			return
		}
		for i, want := range run.records {
			row := m.rows[want.Item.Key()]
			want.ID, want.Reason, want.State, want.Superseded = got[i].ID, got[i].Reason, row.state, m.superseded(row)
			if got[i] != want {
				m.Errorf("run %d, record %d: %v, want %v", run.ID, i, got[i], want)
			}
		}
	}
	var statuses int
	for _, st := range collect(m.world, m.Statuses(m.Context(), ledger.Filter{})) {
		statuses++
		if row := m.rows[st.Item.Key()]; row == nil || row.state != st.State {
			m.Errorf("status %v, want %v", st, row)
		}
	}
	m.same("statuses", statuses, len(m.rows))
}
