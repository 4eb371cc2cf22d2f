package store

import (
	"context"
	"strconv"
	"strings"
)

// newArrivalInsert returns a statement that adds rows of arrivals. numbers are the settings
// with the last numbers of its first columns.
func newArrivalInsert(begin, types string, numbers ...string) multiInsert {
	in := newMultiInsert(begin, types, "")
	var names, values []string
	for i := range types {
		name := "c" + strconv.Itoa(i)
		names = append(names, name)
		if i < len(numbers) {
			name += " + CAST(current_setting('" + numbers[i] + "') AS BIGINT)"
		}
		values = append(values, name)
	}
	in.unseen = begin + " SELECT " + strings.Join(values, ", ") + " FROM " + unnest(types) + " given (" + strings.Join(names, ", ") +
		") WHERE CAST(current_setting('" + StoresSetting + "') AS BOOLEAN)"
	return in
}

// putNew stores the arrivals that are queued, if all jobs are arrivals and no event is known
// yet. That takes one round trip. Otherwise it returns false and the jobs are queued as before.
func (w *writer) putNew(ctx context.Context) bool {
	if w.engine.PutNew == nil || w.conn == nil || w.erased {
		return false
	}
	all := w.takeArrivals()
	if len(all) == 0 {
		return false
	}
	t := &tx{w: w, unseen: true, putsOnly: true, last: &Last{}, erased: &erasedNames{}}
	err := t.putAll(ctx, all)
	stored := false
	if err == nil {
		stored, err = t.commitNew(ctx, all)
	}
	again := false
	if err != nil {
		w.dropIfBroken(err)
		again, _ = w.engine.Connector.Judge(err)
	}
	if again || err == nil && !stored {
		w.putBack()
		return false
	}
	w.end(err)
	return true
}

// takeArrivals empties the queue if all its jobs store arrivals.
func (w *writer) takeArrivals() (all []*arrival) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.queue {
		if isNoPut(j) {
			return nil
		}
		all = append(all, j.put)
	}
	w.begun, w.queue = w.queue, nil
	return all
}

// putBack is the reverse of takeArrivals.
func (w *writer) putBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.queue = nil, append(w.begun, w.queue...)
}

// commitNew has the deferred statements done, and gives arrivals the numbers that they got.
func (t *tx) commitNew(ctx context.Context, all []*arrival) (stored bool, err error) {
	before, stored, err := t.w.engine.PutNew(ctx, t.w.conn, NewArrivals{t.last.Delivery, t.keys, t.deferred})
	if !stored || err != nil {
		return false, err
	}
	for _, a := range all {
		a.receipt.Delivery += before.Delivery
		for i := range a.receipt.Rows {
			a.receipt.Rows[i].Seq += before.Event
		}
	}
	t.w.recent.add(t.placed)
	return true, nil
}
