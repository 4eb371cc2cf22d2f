package runs

import (
	"context"
	"encoding/json"
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
)

// shownBatches is how many batches are shown unless all are asked for.
const shownBatches = 50

// runJSON is a run in our output.
type runJSON struct {
	Run        string      `json:"run"`
	Account    string      `json:"account"`
	Files      []string    `json:"files"`
	Operation  ledger.Mode `json:"operation"` // v1 or v2
	Created    time.Time   `json:"created"`
	Live       bool        `json:"live"` // a living process is working on it
	New        int64       `json:"new"`
	Already    int64       `json:"already"`
	Duplicates int64       `json:"duplicates"`
	Accepted   int64       `json:"accepted"`
	Rejected   int64       `json:"rejected"`
	Unknown    int64       `json:"unknown"`
	Pending    int64       `json:"pending"`
	Batches    int64       `json:"batches"` // create requests sent
	LastSent   *time.Time  `json:"lastSent"`
	Next       string      `json:"nextCommand,omitempty"`
	BatchList  []batchJSON `json:"batchList,omitempty"`
}

// batchJSON is one batch of a run in our output.
type batchJSON struct {
	Batch       int64        `json:"batch"`
	State       ledger.State `json:"state"` // that its answer gave it
	Rows        int64        `json:"rows"`  // those that were not sent again in later batches
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

func newRunJSON(s ledger.RunSummary) runJSON {
	return runJSON{
		Run: strconv.FormatInt(s.ID, 10), Account: s.Plan.Account, Files: s.Plan.Files, Operation: s.Plan.Mode,
		Created: s.Created.UTC(), Live: s.Live,
		New: s.Tally.New, Already: s.Tally.Known, Duplicates: s.Tally.Repeats,
		Accepted: s.Counts.Accepted, Rejected: s.Counts.Rejected, Unknown: s.Counts.Unknown,
		Pending: s.Counts.Pending + s.Counts.Sending, Batches: s.Requests, LastSent: timeOrNil(s.LastSent),
	}
}

func newBatchJSON(b ledger.BatchSummary, answers bool) batchJSON {
	j := batchJSON{
		Batch: b.ID, State: b.State, Rows: b.Rows, HTTPStatus: b.HTTPStatus, Reason: b.Reason,
		Accepted: b.Counts.Accepted, Rejected: b.Counts.Rejected, Unknown: b.Counts.Unknown, Pending: b.Counts.Pending + b.Counts.Sending,
		Began: timeOrNil(b.Began), TookSeconds: b.Took.Seconds(),
	}
	if !answers || b.Answer == nil {
		return j
	}
	if j.AnswerCut = b.AnswerCut; utf8.Valid(b.Answer) {
		text := string(b.Answer)
		j.Answer = &text
	} else {
		j.AnswerBytes = b.Answer
	}
	return j
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// showOptions are the flags of runs show.
type showOptions struct{ all, answers bool }

// runShow is one run being shown.
type runShow struct {
	*command.Call
	showOptions
}

func newShow(f *command.Factory) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one run, its batches, and what came back",
		Long: `show tells how a run stands and lists its batches: how each was answered, and
in which state its rows are now. A batch whose rows all went into later batches
(in halves, because the service refused some; or by resume or retry) is "sent
again"; one whose unknown rows were all settled since is "settled".`,
		Example: command.Example("waybill runs show 3", "waybill runs show 3 --answers", "waybill runs show 3 --all -o json"),
		Args:    oneRun(),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runShow{c, o}.show(ctx, args[0])
		}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("list all batches, not the last %d only", shownBatches))
	cmd.Flags().BoolVar(&o.answers, "answers", false, "show what the service answered to each batch listed")
	return cmd
}

func (w runShow) show(ctx context.Context, id string) error {
	db, n, err := command.OpenRun(ctx, w.Session, id)
	if err != nil {
		return err
	}
	sum, err := db.Run(ctx, n)
	if err != nil {
		return err
	}
	batches, left, err := w.last(db.Batches(ctx, n))
	if err != nil {
		return err
	}
	next := w.next(sum)
	if w.Out.Machine() {
		j := newRunJSON(sum)
		j.Next = next
		for _, b := range batches {
			j.BatchList = append(j.BatchList, newBatchJSON(b, w.answers))
		}
		return w.Out.Object(j)
	}
	if err := w.print(sum, batches); err != nil {
		return err
	}
	if left > 0 {
		w.IO.Note("the last %d batches are listed; --all lists the %d before them too", shownBatches, left)
	}
	if next != "" {
		w.IO.Next(next)
	}
	return nil
}

// last returns the batches to be listed, and how many there are before them.
// JSON and CSV without answers have all.
func (w runShow) last(seq iter.Seq2[ledger.BatchSummary, error]) (batches []ledger.BatchSummary, left int, err error) {
	all := w.all || !w.answers && (w.Out.Machine() || w.Out.IsCSV())
	for b, err := range seq {
		if err != nil {
			return nil, 0, err
		}
		if !w.answers {
			b.Answer = nil
		}
		if batches = append(batches, b); len(batches) > shownBatches && !all {
			batches[0] = ledger.BatchSummary{} // its answer may be large
			batches, left = batches[1:], left+1
		}
	}
	return batches, left, nil
}

