package tracking

import (
	"cmp"
	"slices"
	"strings"
)

type partial struct {
	Tracking
	// envelopeStatus is a status beside a number, without a label or track: it may be the envelope's own.
	envelopeStatus string
}

// collect merges nested objects unless their numbers differ; elements of a list are separate trackings.
func collect(v *value, name string) []partial {
	switch v.kind {
	case list:
		if isCheckpoints(v) {
			return []partial{{Tracking: Tracking{Checkpoints: checkpoints(v)}}}
		}
		var all []partial
		for _, item := range v.items {
			all = append(all, collect(item, "")...)
		}
		return all
	case object:
		return collectObject(v, name)
	default:
		return nil
	}
}

func unrelated(name string) bool {
	return slices.Contains([]string{"request", "related", "links", "pagination", "debug", "echo"}, name)
}

func collectObject(v *value, name string) []partial {
	var own []partial
	if f, ok := ownFields(v, name); ok {
		own = append(own, f)
	}
	for _, m := range v.members {
		switch {
		case m.name == "trackingEvents" && m.value.kind == list:
			own = merge(own, []partial{{Tracking: Tracking{Checkpoints: checkpoints(m.value)}}})
		case m.name != "trackingEvents" && !unrelated(m.name):
			own = merge(own, collect(m.value, m.name))
		}
	}
	return own
}

// merge joins two neighbours: a tracking of b is merged into one of a that it does not contradict.
func merge(a, b []partial) []partial {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	case len(b) == 1:
		for i := range a {
			if sameTracking(a[i].Tracking, b[0].Tracking) {
				fillMissing(&a[i].Tracking, b[0].Tracking)
				a[i].envelopeStatus = cmp.Or(a[i].envelopeStatus, b[0].envelopeStatus)
				return a
			}
		}
	case len(a) == 1 && !a[0].Known():
		// An envelope around a list: its referId applies to all elements.
		for i := range b {
			b[i].ReferID = cmp.Or(b[i].ReferID, a[0].ReferID)
		}
		return b
	}
	return append(a, b...)
}

func sameTracking(a, b Tracking) bool {
	if a.Number != "" && b.Number != "" {
		return SameNumber(a.Number, b.Number)
	}
	if a.RouterID != "" && b.RouterID != "" && !strings.EqualFold(a.RouterID, b.RouterID) {
		return false
	}
	return len(a.Checkpoints) == 0 || len(b.Checkpoints) == 0
}

func fillMissing(t *Tracking, b Tracking) {
	more := b.texts()
	for i, text := range t.texts() {
		*text = cmp.Or(*text, *more[i])
	}
	t.Processing = t.Processing || b.Processing
	if len(t.Checkpoints) == 0 {
		t.Checkpoints = b.Checkpoints
	}
}

func (t *Tracking) texts() []*string {
	return []*string{
		&t.ReferID, &t.Number, &t.CarrierCode, &t.RouterID, &t.Status, &t.StatusLabel, &t.StatusTrack, &t.StatusSummary,
		&t.LatestEvent, &t.LatestTime, &t.TransitTime, &t.Created, &t.Updated, &t.Error,
	}
}

// ownFields takes a `status` only beside other fields of a tracking, as envelopes have one too.
func ownFields(v *value, name string) (partial, bool) {
	t := Tracking{
		ReferID:     v.str(FieldReferID),
		Number:      cmp.Or(v.str("trackingNumber"), v.str(FieldNumber)),
		CarrierCode: v.str(FieldCarrierCode),
		Report: Report{
			RouterID:    v.str("routerId"),
			StatusLabel: v.str("statusLabel"),
			StatusTrack: v.str("statusTrack"),
			LatestEvent: v.str("latestEvent"),
			LatestTime:  v.str("latestCheckpointTime"),
		},
		StatusSummary: v.str("statusSummary"),
		TransitTime:   v.literal("transitTime"),
	}
	var weak string
	status := t.StatusLabel != "" || t.StatusTrack != "" || t.LatestEvent != "" || name == "summary"
	if status {
		t.Status = v.literal("status")
	} else if t.Number != "" {
		weak = v.literal("status")
	}
	known := status || t.Number != "" || t.RouterID != ""
	if known {
		t.Created = v.str("created")
		t.Updated = v.str("updated")
		if e := v.get("error"); e != nil && !e.null() {
			t.Error = string(e.raw)
		}
		t.Processing = isProcessing(v.str("message"))
	}
	if name == "summary" && t.RouterID == "" {
		t.RouterID = v.str("id")
	}
	known = known || t.ReferID != "" || t.CarrierCode != "" || t.RouterID != "" || t.StatusSummary != ""
	return partial{Tracking: t, envelopeStatus: weak}, known
}

func isCheckpoints(v *value) bool {
	return len(v.items) > 0 && !slices.ContainsFunc(v.items, func(item *value) bool {
		return item.kind != object || item.get("eventType") == nil ||
			item.get("GMTTimestamp") == nil && item.get("eventTimestamp") == nil
	})
}

func checkpoints(v *value) []Checkpoint {
	cs := make([]Checkpoint, 0, len(v.items))
	for _, item := range v.items {
		if item.kind != object {
			continue
		}
		cs = append(cs, Checkpoint{
			Event: item.str("eventType"),
			City:  item.str("eventCity"),
			State: item.str("eventState"),
			ZIP:   item.str("eventZIPCode"),
			Local: item.str("eventTimestamp"),
			UTC:   item.str("GMTTimestamp"),
			Raw:   item.raw,
		})
	}
	return cs
}
