package main_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// bareHook is the minimal receiver: it reads, compares the MAC and answers,
// and has the body kept, if that is not nil. It prints its address and serves until
// stdin ends.
func bareHook(keep func(body []byte) error) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	srv := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m := hmac.New(sha256.New, []byte(hookKey))
		m.Write(body)
		got, err := hex.DecodeString(r.Header.Get("X-Signature"))
		if err != nil || !hmac.Equal(got, m.Sum(nil)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if keep != nil {
			if err := keep(body); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		w.WriteHeader(http.StatusOK)
	})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = srv.Close()
	}()
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// keeper prepares a database that has one connection, and returns what inserts a body.
type keeper func(db *sql.DB) (insert func(body []byte) error, err error)

// durableHook is [bareHook] that has each body on disk before it answers: what is
// inserted into a file of SQLite while the last commit runs shares the next one.
func durableHook(path string, prepare keeper) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	insert, err := prepare(db)
	if err != nil {
		return err
	}
	queue := make(chan keptBody, 1024)
	go keepBodies(db, queue, insert)
	return bareHook(func(body []byte) error {
		k := keptBody{body, make(chan error, 1)}
		queue <- k
		return <-k.done
	})
}

type keptBody struct {
	body []byte
	done chan error
}

// keepBodies inserts bodies: each transaction has all that are queued.
func keepBodies(db *sql.DB, queue <-chan keptBody, insert func(body []byte) error) {
	for first := range queue {
		group := []keptBody{first}
		for range len(queue) {
			group = append(group, <-queue)
		}
		_, err := db.Exec("BEGIN")
		for _, k := range group {
			if err == nil {
				err = insert(k.body)
			}
		}
		if err == nil {
			_, err = db.Exec("COMMIT")
		}
		for _, k := range group {
			k.done <- err
		}
	}
}

// keepsBodies is a keeper of bodies alone.
func keepsBodies(db *sql.DB) (func([]byte) error, error) {
	if _, err := db.Exec("CREATE TABLE kept (seq INTEGER PRIMARY KEY, received BIGINT, body BLOB)"); err != nil {
		return nil, err
	}
	//nolint:sqlclosecheck // its database ends with the process
	insert, err := db.Prepare("INSERT INTO kept (received, body) VALUES (?, ?)")
	return func(body []byte) error {
		_, err := insert.Exec(time.Now().UnixMilli(), body)
		return err
	}, err
}

const benchHeader = "Accept-Encoding: gzip\r\nContent-Type: application/json\r\nUser-Agent: Go-http-client/1.1\r\n" +
	"X-Signature: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n"

// keepsRows is a keeper of the least that waybill has to keep, in the tables and indexes of a store: a delivery with
// its header, and its event unless that is there already.
func keepsRows(db *sql.DB) (func([]byte) error, error) {
	var all [3]*sql.Stmt
	for i, query := range []string{
		`INSERT INTO deliveries (received, header, body, method, path, raw_query, remote, verified, reason, scheme,
			secret_name, body_authenticated, single, anomaly)
			VALUES (?, ?, ?, 'POST', '/', '', '127.0.0.1:44321', 'yes', 'verified', 'mine', 's', 1, 1, '') RETURNING seq`,
		"SELECT COUNT(*) FROM events WHERE event_key = ?",
		`INSERT INTO events (delivery, received, length, event_key, sum, event_id, kind, event_time, tracking_number,
			folded, status_track, status_label, latest_event, router_id,
			place, start, status, verified, reason, body_authenticated, mark, anomaly)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1, '1', 'yes', 'verified', 1, '', '')`,
	} {
		var err error
		//nolint:sqlclosecheck // as above
		if all[i], err = db.Prepare(query); err != nil {
			return nil, err
		}
	}
	return func(body []byte) error {
		var events []struct {
			EventID, Event, EventTime string
			Data                      struct {
				RouterID, TrackingNumber, StatusTrack string
				Summary                               struct{ StatusLabel, LatestEvent string }
			}
		}
		now, seq := time.Now().UnixMilli(), int64(0)
		err := json.Unmarshal(body, &events)
		if err == nil {
			err = all[0].QueryRow(now, []byte(benchHeader), body).Scan(&seq)
		}
		for _, e := range events {
			key, sum, known := webhook.IDKey(e.EventID), sha256.Sum256(body), 0
			if err == nil {
				err = all[1].QueryRow(key).Scan(&known)
			}
			if d := e.Data; err == nil && known == 0 {
				_, err = all[2].Exec(seq, now, len(body)-2, key, sum[:], e.EventID, e.Event, e.EventTime, d.TrackingNumber,
					d.TrackingNumber, d.StatusTrack, d.Summary.StatusLabel, d.Summary.LatestEvent, d.RouterID)
			}
		}
		return err
	}, nil
}

