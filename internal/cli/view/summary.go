package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
)

const (
	maxCounted = 256 // statuses counted separately; the rest count as other or other problems
	maxSummed  = 12  // problems named in the text, and as many other statuses; the rest is summed
	maxName    = 40  // columns of a status in the text
)

// Phases of a summary that trackings do not have.
const (
	failed ledger.Phase = "failed" // nothing known, and no usable response
	other  ledger.Phase = "other"
	// otherProblems is separate from other, so that no sum hides a problem.
	otherProblems ledger.Phase = "otherProblems"
)

// Summary counts trackings by status, in constant memory. Use [NewSummary].
type Summary struct {
	names     StatusFormatter
	total     int64
	processed int64               // of total
	counts    map[statusKey]int64 // 0 for statuses that Recount emptied
	kinds     []statusKey         // by [query.Counted] number, for Recount
}

// Phases of closed rows.
const (
	superseded = ledger.Phase(ledger.Superseded)
	dismissed  = ledger.Phase(ledger.Dismissed)
)

type statusKey struct {
	phase                ledger.Phase // or superseded or dismissed
	status, label, track string       // as sent; only if processed
}

// NewSummary returns a summary that uses configured names of statuses.
func NewSummary(names StatusFormatter) *Summary {
	return &Summary{names: names, counts: map[statusKey]int64{}}
}

// SummaryOf counts the trackings in the store that match a filter.
func SummaryOf(ctx context.Context, c *command.Call, db *app.Store, f ledger.Filter) (*Summary, error) {
	groups, err := db.Statistics.Count(ctx, f)
	s := NewSummary(NewStatusFormatter(c.Config.Statuses))
	for _, g := range groups {
		s.AddCount(g.StatusCount)
	}
	return s, err
}

func statusKeyOf(t query.Tracking) statusKey {
	key := statusKey{phase: ledger.Phase(t.Refine(ledger.State(t.Phase)))}
	if key.phase == ledger.Processed {
		key.status, key.label, key.track = t.Status, t.StatusLabel, t.StatusTrack
	}
	return key
}

// AddResult counts the trackings of a result. A result without trackings counts as failed.
func (s *Summary) AddResult(res query.Result) { s.Recount(nil, res) }

// AddCount adds a count of the store.
func (s *Summary) AddCount(c ledger.StatusCount) { s.add(statusKeyOf(TrackingOf(c)), c.Trackings) }

// Name returns the summary's name for the status of c.
func (s *Summary) Name(c ledger.StatusCount) string {
	key := statusKeyOf(TrackingOf(c))
	if name, counted := s.named()[key]; counted {
		return name
	}
	if key.phase != ledger.Processed {
		return phaseWord(key.phase)
	}
	return s.names.LabelOrCode(key.status, key.label, key.track)
}

// TrackingOf returns a tracking with the status of c and nothing else.
func TrackingOf(c ledger.StatusCount) query.Tracking {
	t := query.Tracking{Phase: c.Phase}
	t.Status, t.StatusLabel, t.StatusTrack = c.Status, c.StatusLabel, c.StatusTrack
	if c.Phase == "" {
		t.Phase = query.Unreported(c.State)
	}
	return t
}

// Recount replaces was, the last count of a result, and returns its new count.
func (s *Summary) Recount(was []query.Counted, res query.Result) []query.Counted {
	for _, c := range was {
		s.add(s.kinds[c.Kind], -1)
	}
	now := make([]query.Counted, 0, max(len(res.Trackings), 1))
	for _, t := range res.Trackings {
		now = append(now, query.Counted{Number: t.Number, Kind: s.kind(s.add(statusKeyOf(t), 1))})
	}
	if len(res.Trackings) == 0 {
		now = append(now, query.Counted{Kind: s.kind(s.add(statusKey{phase: failed}, 1))})
	}
	return now
}

func (s *Summary) kind(key statusKey) int {
	if i := slices.Index(s.kinds, key); i >= 0 {
		return i
	}
	s.kinds = append(s.kinds, key)
	return len(s.kinds) - 1
}

// Status returns the status with a number that Recount returned.
func (s *Summary) Status(kind int) StatusJSON { return s.status(s.kinds[kind], s.named()) }

func (s *Summary) add(key statusKey, n int64) statusKey {
	if key.phase == ledger.Processed {
		s.processed += n
	}
	if _, known := s.counts[key]; !known && len(s.counts) >= maxCounted {
		key = statusKey{phase: s.rest(key)}
	}
	s.counts[key] += n
	s.total += n
	return key
}

func (s *Summary) rest(key statusKey) ledger.Phase {
	t := query.Tracking{Phase: key.phase}
	t.Status, t.StatusLabel, t.StatusTrack = key.status, key.label, key.track
	style := s.names.PhaseStyle(t)
	if style == term.Bad || style == term.Caution {
		return otherProblems
	}
	return other
}

// Trackings returns the number of trackings counted.
func (s *Summary) Trackings() int64 { return s.total }

// Processed returns the number of processed trackings.
func (s *Summary) Processed() int64 { return s.processed }

// SummaryJSON is a summary in JSON output.
type SummaryJSON struct {
	Trackings int64             `json:"trackings"`
	ByStatus  []StatusCountJSON `json:"byStatus"`
}

// StatusCountJSON is the number of trackings with a status.
type StatusCountJSON struct {
	StatusJSON
	Trackings int64 `json:"trackings"`
}

