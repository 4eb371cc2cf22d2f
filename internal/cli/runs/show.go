package runs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

const shownBatches = 50

type showOptions struct {
	Run          string
	All, Answers bool
}

func newShow(f *command.Factory) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a run, its batches and their responses",
		Long: `show prints the state of a run and its batches: the response to each, and the
states of its rows now. The state of a batch is "sent again" if all its rows are
now in later batches, and "resolved" if none of its unknown rows is unknown now.`,
		Example: command.Example("waybill runs show 3", "waybill runs show 3 --answers", "waybill runs show 3 --all -o json"),
		Args:    oneRun(),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.Run = args[0]
			return runShow(ctx, c, o)
		}),
	}
	cmd.Flags().BoolVar(&o.All, "all", false, fmt.Sprintf("list all batches, not the last %d only", shownBatches))
	cmd.Flags().BoolVar(&o.Answers, "answers", false, "show the service's response to each listed batch")
	command.ColumnsFlag(cmd, batchColumns())
	return cmd
}

func runShow(ctx context.Context, c *command.Call, o showOptions) error {
	db, id, err := command.OpenRun(ctx, c.Session, o.Run)
	if err != nil {
		return err
	}
	if !o.Answers && (c.Out.Machine() || c.Out.IsCSV()) {
		o.All = true
	}
	run, err := db.History.Run(ctx, id)
	if err != nil {
		return err
	}
	batches, left, err := listBatches(db.History.Batches(ctx, id), o)
	if err != nil {
		return err
	}
	summary, err := view.SummaryOf(ctx, c, db, ledger.Filter{Run: id})
	if err != nil {
		return err
	}
	next := nextCommand(c, run)
	if c.Out.Machine() {
		j := newRun(run, c.Account(ctx))
		j.Next, j.Summary = next, new(summary.JSON())
		for _, b := range batches {
			j.BatchList = append(j.BatchList, newBatchJSON(b))
		}
		return c.Out.Object(j)
	}
	if err := printRun(c.Out, run, c.Account(ctx), batches, o); err != nil {
		return err
	}
	summary.Print(c)
	if left > 0 {
		c.IO.Note("Showing the last %d batches; --all adds the %s before them", shownBatches, command.Number(int64(left)))
	}
	if next != "" {
		c.IO.Next(next)
	}
	return nil
}

// numberedBatch is a batch with its number in the run, 1-based.
type numberedBatch struct {
	ledger.BatchSummary
	number int
}

// listBatches returns the batches to list, with answers only if asked for, and how many there are before them.
func listBatches(seq iter.Seq2[ledger.BatchSummary, error], o showOptions) (all []numberedBatch, left int, err error) {
	for b, err := range seq {
		if err != nil {
			return nil, 0, err
		}
		if !o.Answers {
			b.Answer = nil
		}
		if all = append(all, numberedBatch{b, left + len(all) + 1}); len(all) > shownBatches && !o.All {
			all[0] = numberedBatch{} // frees its response, which may be large
			all, left = all[1:], left+1
		}
	}
	return all, left, nil
}

// nextCommand returns the command that continues the run, or "".
func nextCommand(c *command.Call, run ledger.RunSummary) string {
	switch n := run.Counts; {
	case run.Live:
	case n.Unknown+n.Pending+n.Sending > 0:
		return c.CommandLine("runs", "resume", command.RunName(run.ID))
	case run.Rejected() > 0 && !run.Partial:
		return c.RejectedCSV(run.ID)
	}
	return ""
}

func printRun(out *command.Output, s ledger.RunSummary, account string, batches []numberedBatch, o showOptions) error {
	if out.IsCSV() {
		return command.PrintTable(out, batchColumns(), batches...)
	}
	sent := "never"
	if !s.LastSent.IsZero() {
		after := command.ShortDuration(s.LastSent.Sub(s.Created))
		sent = fmt.Sprintf("%s, %s after the run began", render.LocalTime(s.LastSent), after)
	}
	err := out.Fields([]render.Field{
		{Name: "Run", Value: fmt.Sprint(s.ID)},
		{Name: "Account", Value: account},
		{Name: "Input", Value: strings.Join(s.Plan.Files, " ")},
		{Name: "Operation", Value: fmt.Sprintf("%s, up to %d rows per request", s.Plan.Mode, s.Plan.BatchSize)},
		{Name: "Created", Value: render.LocalTime(s.Created)},
		{Name: "Last sent", Value: sent},
		{Name: "State", Value: describeState(s)},
		{Name: "Rows", Value: describeTally(s.Tally)},
		{Name: "Outcome", Value: view.Counts(s)},
		{Name: "Requests", Value: command.Number(s.Requests)},
	})
	if err != nil || len(batches) == 0 {
		return err
	}
	err = errors.Join(out.Line(""), command.PrintTable(out, batchColumns(), batches...))
	if err != nil || !o.Answers {
		return err
	}
	for _, b := range batches {
		if err := printAnswer(out, b); err != nil {
			return err
		}
	}
	return nil
}

