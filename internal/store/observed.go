package store

import (
	"context"
	"slices"

	"github.com/waybill-cli/waybill/internal/observed"
)

// Observe adds what was seen in answers, see [observed.Store].
func (d *DB) Observe(ctx context.Context, met []observed.Entry) error {
	if len(met) == 0 {
		return nil
	}
	return d.run(ctx, func(ctx context.Context, t *tx) { t.observe(ctx, observed.Responses, met) })
}

// ObserveEvents adds what was seen in events, see [observed.Store].
func (d *DB) ObserveEvents(ctx context.Context, verified, unverified []observed.Entry, from, to int64) (bool, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) (moved bool) {
		if moved = t.readEvents(ctx, "observed", from, to); moved {
			t.observe(ctx, observed.Verified, verified)
			t.observe(ctx, observed.Unverified, unverified)
		}
		return moved
	})
}

// EventsObserved returns how far events were read, see [observed.Store].
func (d *DB) EventsObserved(ctx context.Context) (to, last int64, err error) {
	return d.eventsRead(ctx, "observed")
}

// Observed returns a register, see [observed.Store].
func (d *DB) Observed(ctx context.Context, of observed.Origin) ([]observed.Entry, error) {
	return readFor(d, func(r *reader) []observed.Entry {
		return list(ctx, r, scanObserved, selectObserved, string(of))
	})
}

const selectObserved = "SELECT kind, name, count, first_seen, last_seen, documented FROM observed WHERE origin = $1"

var scanObserved = scanInto(func(e *observed.Entry) []any {
	return []any{&e.Kind, &e.Value, &e.Count, (*storedTime)(&e.First), (*storedTime)(&e.Last), &e.Documented}
})

var insertObserved = newMultiInsert(
	"INSERT INTO observed (origin, kind, name, count, first_seen, last_seen, documented)", "tttiiii",
	` ON CONFLICT (origin, kind, name) DO UPDATE SET count = observed.count + excluded.count,
		documented = excluded.documented,
		first_seen = CASE WHEN excluded.first_seen < observed.first_seen
			THEN excluded.first_seen ELSE observed.first_seen END,
		last_seen = CASE WHEN excluded.last_seen > observed.last_seen THEN excluded.last_seen ELSE observed.last_seen END`)

func (t *tx) observe(ctx context.Context, of observed.Origin, met []observed.Entry) {
	if len(met) == 0 {
		return
	}
	known := list(ctx, t, scanObserved, selectObserved, string(of))
	met = slices.Clone(met)
	for i := range met {
		met[i].Value = clean(met[i].Value)
	}
	admitted := observed.Admit(known, met)
	insertObserved.exec(ctx, t, len(admitted), func(args []any, i int) []any {
		e := admitted[i]
		return append(args, string(of), string(e.Kind), e.Value, e.Count, millis(e.First), millis(e.Last), flag(e.Documented))
	})
}
