package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type anomalyJSON struct {
	Kind       tracking.AnomalyKind `json:"kind"`
	Message    string               `json:"message"`
	Checkpoint int                  `json:"checkpoint"` // place in checkpoints
}

// timelineJSON returns the checkpoints of a tracking as sent, newest first, and
// what cannot be right.
func timelineJSON(f query.Tracking) ([]json.RawMessage, []anomalyJSON) {
	checkpoints, anomalies := []json.RawMessage{}, []anomalyJSON(nil)
	for i, e := range f.Timeline() {
		checkpoints = append(checkpoints, e.Raw)
		for _, a := range e.Anomalies {
			anomalies = append(anomalies, anomalyJSON{a.Kind, a.Message, i})
		}
	}
	return checkpoints, anomalies
}

// Anomalies shows what cannot be right.
func Anomalies(all []tracking.Anomaly) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.Message)
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

// Checkpoint shows a checkpoint in a line: when, as sent, what and where.
func Checkpoint(c tracking.Checkpoint) string {
	return joined(cmp.Or(c.UTC, c.Local), c.Event, c.City, c.State, c.ZIP)
}

// Place shows where a checkpoint was, such as "Munich, BY 80331".
func Place(c tracking.Checkpoint) string {
	return joined(c.City, strings.TrimSpace(c.State+" "+c.ZIP))
}

func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ", ")
}