func describeState(s ledger.RunSummary) string {
	partial := ""
	if s.Partial {
		partial = "; the input was not read completely, create it again to send the rest"
	}
	switch state := stateOf(s); state {
	case runLive:
		return "live: another waybill is working on it"
	case runPending:
		return fmt.Sprintf("pending: none of %s sent yet%s", command.Plural(s.Counts.Pending, "row"), partial)
	case runUnfinished:
		var left []string
		add := func(state ledger.State, rows int64) {
			if rows > 0 {
				left = append(left, fmt.Sprintf("%s %s", command.Number(rows), state))
			}
		}
		add(ledger.Pending, s.Counts.Pending)
		add(ledger.Sending, s.Counts.Sending)
		add(ledger.Unknown, s.Counts.Unknown)
		return "unfinished: " + strings.TrimPrefix(strings.Join(left, ", ")+partial, "; ")
	default:
		return string(state)
	}
}

func batchColumns() []command.Column[numberedBatch] {
	type batch = numberedBatch
	return []command.Column[batch]{
		{Name: "BATCH", CSV: "number", Right: true, Cell: func(b batch) string { return strconv.Itoa(b.number) }},
		{
			Name: "STATE", Cell: batch.shownState, CSVCell: func(b batch) string { return string(b.State) },
			Style: func(b batch) term.Style { return view.StateStyle(b.shownState()) },
		},
		{Name: "ROWS", Count: func(b batch) int64 { return b.Rows }},
		{Name: "ACCEPTED", Rank: 4, Count: func(b batch) int64 { return b.Counts.Accepted }},
		{Name: "REJECTED", Rank: 4, Count: func(b batch) int64 { return b.Counts.Rejected }},
		{Name: "UNKNOWN", Rank: 4, Count: func(b batch) int64 { return b.Counts.Unknown }},
		{Name: "PENDING", Rank: 4, Count: batch.pending},
		{
			Name: "HTTP", CSV: "httpStatus", Right: true, Rank: 1,
			Cell: func(b batch) string { return command.NonZero(int64(b.HTTPStatus)) },
		},
		{Name: "SENT", CSV: "began", Rank: 2, Time: func(b batch) time.Time { return b.Began }},
		{Name: "TOOK", CSV: "tookSeconds", Right: true, Rank: 3, Cell: func(b batch) string {
			if b.Began.IsZero() {
				return ""
			}
			return b.Took.Round(time.Millisecond).String()
		}, CSVCell: func(b batch) string { return strconv.FormatFloat(b.Took.Seconds(), 'f', -1, 64) }},
		{Name: "REASON", Flex: true, Cell: func(b batch) string { return b.Reason }},
	}
}

func (b numberedBatch) pending() int64 { return b.Counts.Pending + b.Counts.Sending }

// shownState returns the state of a batch as a word, or the state of its rows if the response gave them another one.
func (b numberedBatch) shownState() string {
	switch {
	case b.Rows == 0:
		return "sent again"
	case b.State == ledger.Unknown && b.Counts.Unknown == 0:
		return "resolved"
	}
	return string(b.State)
}

// printAnswer prints the response to a batch: JSON indented, other text as it came, with control characters escaped.
func printAnswer(out *command.Output, b numberedBatch) error {
	head := "no response"
	switch {
	case b.AnswerCut:
		head = fmt.Sprintf("first %d bytes of the response", len(b.Answer))
	case len(b.Answer) > 0:
		head = fmt.Sprintf("response, %d bytes", len(b.Answer))
	case b.Answer != nil:
		head = "empty response"
	}
	if err := out.Line("\nBatch %d: %s", b.number, head); err != nil || len(b.Answer) == 0 {
		return err
	}
	return out.Raw(b.Answer)
}

func describeTally(t ledger.Tally) string {
	text := fmt.Sprintf("%s new, %s sent before, %s duplicates",
		command.Number(t.New), command.Number(t.Known), command.Number(t.Repeats))
	if t.Skipped > 0 {
		text += fmt.Sprintf(", %s bad and skipped", command.Number(t.Skipped))
	}
	if t.Erased > 0 {
		text += fmt.Sprintf(", %s erased", command.Number(t.Erased))
	}
	return text
}

