package view

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// anomalyJSON is what cannot be right in a timeline, or in how it changed.
type anomalyJSON struct {
	Kind       tracking.AnomalyKind `json:"kind"`
	Message    string               `json:"message"`
	Checkpoint *int                 `json:"checkpoint"`      // place in checkpoints; null if it was removed, or for the tracking as a whole
	Since      *time.Time           `json:"since,omitempty"` // when the version was learnt that has it
	Was        json.RawMessage      `json:"was,omitempty"`   // removed, rewritten: the checkpoint before, as sent
}

func newAnomalyJSON(a tracking.Anomaly, at *int) anomalyJSON {
	j := anomalyJSON{Kind: a.Kind, Message: a.Message, Checkpoint: at, Since: TimeOrNull(a.Since)}
	if a.Was != nil {
		j.Was = a.Was.Raw
	}
	return j
}

// timelineJSON returns the checkpoints of a tracking as sent, newest first, and
// what cannot be right.
func timelineJSON(f query.Tracking) ([]json.RawMessage, []anomalyJSON) {
	checkpoints, anomalies := []json.RawMessage{}, []anomalyJSON(nil)
	for _, a := range f.Anomalies {
		anomalies = append(anomalies, newAnomalyJSON(a, nil))
	}
	for _, e := range f.Timeline() {
		var at *int
		if !e.Removed() {
			n := len(checkpoints)
			at, checkpoints = &n, append(checkpoints, e.Raw)
		}
		for _, a := range e.Anomalies {
			j := newAnomalyJSON(a, at)
			if a.Kind == tracking.Removed {
				j.Was = e.Raw
			}
			anomalies = append(anomalies, j)
		}
	}
	return checkpoints, anomalies
}

// Anomalies shows what cannot be right, and since when; form shows a time.
func Anomalies(all []tracking.Anomaly, form func(time.Time) string) string {
	var texts []string
	for _, a := range all {
		text := a.Message
		switch {
		case a.Kind == tracking.Removed:
			text += " since " + form(a.Since)
		case !a.Since.IsZero():
			text += ", until " + form(a.Since)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// AnomalyKinds shows of what kinds anomalies are.
func AnomalyKinds(all []tracking.Anomaly) string {
	var kinds []string
	for _, a := range all {
		if kind := strings.ReplaceAll(string(a.Kind), "_", " "); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}
