package view

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Line is a tracking as a row of a table.
type Line struct {
	query.Tracking
	Row *ledger.TrackingStatus // from the store; nil if unknown
}

// KnownLine returns the line of a tracking from the store.
func KnownLine(st *ledger.TrackingStatus) Line { return Line{query.FromStore(*st), st} }

// FailedLine returns the line of a failed result without any tracking.
func FailedLine(res query.Result) Line {
	var l Line
	l.ReferID, l.Number, l.Phase = res.Query.ReferID, res.Query.Number, failed
	if res.Err != nil {
		l.Reason = res.Err.Error()
	}
	return l
}

func (l *Line) state() string {
	switch {
	case l.Row == nil:
		return ""
	case notCreatedHere(*l.Row):
		return "not created here"
	case l.Row.State == NotCreated:
		return phaseWord(ledger.Phase(NotCreated))
	}
	return string(l.Row.State)
}

// oddState returns the state, or "" if it is accepted.
func (l *Line) oddState() string {
	if l.row().State == ledger.Accepted {
		return ""
	}
	return l.state()
}

// row returns the tracking's status in the store, or the zero value.
func (l *Line) row() (t ledger.TrackingStatus) {
	if l.Row != nil {
		t = *l.Row
	}
	return t
}

// run returns the number of the tracking's run, or "".
func (l *Line) run() string { return command.NonZero(l.row().Run) }

func (l *Line) source() string {
	source := Source(l.Source)
	if seen := l.row().Sighting; l.Source == ledger.FromEvent && seen != nil && seen.Shared > 1 {
		source += fmt.Sprintf(", of %d with this number", seen.Shared)
	}
	return source
}

