package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const maxCheckpoints = 500

// Times without a checkpoint from which they are marked.
const (
	longGap  = 24 * time.Hour     // between two checkpoints
	longWait = 7 * 24 * time.Hour // since the last one, if not delivered
)

type detailJSON struct {
	Trackings  []partJSON  `json:"trackings"` // as `show -o json` has them: one, or several parcels or orders
	More       int         `json:"more"`      // trackings that were left out
	AskedAt    *time.Time  `json:"askedAt"`   // when the service answered last; null for never
	Events     []eventJSON `json:"events"`    // the latest first
	MoreEvents bool        `json:"moreEvents"`
}

type partJSON struct {
	view.QueriedTracking
	// Omitted: the timeline has them.
	NoCheckpoints *struct{} `json:"checkpoints,omitempty"`
	NoAnomalies   *struct{} `json:"anomalies,omitempty"`

	StatusText string       `json:"statusText"`
	Tone       string       `json:"tone"`
	Place      string       `json:"place"`   // of the latest checkpoint
	Transit    string       `json:"transit"` // of a delivered shipment, in words
	Header     []fieldJSON  `json:"header"`
	Timeline   []stopJSON   `json:"timeline"` // newest first
	Earlier    int          `json:"earlier"`  // checkpoints that timeline leaves out
	Since      *gapJSON     `json:"since"`    // since the latest checkpoint, of what is not delivered; whole hours
	Commands   commandsJSON `json:"commands"`
}

type fieldJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type stopJSON struct {
	EventType    string     `json:"eventType"`
	Place        string     `json:"place"`
	Local        string     `json:"local"`  // by its own clock
	Offset       string     `json:"offset"` // of that clock, empty if it is not known
	UTC          string     `json:"utc"`
	GMTTimestamp string     `json:"GMTTimestamp"` // as sent
	Gap          *gapJSON   `json:"gap"`          // since the checkpoint before; null if that is not known
	Anomalies    []markJSON `json:"anomalies"`
}

type markJSON struct {
	Kind tracking.AnomalyKind `json:"kind"`
	Text string               `json:"text"`
}

type gapJSON struct {
	Seconds int64  `json:"seconds"`
	Text    string `json:"text"`
	Long    bool   `json:"long"`
}

// eventJSON is an event as in `events list -o json`.
type eventJSON struct {
	view.Event
	NoData *struct{} `json:"data,omitempty"` // omitted: the delivery has it
	NoRaw  *struct{} `json:"raw,omitempty"`  // omitted: the delivery has it

	StatusText string `json:"statusText"`
	Tone       string `json:"tone"`
	Trust      string `json:"trust"` // whether it verified, in words
}

type commandsJSON struct {
	Show string `json:"show"`
	Wait string `json:"wait"`
}

func (p *Page) tracking(r *http.Request) (any, error) {
	ask := r.URL.Query()
	referID, number := ask.Get("referId"), ask.Get("trackingNumber")
	if referID == "" && number == "" {
		return nil, command.Usagef("such as ?referId=ORD-1", "name a tracking by referId or trackingNumber")
	}
	at := time.Now()
	s, err := track.ReadStored(r.Context(), p.Call, referID, number)
	if errors.Is(err, tracking.ErrAbsent) {
		err = fmt.Errorf("%s: %w", command.Quoted(cmp.Or(referID, number)), err)
	}
	if err != nil {
		return nil, err
	}
	names := view.NewStatusFormatter(p.Call.Config.Statuses)
	j := detailJSON{
		Trackings: []partJSON{}, More: s.More, AskedAt: view.TimeOrNull(s.Asked),
		Events: []eventJSON{}, MoreEvents: s.Cut,
	}
	for _, t := range s.Trackings {
		j.Trackings = append(j.Trackings, p.part(names, s, t, at))
	}
	for _, e := range s.Events {
		j.Events = append(j.Events, eventJSON{
			Event: view.NewEvent(e), StatusText: names.LabelOrCode(e.Status, e.StatusLabel, e.StatusTrack),
			Tone: view.Tone(names.StatusStyle(e.Status, e.StatusLabel, e.StatusTrack)), Trust: view.Trust(e),
		})
	}
	return j, nil
}

func (p *Page) part(n view.StatusFormatter, s *track.Stored, t query.Tracking, now time.Time) partJSON {
	j := partJSON{
		QueriedTracking: n.Queried(&view.Line{Tracking: t, Row: s.Target.RowOf(t)}), StatusText: n.PhaseName(t),
		Tone:   view.Tone(n.PhaseStyle(t)),
		Header: []fieldJSON{}, Timeline: []stopJSON{}, Commands: p.commands(t),
	}
	for _, f := range track.Header(n, s.Result, t) {
		j.Header = append(j.Header, fieldJSON{f.Name, f.Value})
	}
	if d := t.Transit(); d > 0 {
		j.Transit = view.Duration(d)
	}
	timeline := t.Timeline()
	if len(timeline) > 0 {
		j.Place = view.Place(timeline[0].Checkpoint)
	}
	if at := t.Times().Checkpoint; !at.IsZero() && at.Before(now) && !t.Delivered() {
		j.Since = newGapJSON(now.Sub(at).Truncate(time.Hour), longWait)
	}
	j.Earlier = max(len(timeline)-maxCheckpoints, 0)
	for i, e := range timeline[:len(timeline)-j.Earlier] {
		j.Timeline = append(j.Timeline, newStopJSON(e, timeline[i+1:]))
	}
	return j
}

// newStopJSON returns a checkpoint; earlier are the checkpoints before it.
func newStopJSON(e tracking.Entry, earlier []tracking.Entry) stopJSON {
	j := stopJSON{
		EventType: e.Event, Place: view.Place(e.Checkpoint), UTC: view.UTCMinute(e.UTC), Local: e.Local,
		GMTTimestamp: e.UTC, Anomalies: []markJSON{},
	}
	at, zoned := e.Time()
	if !at.IsZero() {
		j.Local = at.Format("2006-01-02 15:04")
	}
	if zoned {
		j.Offset = at.Format("-07:00")
	}
	for _, a := range e.Anomalies {
		j.Anomalies = append(j.Anomalies, markJSON{a.Kind, a.Message})
	}
	if len(earlier) > 0 {
		is, was := utc(e), utc(earlier[0])
		if !is.IsZero() && !was.IsZero() {
			j.Gap = newGapJSON(is.Sub(was), longGap)
		}
	}
	return j
}

func utc(e tracking.Entry) time.Time {
	t, _ := time.Parse(time.RFC3339, e.UTC) // zero if invalid
	return t
}

func newGapJSON(d, long time.Duration) *gapJSON {
	return &gapJSON{int64(d / time.Second), view.Duration(d), d >= long}
}

func (p *Page) commands(t query.Tracking) commandsJSON {
	ref := []string{cmp.Or(t.ReferID, t.Number)}
	switch {
	case strings.HasPrefix(ref[0], "-") && t.ReferID != "": // it would be parsed as a flag
		ref = []string{"--refer-id=" + ref[0]}
	case t.ReferID == "":
		ref = append(ref, "--by", "tracking-number")
	}
	line := func(verb string) string { return p.Call.CommandLine(append([]string{verb}, ref...)...) }
	return commandsJSON{Show: line("show"), Wait: line("wait")}
}