// emptyStore makes a store, and returns its file.
func emptyStore(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "rows.db")
	d, err := sqlite.Open(b.Context(), path, store.Options{})
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// barehook starts the minimal receiver and returns its address, and a function
// that ends it and returns how many seconds of the processor it took.
func barehook(b *testing.B) (string, func() float64) {
	b.Helper()
	return receiver(b, peer("barehook"))
}

// receiver starts a receiver that is a peer.
func receiver(b *testing.B, cmd *exec.Cmd) (string, func() float64) {
	b.Helper()
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr), func() float64 {
		_ = in.Close()
		if code, err := ended(cmd, patience); code != 0 || err != nil {
			b.Errorf("the bare receiver ended with %d: %v: %s", code, err, cmd.Stderr)
		}
		return worked(cmd)
	}
}

// worked returns how many seconds of the processor an ended command took.
func worked(cmd *exec.Cmd) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// syncSeconds is how long the disk takes to append so many pages, each synced.
func syncSeconds(b *testing.B, pages int) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "sync"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	began := time.Now()
	for range pages {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began).Seconds()
}

// percentile99 returns how many milliseconds all but the slowest hundredth took
// at most.
func percentile99(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)*99/100].Microseconds()) / 1000
}

// deliveries makes n signed requests of so many new events each.
func deliveries(series, n, events int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		parts := make([]string, events)
		for k := range parts {
			parts[k] = event(series, i*events+k)
		}
		all[i] = signed("[" + strings.Join(parts, ",") + "]")
	}
	return all
}

// BenchmarkListen measures durable deliveries: verified, parsed, deduplicated
// and synced before they are answered, by a listener in a process of its own,
// with the load on the same cores. Beside it, in the same run, stand the disk's
// own rate of syncs, a bare receiver that only reads, compares a MAC and
// answers, one that also has the body on disk before it answers (durable), and
// one that has the rows of a delivery and its event there instead (rows).
// The aims: 0.9 of the durable receiver with one connection, 0.85 with more,
// with a p99 of at most 1.1 of its own; 50 events a delivery 20,000 events/s.
//
// They take turns, a tenth of the load each time, so that what else the
// computer does meets all of them. x-bare-cpu is the processor time that a
// delivery takes, as a multiple of the bare receiver's; it depends least on the
// neighbours.
func BenchmarkListen(b *testing.B) {
	for _, c := range []struct{ conns, n, events int }{{1, 5000, 1}, {16, 40_000, 1}, {64, 40_000, 1}, {16, 2000, 50}} {
		b.Run(fmt.Sprintf("conns=%d/events=%d", c.conns, c.events), func(b *testing.B) {
			var ours, theirs, durable, rows, disk, cpu, bareCPU, most float64
			var took, bareTook, durableTook []time.Duration
			n, syncs := rowsOf(b, c.n), 0
			for i := range b.N {
				w := newHome(b)
				bare, end := barehook(b)
				kept, endDurable := receiver(b, peer("durablehook", filepath.Join(b.TempDir(), "kept.db")))
				filled, endRows := receiver(b, peer("rowshook", emptyStore(b)))
				l := w.listens(filepath.Join(w.home, "bench.db"), nil, "-q")
				for part := range slices.Chunk(deliveries(i, n, c.events), max(1, n/10)) {
					disk += syncSeconds(b, 500)
					syncs += 500
					each, whole := load(b, bare, c.conns, part)
					theirs += whole.Seconds()
					bareTook = append(bareTook, each...)
					each, whole = load(b, kept, c.conns, part)
					durable += whole.Seconds()
					durableTook = append(durableTook, each...)
					_, whole = load(b, filled, c.conns, part)
					rows += whole.Seconds()
					each, whole = load(b, l.addr, c.conns, part)
					ours += whole.Seconds()
					took = append(took, each...)
				}
				most = max(most, l.stop())
				cpu += worked(l.cmd)
				bareCPU += end()
				endDurable()
				endRows()
			}
			all := float64(n * b.N)
			b.ReportMetric(all/ours, "deliveries/s")
			b.ReportMetric(all*float64(c.events)/ours, "events/s")
			b.ReportMetric(float64(syncs)/disk, "syncs/s")
			b.ReportMetric(all/theirs, "bare/s")
			b.ReportMetric(all/ours/(float64(syncs)/disk), "x-syncs")
			b.ReportMetric(theirs/ours, "x-bare")
			b.ReportMetric(durable/ours, "x-durable")
			b.ReportMetric(rows/ours, "x-rows")
			b.ReportMetric(percentile99(took)/percentile99(durableTook), "x-durable-p99")
			b.ReportMetric(percentile99(took), "ms-p99")
			b.ReportMetric(percentile99(bareTook), "bare-ms-p99")
			b.ReportMetric(cpu/all*1e6, "us-cpu/delivery")
			b.ReportMetric(cpu/bareCPU, "x-bare-cpu")
			b.ReportMetric(most, "MB-VmHWM")
			b.ReportMetric(0, "ns/op")
		})
	}
}