// StatusJSON is a status in JSON output.
type StatusJSON struct {
	Phase       ledger.Phase    `json:"phase"`
	Status      json.RawMessage `json:"status"`
	StatusLabel string          `json:"statusLabel"`
	StatusTrack string          `json:"statusTrack"`
	Name        string          `json:"name"` // as tables have it
}

// JSON returns the summary in the order of its text.
func (s *Summary) JSON() SummaryJSON {
	j := SummaryJSON{Trackings: s.total, ByStatus: []StatusCountJSON{}}
	named := s.named()
	for _, key := range s.sorted(named) {
		j.ByStatus = append(j.ByStatus, StatusCountJSON{s.status(key, named), s.counts[key]})
	}
	return j
}

func (s *Summary) status(key statusKey, named map[statusKey]string) StatusJSON {
	phase := key.phase
	if phase == superseded || phase == dismissed {
		phase = query.Rejected
	}
	return StatusJSON{phase, JSONOrNull(key.status), key.label, key.track, named[key]}
}

// String returns the summary as a line such as "31 trackings: 28 delivered · 2 in transit · 1 rejected".
func (s *Summary) String() string { return strings.Join(s.Lines(0), "") }

// Lines returns the summary as lines of up to width columns, or as one line if width is 0.
func (s *Summary) Lines(width int) []string {
	noun := " trackings: "
	if s.total == 1 {
		noun = " tracking: "
	}
	lines := []string{command.Number(s.total) + noun}
	for i, part := range s.parts() {
		last := &lines[len(lines)-1]
		switch {
		case i == 0:
			*last += part
		case width > 0 && term.DisplayWidth(*last+" · "+part) > width:
			lines = append(lines, "  "+part)
		default:
			*last += " · " + part
		}
	}
	return lines
}

func (s *Summary) parts() []string {
	named := s.named()
	var names []string // in order
	counts, taken := map[string]int64{}, map[ledger.Phase]int{}
	for _, key := range s.sorted(named) {
		name, rest := named[key], s.rest(key)
		if _, known := counts[name]; !known && taken[rest] == maxSummed {
			name = phaseWord(rest)
		} else if !known {
			taken[rest]++
		}
		if _, known := counts[name]; !known {
			names = append(names, name)
		}
		counts[name] += s.counts[key]
	}
	return command.Texts(len(names), func(i int) string { return command.Number(counts[names[i]]) + " " + names[i] })
}

// Print writes the summary to standard error, below a table or CSV.
func (s *Summary) Print(c *command.Call) {
	if s.total == 0 || c.Out.Machine() {
		return
	}
	for _, line := range s.Lines(c.IO.Err.Width()) {
		c.IO.Note("%s", line)
	}
}

// phaseOrder is the order of phases, after the statuses of processed trackings.
var phaseOrder = []ledger.Phase{
	ledger.Processed, ledger.InError, ledger.Processing, query.Rejected, superseded, dismissed,
	ledger.Phase(ledger.Unknown), ledger.Absent, ledger.Phase(ledger.Sending), query.NotSent, ledger.Phase(NotCreated),
	query.NotAsked, query.Undecided, failed, other, otherProblems,
}

// sorted returns the statuses by descending number of trackings, then the other phases.
func (s *Summary) sorted(named map[statusKey]string) []statusKey {
	perName := map[string]int64{}
	keys := make([]statusKey, 0, len(s.counts))
	for key, n := range s.counts {
		if n == 0 {
			continue
		}
		keys = append(keys, key)
		perName[named[key]] += n
	}
	slices.SortFunc(keys, func(a, b statusKey) int {
		return cmp.Or(
			cmp.Compare(slices.Index(phaseOrder, a.phase), slices.Index(phaseOrder, b.phase)),
			cmp.Compare(perName[named[b]], perName[named[a]]),
			cmp.Compare(named[a], named[b]),
			cmp.Compare(s.counts[b], s.counts[a]),
			cmp.Compare(a.status+"\x00"+a.label+"\x00"+a.track, b.status+"\x00"+b.label+"\x00"+b.track),
		)
	})
	return keys
}

// named returns the name of each status: the configured one, else its label in plain words. Labels that would read
// alike stay as sent; a label with several numbers gets its number appended.
func (s *Summary) named() map[statusKey]string {
	labels, numbers := map[string][]string{}, map[string][]string{} // by plain words
	for key := range s.counts {
		plain, label := PlainStatus(key.name()), strings.ToUpper(key.name()) // a track is the label in lower case
		if key.phase != ledger.Processed {
			plain, label = phaseWord(key.phase), ""
		}
		if !slices.Contains(labels[plain], label) {
			labels[plain] = append(labels[plain], label)
		}
		if key.status != "" && !slices.Contains(numbers[plain], key.status) {
			numbers[plain] = append(numbers[plain], key.status)
		}
	}
	named := make(map[statusKey]string, len(s.counts))
	for key := range s.counts {
		name := key.name()
		own, byUser := s.names.Custom(key.status, key.label, key.track)
		switch {
		case key.phase != ledger.Processed:
			name = phaseWord(key.phase)
		case byUser:
			name = own
		case name == "":
			name = cmp.Or(Unquote(key.status), withoutStatus)
		default:
			plain := PlainStatus(name)
			if len(labels[plain]) < 2 {
				name = plain
			}
			if len(numbers[plain]) > 1 && key.status != "" {
				name += " (" + Unquote(key.status) + ")"
			}
		}
		named[key] = term.Truncate(term.Visible(name), maxName)
	}
	return named
}

func (key statusKey) name() string { return cmp.Or(key.label, key.track) }

// PlainStatus returns the label of a status in plain words, such as "in transit".
func PlainStatus(label string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(label), "_", " "))
}