// next is the command that brings the run further, empty if none does.
func (w runShow) next(sum ledger.RunSummary) string {
	id := strconv.FormatInt(sum.ID, 10)
	switch c := sum.Counts; {
	case sum.Live:
		return ""
	case c.Unknown+c.Pending+c.Sending > 0:
		return w.CommandLine("runs", "resume", id)
	case c.Rejected > 0:
		return w.CommandLine("runs", "rows", id, "--state", string(ledger.Rejected), "-o", "csv")
	}
	return ""
}

func (w runShow) print(s ledger.RunSummary, batches []ledger.BatchSummary) error {
	if w.Out.IsCSV() {
		return w.table(batches)
	}
	state := "ended"
	if s.Live {
		state = "live: a waybill is working on it"
	}
	sent := "never"
	if !s.LastSent.IsZero() {
		sent = fmt.Sprintf("%s, %s after the run began", render.LocalTime(s.LastSent), command.ShortDuration(s.LastSent.Sub(s.Created)))
	}
	err := w.Out.Fields([]render.Field{
		{Name: "Run", Value: fmt.Sprint(s.ID)},
		{Name: "Account", Value: s.Plan.Account},
		{Name: "Input", Value: strings.Join(s.Plan.Files, " ")},
		{Name: "Operation", Value: fmt.Sprintf("%s, up to %d rows a call", s.Plan.Mode, s.Plan.BatchSize)},
		{Name: "Created", Value: render.LocalTime(s.Created)},
		{Name: "Last sent", Value: sent},
		{Name: "State", Value: state},
		{Name: "Rows", Value: fmt.Sprintf("%d new, %d already there, %d duplicates", s.Tally.New, s.Tally.Known, s.Tally.Repeats)},
		{Name: "Outcome", Value: view.CountsLine(s.Counts)},
		{Name: "Calls", Value: fmt.Sprint(s.Requests)},
	})
	if err != nil || len(batches) == 0 {
		return err
	}
	if err := w.Out.Line(""); err != nil {
		return err
	}
	if err := w.table(batches); err != nil || !w.answers {
		return err
	}
	for _, b := range batches {
		if err := w.answer(b); err != nil {
			return err
		}
	}
	return nil
}

func (w runShow) table(batches []ledger.BatchSummary) error {
	t := w.Out.Table(render.Column{Name: "BATCH", Right: true}, render.Column{Name: "STATE"}, render.Column{Name: "ROWS", Right: true},
		render.Column{Name: "ACCEPTED", Right: true, From: 120}, render.Column{Name: "REJECTED", Right: true, From: 120},
		render.Column{Name: "UNKNOWN", Right: true, From: 120}, render.Column{Name: "PENDING", Right: true, From: 120},
		render.Column{Name: "HTTP", Right: true}, render.Column{Name: "SENT", From: 150}, render.Column{Name: "TOOK", Right: true}, render.Column{Name: "REASON", Flex: true})
	for _, b := range batches {
		status, sent, took := "", "", ""
		if b.HTTPStatus != 0 {
			status = fmt.Sprint(b.HTTPStatus)
		}
		if !b.Began.IsZero() {
			sent, took = render.LocalTime(b.Began), b.Took.Round(time.Millisecond).String()
		}
		c := b.Counts
		if err := t.Row(fmt.Sprint(b.ID), standing(b), fmt.Sprint(b.Rows), fmt.Sprint(c.Accepted), fmt.Sprint(c.Rejected), fmt.Sprint(c.Unknown),
			fmt.Sprint(c.Pending+c.Sending), status, sent, took, b.Reason); err != nil {
			return err
		}
	}
	return t.Flush()
}

// standing is the state of a batch in a word: what became of its rows where
// that is no longer what its answer said of them.
func standing(b ledger.BatchSummary) string {
	switch {
	case b.Rows == 0:
		return "sent again"
	case b.State == ledger.Unknown && b.Counts.Unknown == 0:
		return "settled"
	}
	return string(b.State)
}

// answer shows what the service answered to a batch: JSON indented, any other
// text as it came, its controls visible.
func (w runShow) answer(b ledger.BatchSummary) error {
	head := "without an answer"
	switch {
	case b.AnswerCut:
		head = fmt.Sprintf("the first %d bytes of its answer", len(b.Answer))
	case len(b.Answer) > 0:
		head = fmt.Sprintf("its answer, %d bytes", len(b.Answer))
	case b.Answer != nil:
		head = "an empty answer"
	}
	if err := w.Out.Line("\nBatch %d: %s", b.ID, head); err != nil || len(b.Answer) == 0 {
		return err
	}
	if json.Valid(b.Answer) {
		return w.Out.Raw(b.Answer)
	}
	return w.Out.Line("%s", b.Answer)
}
