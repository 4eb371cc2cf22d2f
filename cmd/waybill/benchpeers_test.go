package main_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver that the bare ledger is written with

	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// peers are what waybill is measured against: programs of their own that this
// test binary is when it is called by their name.
func peers() map[string]func() {
	return map[string]func(){
		"barepost":    func() { leave(barePost(os.Args[1], os.Args[2], os.Args[3], os.Args[4])) },
		"bareledger":  func() { leave(bareLedger(os.Args[1], os.Args[2])) },
		"barehook":    func() { leave(bareHook(nil)) },
		"durablehook": func() { leave(durableHook(os.Args[1], keepsBodies)) },
		"rowshook":    func() { leave(durableHook(os.Args[1], keepsRows)) },
		"inserthook":  func() { leave(insertHook(os.Args[1], os.Args[2])) },
		"barelist":    func() { leave(bareList(os.Args[1], os.Args[2])) },
		"bareshow":    func() { leave(bareShow(os.Args[1], os.Args[2], os.Args[3])) },
	}
}

func leave(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// order is a row as a request has it.
type order struct {
	ReferID  string `json:"referId"`
	Number   string `json:"rawTrackingNumber"`
	Metadata struct {
		CarrierCode string `json:"carrierCode"`
	} `json:"metadata"`
}

// eachOrder reads a CSV that [orders] wrote.
func eachOrder(file string, f func(order) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	r := csv.NewReader(in)
	r.ReuseRecord = true
	for line := 0; ; line++ {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line == 0:
			continue
		}
		o := order{ReferID: record[0], Number: record[1]}
		o.Metadata.CarrierCode = record[2]
		if err := f(o); err != nil {
			return err
		}
	}
}

// barePost is the minimal program: it parses, marshals and posts, and keeps
// nothing.
func barePost(file, url, rowsPerCall, workers string) error {
	size, err := strconv.Atoi(rowsPerCall)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(workers)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	work, failed := make(chan []order), make(chan error, n)
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			for batch := range work {
				if err := postOrders(client, url, batch); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	batch := make([]order, 0, size)
	hand := func() error {
		select {
		case work <- batch:
			batch = make([]order, 0, size)
			return nil
		case err := <-failed:
			return err
		}
	}
	err = eachOrder(file, func(o order) error {
		if batch = append(batch, o); len(batch) < size {
			return nil
		}
		return hand()
	})
	if err == nil && len(batch) > 0 {
		err = hand()
	}
	close(work)
	done.Wait()
	close(failed)
	return errors.Join(err, <-failed)
}

func postOrders(client *http.Client, url string, batch []order) error {
	body, err := json.Marshal(map[string]any{"data": batch})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "k1")
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// Sizes of what a bare ledger writes at once.
const (
	bareStatement = 250
	bareCommit    = 100 * bareStatement
)

// bareLedger inserts the rows of a file into a new store with the program's
// own schema, and does nothing else. It prints the seconds that took, the
// reading of the file left out.
func bareLedger(file, path string) error {
	var rows []order
	if err := eachOrder(file, func(o order) error { rows = append(rows, o); return nil }); err != nil {
		return err
	}
	d, err := sqlite.Open(context.Background(), path, store.Options{})
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	began := time.Now()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for first := 0; first < len(rows); first += bareCommit {
		if err := insertBare(db, rows[first:min(len(rows), first+bareCommit)], first); err != nil {
			return err
		}
	}
	if err := db.Close(); err != nil {
		return err
	}
	fmt.Println(time.Since(began).Seconds())
	return nil
}

// insertBare inserts rows in one transaction. first is how many came before.
func insertBare(db *sql.DB, rows []order, first int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	text := func(n int) string {
		return "INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line) VALUES " +
			strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, 0, ?),", n), ",")
	}
	many, err := tx.Prepare(text(bareStatement))
	if err != nil {
		return err
	}
	defer many.Close()
	args := make([]any, 0, 6*bareStatement)
	for from := 0; from < len(rows); from += bareStatement {
		part := rows[from:min(len(rows), from+bareStatement)]
		args = args[:0]
		for i, o := range part {
			id := first + from + i + 1
			args = append(args, id, o.ReferID, o.Number, o.Metadata.CarrierCode, id/1000, id+1)
		}
		if len(part) == bareStatement {
			_, err = many.Exec(args...)
		} else {
			_, err = tx.Exec(text(len(part)), args...)
		}
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// sink is a service that takes everything and keeps nothing, so that what is
// measured is the client.
type sink struct {
	url     string
	opened  atomic.Int64 // connections
	asked   atomic.Int64 // queries
	created sync.Map     // kinds of referIds of which something was created; it has nothing of others
	latency time.Duration
	detail  func(refer string) string // the answer to a query; nil: "Processing"
}

var firstRefer = regexp.MustCompile(`"referId" ?: ?"([^"]*)"`)

// kindOf is what referIds of one input begin with: all that a sink remembers of them.
func kindOf(refer string) string {
	kind, _, _ := strings.Cut(refer, "-")
	if kind == refer { // one by chance
		return ""
	}
	return kind
}

func newSink(b *testing.B, latency time.Duration) *sink {
	b.Helper()
	s := &sink{latency: latency}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: patience, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}}
	var done sync.WaitGroup
	done.Go(func() { _ = srv.Serve(l) })
	b.Cleanup(func() { _ = srv.Close(); done.Wait() })
	s.url = "http://" + l.Addr().String()
	return s
}

// ServeHTTP takes what comes. A v1 create is answered with something of each
// tracking.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(s.latency)
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		s.asked.Add(1)
		refer := r.URL.Query().Get("referId")
		_, known := s.created.Load(kindOf(refer))
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
		case s.detail != nil:
			_, _ = io.WriteString(w, s.detail(refer))
		default:
			_, _ = io.WriteString(w, `{"message":"Processing"}`)
		}
		return
	}
	body := bufio.NewReader(r.Body)
	start, _ := body.Peek(1 << 10)
	if m := firstRefer.FindSubmatch(start); m != nil {
		s.created.Store(kindOf(string(m[1])), true)
	}
	switch {
	case strings.Contains(r.URL.Path, "/v2/"):
		_, _ = io.Copy(io.Discard, body)
		_, _ = io.WriteString(w, `{"message":"accepted"}`)
	default:
		var request struct{ Data []order }
		if err := json.NewDecoder(body).Decode(&request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(created(request.Data))
	}
}

// created is what v1 answers: little of each tracking, but of each.
func created(rows []order) []byte {
	var b bytes.Buffer
	b.WriteString(`{"message":"created","data":[`)
	for i, o := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"referId":%q,"trackingNumber":%q,"summary":{"status":7,"statusLabel":"IN TRANSIT","statusTrack":"7-IN TRANSIT",`+
			`"latestEvent":"Departed from facility","carrierCode":%q},"detail":{"trackingEvents":[{"eventType":"Departed from facility",`+
			`"eventCity":"MEMPHIS","eventState":"TN","eventZIPCode":"38118","eventTimestamp":"2026-03-04 21:10:00","GMTTimestamp":"2026-03-05T03:10:00Z"}]}}`,
			o.ReferID, o.Number, o.Metadata.CarrierCode)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// bareSeconds runs a bare ledger over a file and returns how long it took.
func bareSeconds(b *testing.B, file string) float64 {
	b.Helper()
	out, _ := measure(b, peer("bareledger", file, filepath.Join(b.TempDir(), "bare.db")))
	seconds, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		b.Fatal(err)
	}
	return seconds
}
