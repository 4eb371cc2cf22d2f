package runs

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
)

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
	Accepted   int64       `json:"accepted"`
	Rejected   int64       `json:"rejected"`   // but superseded and dismissed ones
	Superseded int64       `json:"superseded"` // rejected, and another number of the referId was accepted since
	Dismissed  int64       `json:"dismissed"`  // rejected, and dismissed by the user
	Unknown    int64       `json:"unknown"`
	Pending    int64       `json:"pending"`
	Partial    bool        `json:"partial"` // its input was not staged to its end, or not yet
	Batches    int64       `json:"batches"` // create requests sent
	LastSent   *time.Time  `json:"lastSent"`
	Next       string      `json:"nextCommand,omitempty"`
	BatchList  []batchJSON `json:"batchList,omitempty"`

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
	State       ledger.State `json:"state"`  // that its answer gave it
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

func newRun(s ledger.RunSummary) Run {
	return Run{
		Run: strconv.FormatInt(s.ID, 10), Account: s.Plan.Account, Files: s.Plan.Files, Operation: s.Plan.Mode,
		Created: s.Created.UTC(), Live: s.Live, State: stateOf(s), Partial: s.Partial,
		New: s.Tally.New, Already: s.Tally.Known, Duplicates: s.Tally.Repeats, Erased: s.Tally.Erased,
		Accepted: s.Counts.Accepted, Rejected: s.Rejected(), Superseded: s.Superseded, Dismissed: s.Dismissed, Unknown: s.Counts.Unknown,
		Pending: s.Counts.Pending + s.Counts.Sending, Batches: s.Requests, LastSent: view.TimeOrNull(s.LastSent),
	}
}

func newBatchJSON(b numberedBatch) batchJSON {
	j := batchJSON{
		Batch: b.ID, Number: b.number, State: b.State, Rows: b.Rows, HTTPStatus: b.HTTPStatus, Reason: b.Reason,
		Accepted: b.Counts.Accepted, Rejected: b.Counts.Rejected, Unknown: b.Counts.Unknown, Pending: b.Counts.Pending + b.Counts.Sending,
		Began: view.TimeOrNull(b.Began), TookSeconds: b.Took.Seconds(),
	}
	if b.Answer == nil {
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
