package bulk

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// recordSightings records what the answers to synchronous creates say of trackings.
func (d *dispatch) recordSightings(ctx context.Context, some []sentBatch) {
	var seen []ledger.Sighting
	for _, o := range some {
		if d.Run.Plan.Mode == ledger.Sync && o.reply.Outcome == tracking.OutcomeAccepted {
			seen = append(seen, o.sightings()...)
		}
	}
	if len(seen) == 0 {
		return
	}
	slices.SortStableFunc(seen, func(a, b ledger.Sighting) int { // the order in which many are recorded fastest
		return cmp.Or(strings.Compare(a.Key.ReferID, b.Key.ReferID), strings.Compare(a.Key.Number, b.Key.Number))
	})
	if err := d.Ledger.Record(ctx, []ledger.RecordedAnswer{{Seen: seen}}); err != nil {
		d.Warn("rows saved as accepted, but without their status in the response: %v", err)
	}
}

// sightings returns what the answer says of the rows of its batch.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func (o sentBatch) sightings() []ledger.Sighting {
	answer := o.reply.Body.Answer()
	byNumber := make(map[string]tracking.Tracking, len(answer.Trackings))
	for _, t := range answer.Trackings {
		byNumber[t.Number] = t
	}
	var seen []ledger.Sighting
	for _, row := range o.batch.Rows {
		t, ok := byNumber[row.Item.Number]
		if ok && t.Known() && (t.ReferID == "" || t.ReferID == row.Item.ReferID) {
			seen = append(seen, ledger.NewSighting(t, ledger.Processed, row.Item.Key(), o.reply.Began.Add(o.reply.Took), ledger.FromCreate))
		}
	}
	return seen
}