func (l *Line) checkpoint() string {
	if l.LatestTime != "" {
		return l.LatestTime
	}
	at := l.Times().Checkpoint
	if seen := l.row().Sighting; at.IsZero() && seen != nil {
		at = seen.Times.Checkpoint
	}
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func (l *Line) received(now time.Time) string {
	if l.Source == "" {
		return Ago(l.Learnt, now)
	}
	return Ago(l.Learnt, now) + ", " + l.source()
}

// Reader says who reads a table: a person at a terminal, at that time, or a program.
type Reader struct {
	IsPerson bool
	Now      time.Time
}

// Columns returns the columns of trackings: with ages and names for a person, with values as sent for a program.
func (n StatusFormatter) Columns(r Reader) []command.Column[*Line] {
	state, checkpoint, phase := (*Line).state, (*Line).checkpoint, n.Phase
	latest := func(l *Line) string { return cmp.Or(ErrorText(l.Error), l.LatestEvent, l.Reason) }
	problem := func(l *Line) string { return ErrorText(l.Error) }
	if r.IsPerson {
		phase, state = n.PhaseName, (*Line).oddState
		checkpoint = func(l *Line) string {
			return ServiceTime(l.checkpoint(), func(at time.Time) string { return Ago(at, r.Now) })
		}
		latest = func(l *Line) string { return l.LatestEvent }
		problem = func(l *Line) string { return cmp.Or(ErrorText(l.Error), l.Reason) }
	}
	style := func(l *Line) term.Style { return n.PhaseStyle(l.Tracking) }
	fresh := func(l *Line) term.Style { return FreshStyle(l.Tracking, r.Now) }
	return []command.Column[*Line]{
		Identifier("REFERENCE", "referId", func(l *Line) string { return l.ReferID }),
		Identifier("NUMBER", "trackingNumber", func(l *Line) string { return l.Number }),
		{
			Name: "CARRIER", CSV: "carrierCode", ID: true, Rank: 5,
			Cell:    func(l *Line) string { return cmp.Or(l.CarrierCode, l.SentCarrier) },
			CSVCell: func(l *Line) string { return l.CarrierCode },
		},
		{Name: "STATE", Rank: 6, Sparse: true, Cell: state, CSVCell: func(l *Line) string { return string(l.row().State) }},
		{
			Name: "STATUS", CSV: "-", Flex: true, Style: style, Cell: func(l *Line) string { return phase(l.Tracking) },
			Excel: func(l *Line) string { return n.PhaseName(l.Tracking) },
		},
		CSVOnly("PHASE", "phase", func(l *Line) string { return string(l.Phase) }),
		CSVOnly("STATUS NUMBER", "status", func(l *Line) string { return Unquote(l.Status) }),
		CSVOnly("STATUS LABEL", "statusLabel", func(l *Line) string { return l.StatusLabel }),
		CSVOnly("STATUS TRACK", "statusTrack", func(l *Line) string { return l.StatusTrack }),
		{Name: "LATEST EVENT", Flex: true, Rank: 4, Cell: latest, CSVCell: func(l *Line) string { return l.LatestEvent }},
		{
			Name: "CHECKPOINT", CSV: "latestCheckpointTime", Flex: r.IsPerson, Cell: checkpoint,
			CSVCell: func(l *Line) string { return l.LatestTime },
			Excel:   func(l *Line) string { return ServiceTime(l.LatestTime, render.LocalDateTime) },
		},
		{
			Name: "RECEIVED", CSV: "learntAt", Flex: true, Rank: 3, Style: fresh,
			Time: func(l *Line) time.Time { return l.Learnt }, Cell: func(l *Line) string { return l.received(r.Now) },
		},
		{
			Name: "SOURCE", CSV: "learntFrom", Extra: r.IsPerson, Cell: (*Line).source,
			CSVCell: func(l *Line) string { return string(l.Source) },
		},
		CSVOnly("RUN", "run", (*Line).run),
		CSVOnly("REASON", "reason", func(l *Line) string { return l.Reason }),
		{
			Name: "ERROR", CSV: "error", Flex: r.IsPerson, Extra: !r.IsPerson, Sparse: true, Cell: problem,
			CSVCell: func(l *Line) string { return Unquote(l.Error) }, Style: style,
		},
		CSVOnly("SUPERSEDED", "superseded", func(l *Line) string { return strconv.FormatBool(l.Superseded) }),
		{Name: "DISMISSED", CSV: "dismissed", Extra: true, Time: func(l *Line) time.Time { return l.Dismissed }},
		CSVIdentifier("ROUTER ID", "routerId", func(l *Line) string { return l.RouterID }),
	}
}

// OwnColumns returns the columns kept from inputs, shown only if named by --columns.
func OwnColumns(names []string) (columns []command.Column[*Line]) {
	for _, name := range names {
		columns = append(columns, command.Column[*Line]{
			Name: name, CSV: "-", Flex: true, Extra: true,
			Cell: func(l *Line) string { return l.row().Own.Value(name) },
		})
	}
	return columns
}

// Identifier returns a column of identifiers, which stays on terminals of any width.
func Identifier[T any](name, csv string, cell func(T) string) command.Column[T] {
	return command.Column[T]{Name: name, CSV: csv, ID: true, Cell: cell}
}

// CSVOnly returns a column that is shown in CSV, and in tables only if named by --columns.
func CSVOnly[T any](name, csv string, cell func(T) string) command.Column[T] {
	return command.Column[T]{Name: name, CSV: csv, Extra: true, Cell: cell}
}

// CSVIdentifier is [CSVOnly] for identifiers.
func CSVIdentifier[T any](name, csv string, cell func(T) string) command.Column[T] {
	return command.Column[T]{Name: name, CSV: csv, ID: true, Extra: true, Cell: cell}
}

// AnswerColumns returns [StatusFormatter.Columns] and the columns that only a response has.
func (n StatusFormatter) AnswerColumns(r Reader) []command.Column[*Line] {
	return append(n.Columns(r),
		CSVOnly("STATUS SUMMARY", "statusSummary", func(l *Line) string { return l.StatusSummary }),
		CSVOnly("TRANSIT TIME", "transitTime", func(l *Line) string { return Unquote(l.TransitTime) }),
		CSVOnly("CREATED", "created", func(l *Line) string { return l.Created }),
		CSVOnly("UPDATED", "updated", func(l *Line) string { return l.Updated }),
	)
}

// Clock formats the local time of day.
func Clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// nowFor is the age up to which a time is shown as now.
const nowFor = 5 * time.Second

// Ago formats the age of a time, such as "3 min ago", rounded down. A future time is shown as it is: a clock is wrong.
func Ago(t, now time.Time) string {
	switch age := now.Sub(t); {
	case t.IsZero():
		return ""
	case age < -time.Minute:
		return render.LocalMinute(t)
	case age < nowFor:
		return "now"
	default:
		return inUnit(age, time.Duration.Truncate) + " ago"
	}
}

// day is the length of a day where no time zone applies.
const day = 24 * time.Hour

// Duration formats a duration in its largest unit, rounded; in hours up to two days.
func Duration(d time.Duration) string { return inUnit(d, time.Duration.Round) }

func inUnit(d time.Duration, rounded func(d, unit time.Duration) time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", rounded(d, time.Second)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", rounded(d, time.Minute)/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", rounded(d, time.Hour)/time.Hour)
	default:
		return command.Number(int64(rounded(d, day)/day)) + " days"
	}
}

// Source returns the name of a source of information.
func Source(s ledger.Source) string {
	if s == ledger.FromEvent {
		return "webhook"
	}
	return string(s)
}

// CheckpointTime formats a checkpoint's local time, with the offset if both times are known; other text stays as sent.
func CheckpointTime(c tracking.Checkpoint) string {
	at, zoned := c.Time()
	switch {
	case zoned:
		return at.Format("2006-01-02 15:04 -07:00")
	case !at.IsZero():
		return at.Format("2006-01-02 15:04")
	case c.Local != "":
		return c.Local
	}
	return ServiceTime(c.UTC, render.LocalMinute)
}

// ServiceTime formats a time of the service with form; other text stays as sent.
func ServiceTime(s string, form func(time.Time) string) string {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return form(t)
	}
	return s
}