// Run is a run in our output.
type Run struct {
	Run        string      `json:"run"`
	Account    string      `json:"account"`
	Files      []string    `json:"files"`
	Operation  ledger.Mode `json:"operation"` // v1 or v2
	Created    time.Time   `json:"created"`
	Live       bool        `json:"live"`  // a living process is working on it
	State      runState    `json:"state"` // of the run as a whole
	New        int64       `json:"new"`
	Already    int64       `json:"already"`
	Duplicates int64       `json:"duplicates"`
	Erased     int64       `json:"erased,omitempty"` // with "store erase", before or since
	Skipped    int64       `json:"skipped"`          // bad rows of the input
	Accepted   int64       `json:"accepted"`         // of the rows that this run sent
	Rejected   int64       `json:"rejected"`         // without superseded and dismissed ones
	Superseded int64       `json:"superseded"`       // rejected: another number of the referId was accepted since
	Dismissed  int64       `json:"dismissed"`        // rejected, and dismissed by the user
	Unknown    int64       `json:"unknown"`
	Pending    int64       `json:"pending"`
	Partial    bool        `json:"partial"` // its input was not staged to its end, or not yet
	Batches    int64       `json:"batches"` // create requests sent
	LastSent   *time.Time  `json:"lastSent"`
	Next       string      `json:"nextCommand,omitempty"`

	// Rows of the input that other runs sent, and that were accepted.
	AcceptedElsewhere int64 `json:"acceptedElsewhere"`

	BatchList []batchJSON `json:"batchList,omitempty"`

	Summary *view.SummaryJSON `json:"summary,omitempty"` // of show: what is known of its trackings
}

type runState string

const (
	runLive       runState = "live"       // a living process is working on it
	runPending    runState = "pending"    // nothing of it was sent yet
	runUnfinished runState = "unfinished" // rows are pending, sending or unknown, or not staged
	runEnded      runState = "ended"
)

func stateOf(s ledger.RunSummary) runState {
	switch n := s.Counts; {
	case s.Live:
		return runLive
	case n.Pending+n.Sending+n.Unknown == 0 && !s.Partial:
		return runEnded
	case s.Requests == 0 && n.Pending == n.Pending+n.Sending+n.Accepted+n.Rejected+n.Unknown:
		return runPending
	}
	return runUnfinished
}

type batchJSON struct {
	Batch       int64        `json:"batch"`  // in the store
	Number      int          `json:"number"` // in the run, 1-based
	State       ledger.State `json:"state"`  // by its response
	Rows        int64        `json:"rows"`   // those that were not sent again in later batches
	Accepted    int64        `json:"accepted"`
	Rejected    int64        `json:"rejected"`
	Unknown     int64        `json:"unknown"`
	Pending     int64        `json:"pending"`
	HTTPStatus  int          `json:"httpStatus,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Began       *time.Time   `json:"began,omitempty"`
	TookSeconds float64      `json:"tookSeconds,omitempty"`

	// With --answers, where one came. What is not UTF-8 stands in AnswerBytes.
	Answer      *string `json:"answer,omitempty"`
	AnswerBytes []byte  `json:"answerBytes,omitempty"` // base64
	AnswerCut   bool    `json:"answerCut,omitempty"`   // it was longer than what is kept
}

func newRun(s ledger.RunSummary, account string) Run {
	return Run{
		Run: command.RunName(s.ID), Account: account, Files: s.Plan.Files, Operation: s.Plan.Mode,
		Created: s.Created.UTC(), Live: s.Live, State: stateOf(s), Partial: s.Partial,
		New: s.Tally.New, Already: s.Tally.Known, Duplicates: s.Tally.Repeats, Erased: s.Tally.Erased,
		Skipped: s.Tally.Skipped, Accepted: s.Accepted(), AcceptedElsewhere: s.Elsewhere, Rejected: s.Rejected(),
		Superseded: s.Superseded, Dismissed: s.Dismissed, Unknown: s.Counts.Unknown,
		Pending: s.Counts.Pending + s.Counts.Sending, Batches: s.Requests, LastSent: view.TimeOrNull(s.LastSent),
	}
}

func newBatchJSON(b numberedBatch) batchJSON {
	j := batchJSON{
		Batch: b.ID, Number: b.number, State: b.State, Rows: b.Rows, HTTPStatus: b.HTTPStatus, Reason: b.Reason,
		Accepted: b.Counts.Accepted, Rejected: b.Counts.Rejected, Unknown: b.Counts.Unknown, Pending: b.pending(),
		Began: view.TimeOrNull(b.Began), TookSeconds: b.Took.Seconds(),
	}
	if b.Answer == nil {
		return j
	}
	if j.AnswerCut = b.AnswerCut; utf8.Valid(b.Answer) {
		j.Answer = new(string(b.Answer))
	} else {
		j.AnswerBytes = b.Answer
	}
	return j
}
