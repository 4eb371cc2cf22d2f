package inspect

import (
	"net/http"
	"strconv"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/runs"
	"github.com/waybill-cli/waybill/internal/inspect"
)

// runRoutes are the routes of runs.
func (p *Page) runRoutes() []inspect.Route {
	limit := limiter(maxReads)
	return []inspect.Route{
		{Method: http.MethodGet, Pattern: "/runs", Serve: limit(p.runs)},
		{Method: http.MethodGet, Pattern: "/runs/{id}", Serve: limit(p.run)},
	}
}

// runsJSON is a list of runs.
type runsJSON struct {
	Runs     []runs.Listed `json:"runs"`
	More     bool          `json:"more"` // there are earlier ones
	MaxLimit int           `json:"maxLimit"`
}

func (p *Page) runs(r *http.Request) (any, error) {
	limit, err := limitOf(r, runs.PageRuns, runs.MaxRuns)
	if err != nil {
		return nil, err
	}
	all, err := runs.ReadList(r.Context(), p.Call, limit+1)
	if err != nil {
		return nil, err
	}
	shown := min(len(all), limit)
	return runsJSON{all[:shown], len(all) > limit, runs.MaxRuns}, nil
}

func (p *Page) run(r *http.Request) (any, error) {
	limit, err := limitOf(r, runs.PageRows, runs.MaxRows)
	if err != nil {
		return nil, err
	}
	return runs.ReadPage(r.Context(), p.Call, r.PathValue("id"), limit)
}

// limitOf reads the parameter limit.
func limitOf(r *http.Request, preset, most int) (int, error) {
	return parseLimit(r.URL.Query().Get("limit"), preset, most)
}

// parseLimit reads how many rows are asked for; preset if nothing is said.
func parseLimit(text string, preset, most int) (int, error) {
	if text == "" {
		return preset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, command.Usagef("such as ?limit="+strconv.Itoa(preset), "limit must be 1 to %d, not %s", most, command.Quoted(text))
	}
	return n, nil
}
