package track

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const rowsAtOnce = 250

// inFile yields what is known of the file's rows that the filter leaves, in order. It holds a few rows at a time.
func (l *listing) inFile(ctx context.Context) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		chunk := make([]input.Ref, 0, rowsAtOnce)
		flush := func() bool {
			found, err := l.find(ctx, chunk)
			chunk = chunk[:0]
			for _, st := range found {
				if !yield(st, nil) {
					return false
				}
			}
			if err != nil {
				yield(ledger.TrackingStatus{}, err)
			}
			return err == nil
		}
		for ref, err := range l.file.All(ctx) {
			if err != nil {
				yield(ledger.TrackingStatus{}, err)
				return
			}
			if chunk = append(chunk, ref); len(chunk) == rowsAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// find returns what the filter leaves of rows of a file: all parcels of a row with one
// identifier, and a row of which the store has none as [view.NotCreated].
func (l *listing) find(ctx context.Context, refs []input.Ref) (left []ledger.TrackingStatus, err error) {
	targets := make([]*query.Target, len(refs))
	for i, ref := range refs {
		targets[i] = new(refOptions).target(ref)
		targets[i].Exact = ref.Text == "" // the file says what it is
	}
	if l.db != nil {
		if _, err := l.call.StoredAnswers().FindRows(ctx, targets); err != nil {
			return nil, err
		}
	}
	for i, ref := range refs {
		found := targets[i].Rows()
		if ref.ReferID != "" && ref.Number != "" {
			found = pairOf(found, ref.Number)
		}
		if len(found) == 0 {
			item := tracking.Item{ReferID: cmp.Or(ref.ReferID, ref.Text), Number: ref.Number}
			found = []ledger.TrackingStatus{{Item: item, State: view.NotCreated}}
		}
		left = append(left, found...)
	}
	return l.narrow(ctx, left)
}

// pairOf returns the tracking of a number: as it is written, else otherwise spelled.
func pairOf(all []ledger.TrackingStatus, number string) []ledger.TrackingStatus {
	i := slices.IndexFunc(all, func(st ledger.TrackingStatus) bool { return st.Item.Number == number })
	if i < 0 {
		i = slices.IndexFunc(all, func(st ledger.TrackingStatus) bool { return tracking.SameNumber(st.Item.Number, number) })
	}
	if i < 0 {
		return nil
	}
	return all[i : i+1]
}

func (l *listing) narrow(ctx context.Context, all []ledger.TrackingStatus) ([]ledger.TrackingStatus, error) {
	all = slices.DeleteFunc(all, func(st ledger.TrackingStatus) bool { return !l.filter.Matches(st) })
	if l.db == nil || l.filter.Run == 0 && l.filter.Created.IsZero() || len(all) == 0 {
		return all, nil
	}
	f := ledger.Filter{Run: l.filter.Run, Created: l.filter.Created}
	for _, st := range all {
		if st.Item.ReferID != "" {
			f.ReferIDs = append(f.ReferIDs, st.Item.ReferID)
		}
	}
	inRun := map[tracking.Key]bool{}
	for st, err := range l.db.Trackings.Statuses(ctx, f) {
		if err != nil {
			return nil, err
		}
		inRun[st.Item.Key()] = true
	}
	return slices.DeleteFunc(all, func(st ledger.TrackingStatus) bool { return !inRun[st.Item.Key()] }), nil
}

func (l *listing) createdTargets(ctx context.Context) targets {
	isCreated := func(st ledger.TrackingStatus) bool { return st.State != view.NotCreated }
	created := command.Filter(l.inFile(ctx), isCreated, l.filter.Limit)
	all := func(yield func(*query.Target, error) bool) {
		for t, err := range fromStore(created) {
			t.Chosen = nil // it need not be all of its parcels in the file
			if !yield(t, err) {
				return
			}
		}
	}
	return targets{all: once(all), close: func() {}}
}
