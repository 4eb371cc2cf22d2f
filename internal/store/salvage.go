package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// salvage keeps what the service answered once the store is gone: a file of
// its own beside the store, made with the first answer, a batch on each line.
type salvage struct {
	mu      sync.Mutex
	claimed map[int64][]ledger.BatchRow // rows of batches not settled yet
	file    string                      // empty while there is none
}

type salvagedBatch struct {
	Batch      int64         `json:"batch"`
	State      ledger.State  `json:"state"` // of rows that say nothing else
	Reason     string        `json:"reason,omitempty"`
	HTTPStatus int           `json:"httpStatus,omitempty"`
	Began      time.Time     `json:"began"`
	Answer     string        `json:"answer"`
	AnswerCut  bool          `json:"answerCut,omitempty"`
	Rows       []salvagedRow `json:"rows"`
}

type salvagedRow struct {
	ReferID           string       `json:"referId"`
	RawTrackingNumber string       `json:"rawTrackingNumber"`
	CarrierCode       string       `json:"carrierCode,omitempty"`
	State             ledger.State `json:"state"`
	Reason            string       `json:"reason,omitempty"`
}

// remember remembers the rows of batches that will be sent.
func (s *salvage) remember(batches []ledger.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimed == nil {
		s.claimed = map[int64][]ledger.BatchRow{}
	}
	for _, b := range batches {
		s.claimed[b.ID] = b.Rows
	}
}

// forget forgets batches whose outcomes are in the store.
func (s *salvage) forget(outcomes []ledger.Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range outcomes {
		delete(s.claimed, o.Batch)
	}
}

// write writes outcomes of requests that left to the file, which has them on
// disk when keep returns. It returns the file's path, empty if none left yet.
func (s *salvage) write(store string, outcomes []ledger.Settlement) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []byte
	for _, o := range outcomes {
		if !o.WasSent() {
			continue
		}
		line, err := json.Marshal(newSalvagedBatch(o, s.claimed[o.Batch]))
		if err != nil {
			return s.file, err
		}
		lines = append(append(lines, line...), '\n')
	}
	if lines == nil {
		return s.file, nil
	}
	f, err := s.open(store)
	if err != nil {
		return "", err
	}
	_, err = f.Write(lines)
	return s.file, errors.Join(err, f.Sync(), f.Close())
}

// newSalvagedBatch is the line of a batch.
func newSalvagedBatch(o ledger.Settlement, rows []ledger.BatchRow) salvagedBatch {
	apart := make(map[int64]ledger.RowOutcome, len(o.Rows))
	for _, v := range o.Rows {
		apart[v.Row] = v
	}
	b := salvagedBatch{
		Batch: o.Batch, State: o.State, Reason: o.Reason, HTTPStatus: o.HTTPStatus, Began: o.Began.UTC(),
		Answer: string(o.Answer), AnswerCut: o.AnswerCut, Rows: make([]salvagedRow, len(rows)),
	}
	for i, r := range rows {
		row := salvagedRow{ReferID: r.Item.ReferID, RawTrackingNumber: r.Item.Number, CarrierCode: r.Item.CarrierCode, State: o.State, Reason: o.Reason}
		if v, ok := apart[r.ID]; ok {
			row.State, row.Reason = v.State, v.Reason
		}
		b.Rows[i] = row
	}
	return b
}

// open opens the file, and makes it the first time: in the folder for
// temporary files if that of the store can't be written to.
func (s *salvage) open(store string) (*os.File, error) {
	if s.file != "" {
		return os.OpenFile(s.file, os.O_WRONLY|os.O_APPEND, 0o600)
	}
	name := fmt.Sprintf("%s.salvage-%s-*.jsonl", filepath.Base(store), time.Now().UTC().Format("20060102T150405Z"))
	folder := filepath.Dir(store)
	err := os.MkdirAll(folder, 0o700) // it may be gone too
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(folder, name)
	}
	if err != nil {
		f, err = os.CreateTemp("", name)
	}
	if err == nil {
		s.file = f.Name()
	}
	return f, err
}
