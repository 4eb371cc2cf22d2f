package runs

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
)

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
		Pending: s.Counts.Pending + s.Counts.Sending, Batches: s.Requests, LastSent: view.TimeOrNull(s.LastSent),
	}
}

func newBatchJSON(b ledger.BatchSummary) batchJSON {
	j := batchJSON{
		Batch: b.ID, State: b.State, Rows: b.Rows, HTTPStatus: b.HTTPStatus, Reason: b.Reason,
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
