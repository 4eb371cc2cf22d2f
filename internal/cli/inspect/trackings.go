package inspect

import (
	"context"
	"net/http"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inspect"
)

// maxReads is how many requests for trackings or runs read the store at once: each may
// read all that it has.
const maxReads = 2

// trackingRoutes are the routes of trackings.
func (p *Page) trackingRoutes() []inspect.Route {
	limit := limiter(maxReads)
	return []inspect.Route{
		{Method: http.MethodGet, Pattern: "/trackings", Serve: limit(p.trackings)},
		{Method: http.MethodGet, Pattern: "/trackings/summary", Serve: limit(p.trackingsSummary)},
		{Method: http.MethodGet, Pattern: "/trackings/choices", Serve: limit(func(r *http.Request) (any, error) {
			return track.ReadChoices(r.Context(), p.Call)
		})},
		{Method: http.MethodGet, Pattern: "/tracking", Serve: limit(p.tracking)},
	}
}

// limiter returns what makes routes wait while n others of them run.
func limiter(n int) func(func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	slots := make(chan struct{}, n)
	return func(serve func(*http.Request) (any, error)) func(*http.Request) (any, error) {
		return func(r *http.Request) (any, error) {
			select {
			case slots <- struct{}{}:
			case <-r.Context().Done():
				return nil, context.Cause(r.Context())
			}
			defer func() { <-slots }()
			return serve(r)
		}
	}
}

// trackingsJSON is a list of trackings.
type trackingsJSON struct {
	Trackings []view.Listed `json:"trackings"`
	Summary   *summaryJSON  `json:"summary"`     // of all that match; null if there are more than trackings has
	MaxLimit  int           `json:"maxLimit"`    // of the parameter limit
	ReadAt    time.Time     `json:"readAt"`      // when the store was read
	Notes     []string      `json:"notes"`       // what `list` prints beside its rows
	Next      string        `json:"nextCommand"` // empty for none
	Export    string        `json:"exportCommand"`
}

// summaryJSON is a summary with the tones of its statuses.
type summaryJSON struct {
	Trackings int64       `json:"trackings"`
	ByStatus  []countJSON `json:"byStatus"`
}

type countJSON struct {
	view.StatusCountJSON

	Tone string `json:"tone"`
}

func (p *Page) trackings(r *http.Request) (any, error) {
	at := time.Now().UTC()
	list, err := track.ReadPage(r.Context(), p.Call, r.URL.Query())
	if err != nil {
		return nil, err
	}
	j := trackingsJSON{
		Trackings: list.Trackings, MaxLimit: track.MaxRows, ReadAt: at, Notes: list.Notes, Next: list.Next, Export: list.Export,
	}
	if list.Summary != nil {
		j.Summary = new(p.summary(list.Summary.JSON()))
	}
	return j, nil
}

// trackingsSummary answers with the summary alone, which may take much longer than the
// first rows.
func (p *Page) trackingsSummary(r *http.Request) (any, error) {
	s, err := track.ReadSummary(r.Context(), p.Call, r.URL.Query())
	if err != nil {
		return nil, err
	}
	return p.summary(s.JSON()), nil
}

func (p *Page) summary(s view.SummaryJSON) summaryJSON {
	names := view.NewStatusNames(p.Call.Config.Statuses)
	j := summaryJSON{Trackings: s.Trackings, ByStatus: []countJSON{}}
	for _, status := range s.ByStatus {
		j.ByStatus = append(j.ByStatus, countJSON{status, names.Tone(status.StatusJSON)})
	}
	return j
}