// UTCMinute formats a time of the service as UTC to the minute; other text stays as sent.
func UTCMinute(s string) string {
	return ServiceTime(s, func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") })
}

// Counts lists the number of rows per state, with rejected rows split by kind.
func Counts(s ledger.RunSummary) string {
	var closed string
	if s.Superseded > 0 {
		closed = command.Number(s.Superseded) + " superseded, "
	}
	if s.Dismissed > 0 {
		closed += command.Number(s.Dismissed) + " dismissed, "
	}
	text := fmt.Sprintf("%s accepted, %s rejected, %s%s unknown, %s pending",
		command.Number(s.Accepted()), command.Number(s.Rejected()), closed,
		command.Number(s.Counts.Unknown), command.Number(s.Counts.Pending+s.Counts.Sending))
	if s.Elsewhere > 0 {
		text += fmt.Sprintf("; %s accepted in other runs", command.Number(s.Elsewhere))
	}
	return text
}

// RowStates returns the values of --status, see [RowState].
func RowStates() []string {
	return []string{
		string(ledger.Accepted), string(ledger.Rejected), string(ledger.Superseded), string(ledger.Dismissed),
		string(ledger.Unknown), string(ledger.Pending), string(ledger.Sending),
	}
}

// NotCreated is the state of an input row that the store does not have.
const NotCreated ledger.State = "notCreated"

// RowState returns the name of a row's state: superseded or dismissed for such rejected rows.
func RowState(row ledger.Row) string { return string(row.Refine(row.State)) }

// StateStyle returns the style of a state of a row or batch.
func StateStyle(state string) term.Style {
	return map[string]term.Style{
		string(ledger.Rejected): term.Bad, string(ledger.Unknown): term.Caution,
		string(ledger.Superseded): term.Faint, string(ledger.Dismissed): term.Faint,
	}[state]
}

// Row is one record of a run's input in our output.
type Row struct {
	File              string       `json:"file"`
	Line              int          `json:"line"`
	ReferID           string       `json:"referId"`
	RawTrackingNumber string       `json:"rawTrackingNumber"`
	CarrierCode       string       `json:"carrierCode,omitempty"`
	State             ledger.State `json:"state"`
	Reason            string       `json:"reason"`
	ledger.CloseReason
	Duplicate bool `json:"duplicate,omitempty"` // the same pair is earlier in the input
	Row       int  `json:"row,omitempty"`       // of a table, that a spreadsheet shows it in
}

// NewRow returns the JSON form of a stored row.
func NewRow(row ledger.Row) Row {
	return Row{
		File: row.File, Line: row.Line, Row: row.Row, Duplicate: row.Repeat, State: row.State, Reason: row.Reason,
		ReferID: row.Item.ReferID, RawTrackingNumber: row.Item.Number, CarrierCode: row.Item.CarrierCode,
		CloseReason: row.CloseReason,
	}
}

// RowColumns returns the columns of rows. Their CSV headers are those that create reads.
func RowColumns() []command.Column[ledger.Row] {
	return []command.Column[ledger.Row]{
		{
			Name: "INPUT", CSV: "-", Rank: 2,
			Cell:    func(row ledger.Row) string { return intake.RowPlace(row.File, row.Line, row.Row, "") },
			CSVCell: func(row ledger.Row) string { return fmt.Sprintf("%s:%d", row.File, row.Line) },
		},
		Identifier("REFERENCE", "referId", func(row ledger.Row) string { return row.Item.ReferID }),
		Identifier("NUMBER", "rawTrackingNumber", func(row ledger.Row) string { return row.Item.Number }),
		{
			Name: "CARRIER", CSV: "carrierCode", ID: true, Rank: 3,
			Cell: func(row ledger.Row) string { return row.Item.CarrierCode },
		},
		{
			Name: "STATE", Cell: RowState, CSVCell: func(row ledger.Row) string { return string(row.State) },
			Style: func(row ledger.Row) term.Style { return StateStyle(RowState(row)) },
		},
		{Name: "REASON", Flex: true, Rank: 1, Cell: func(row ledger.Row) string { return row.Reason }},
		CSVOnly("FILE", "file", func(row ledger.Row) string { return row.File }),
		{
			Name: "LINE", CSV: "line", Extra: true, Right: true,
			Cell: func(row ledger.Row) string { return strconv.Itoa(row.Line) },
		},
		CSVOnly("SUPERSEDED", "superseded", func(row ledger.Row) string { return strconv.FormatBool(row.Superseded) }),
		{Name: "DISMISSED", CSV: "dismissed", Extra: true, Time: func(row ledger.Row) time.Time { return row.Dismissed }},
		CSVOnly("ROW", "row", func(row ledger.Row) string { return command.NonZero(int64(row.Row)) }),
	}
}

// PrintRows prints rows as they come.
func PrintRows(c *command.Call, rows iter.Seq2[ledger.Row, error]) error {
	w := command.Listing[ledger.Row]{
		Out: c.Out, Empty: "No matching rows", Columns: RowColumns(),
		JSON: func(row ledger.Row) any { return NewRow(row) },
	}
	return w.Print(rows)
}
