package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Version is what one answer or event said of a tracking, in our output.
type Version struct {
	ReferID              string          `json:"referId"`
	TrackingNumber       string          `json:"trackingNumber"`
	LearntAt             *time.Time      `json:"learntAt"`
	LastAt               *time.Time      `json:"lastAt,omitempty"` // of an answer: when the last one came that said the same
	LearntFrom           ledger.Source   `json:"learntFrom"`       // query or event
	Seq                  int64           `json:"seq,omitempty"`    // of the event
	ID                   string          `json:"id,omitempty"`     // likewise
	State                ledger.Phase    `json:"state"`
	Status               json.RawMessage `json:"status"`
	StatusLabel          string          `json:"statusLabel"`
	StatusTrack          string          `json:"statusTrack"`
	LatestEvent          string          `json:"latestEvent"`
	LatestCheckpointTime string          `json:"latestCheckpointTime,omitempty"`

	Older     bool              `json:"older"`       // older than what was known: it changed nothing
	Before    *statusJSON       `json:"before"`      // the status before; null if it did not change
	Added     []json.RawMessage `json:"added"`       // checkpoints, as sent
	Removed   []json.RawMessage `json:"removed"`     // likewise
	Rewritten []rewriteJSON     `json:"rewritten"`   // likewise
	Anomalies []anomalyJSON     `json:"anomalies"`   // what cannot be right in its checkpoints, or in what it changed
	List      []json.RawMessage `json:"checkpoints"` // newest first
	Raw       json.RawMessage   `json:"raw"`         // the whole answer, or the event; null if it was pruned
}

type statusJSON struct {
	Status      json.RawMessage `json:"status"`
	StatusLabel string          `json:"statusLabel"`
	StatusTrack string          `json:"statusTrack"`
}

type rewriteJSON struct {
	Was json.RawMessage `json:"was"`
	Is  json.RawMessage `json:"is"`
}

// NewVersion returns a version of a tracking.
func NewVersion(t query.Tracking, v query.Version) Version {
	j := Version{
		ReferID: t.ReferID, TrackingNumber: t.Number, LearntAt: TimeOrNull(v.Learnt), LastAt: TimeOrNull(v.Last), LearntFrom: ledger.FromQuery, Seq: v.Seq, ID: v.ID,
		State: v.Phase, Status: JSONOrNull(v.Status), StatusLabel: v.StatusLabel, StatusTrack: v.StatusTrack,
		LatestEvent: v.LatestEvent, LatestCheckpointTime: v.LatestTime, Older: v.Change.Older,
		Added: rawCheckpoints(v.Change.Added), Removed: rawCheckpoints(v.Change.Removed), Rewritten: []rewriteJSON{}, Raw: JSONOrNull(""),
	}
	if len(v.Raw) > 0 {
		j.Raw = rawJSON(v.Raw)
	}
	if v.Event {
		j.LearntFrom = ledger.FromEvent
	}
	if b := v.Change.Before; v.Change.Status {
		j.Before = &statusJSON{JSONOrNull(b.Status), b.StatusLabel, b.StatusTrack}
	}
	for _, r := range v.Change.Rewritten {
		j.Rewritten = append(j.Rewritten, rewriteJSON{r.Was.Raw, r.Is.Raw})
	}
	j.List, j.Anomalies = timelineJSON(query.Tracking{Tracking: v.Tracking, Learnt: v.Learnt, Anomalies: v.Change.Anomalies})
	if j.Anomalies == nil {
		j.Anomalies = []anomalyJSON{}
	}
	return j
}

func rawCheckpoints(cs []tracking.Checkpoint) []json.RawMessage {
	raw := make([]json.RawMessage, 0, len(cs))
	for _, c := range tracking.Timeline(cs) {
		raw = append(raw, c.Raw)
	}
	return raw
}

// VersionStatus shows the status that a version has.
func (n StatusNames) VersionStatus(v query.Version) string {
	return n.Phase(query.Tracking{Tracking: v.Tracking, Phase: v.Phase})
}

// VersionSource shows where a version is from.
func VersionSource(v query.Version) string {
	if v.Event {
		return "event " + v.ID
	}
	return "answer"
}

// Changes shows what a version changed, one text for each change, and what cannot
// be right in what it brought. show shows a checkpoint in a line.
func (n StatusNames) Changes(v query.Version, show func(tracking.Checkpoint) string) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	c := v.Change
	switch {
	case c.First:
		add("first version, with %s", command.Plural(len(v.Checkpoints), "checkpoint"))
	case c.Older:
		add("older than the known data, changes nothing")
	case c.None():
		add("no change")
	case c.Status:
		add("status: %s, before: %s", n.VersionStatus(v), n.statusBefore(c.Before))
	}
	for _, a := range c.Anomalies {
		what := "status"
		if a.Kind == tracking.TimeBack {
			what = "time"
		}
		add("%s went back: %s", what, a.Message)
	}
	if !c.First {
		for _, added := range tracking.Timeline(c.Added) {
			add("added: %s", show(added))
		}
	}
	for _, r := range c.Removed {
		add("removed: %s", show(r))
	}
	for _, r := range c.Rewritten {
		add("rewritten: %s, was: %s", show(r.Is), r.Difference())
	}
	for _, e := range c.Marked {
		add("%s: %s", Anomalies(e.Anomalies, render.LocalTime), show(e.Checkpoint))
	}
	return all
}

// statusBefore shows the status of the version before.
func (n StatusNames) statusBefore(t tracking.Tracking) string {
	phase := ledger.Processed
	switch {
	case t.Processing && !t.Known():
		phase = ledger.Processing
	case !t.Known():
		phase = ledger.Absent
	}
	return cmp.Or(n.Phase(query.Tracking{Tracking: t, Phase: phase}), "not reported")
}

// Checkpoint shows a checkpoint in a line: when, as sent, what and where.
func Checkpoint(c tracking.Checkpoint) string {
	return joined(cmp.Or(c.UTC, c.Local), c.Event, c.City, c.State, c.ZIP)
}

// LocalCheckpoint shows a checkpoint in a line, by its own clock.
func LocalCheckpoint(c tracking.Checkpoint) string {
	return joined(CheckpointTime(c), c.Event, Place(c))
}

// joined joins the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ", ")
}

// Place shows where a checkpoint was, such as "Munich, BY 80331".
func Place(c tracking.Checkpoint) string {
	return joined(c.City, strings.TrimSpace(c.State+" "+c.ZIP))
}
