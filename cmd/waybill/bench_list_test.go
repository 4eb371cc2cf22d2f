//go:build unix

package main_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bareList is the minimal program: it prints the rows of a store and what is
// known of each as lines of text with tabs, up to so many.
func bareList(path, limit string) error {
	n, err := strconv.Atoi(limit)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT r.refer_id, r.number, COALESCE(r.state, b.state), COALESCE(s.latest_event, ''), COALESCE(s.status_label, ''),
			COALESCE(s.seen, 0), COALESCE(s.source, '')
		FROM rows r JOIN batches b ON b.id = r.batch_id
		LEFT JOIN sightings s ON s.refer_id = r.refer_id AND s.number = r.number
		ORDER BY r.id LIMIT ?`, n)
	if err != nil {
		return err
	}
	defer rows.Close()
	out := bufio.NewWriter(os.Stdout)
	for rows.Next() {
		var refer, number, state, event, status, source string
		var seen int64
		if err := rows.Scan(&refer, &number, &state, &event, &status, &seen, &source); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", refer, number, state, event, status,
			time.UnixMilli(seen).UTC().Format(time.RFC3339), source); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return out.Flush()
}

// Numbers of rows that lists print.
const (
	pageLength  = 20
	tableLength = 100_000
)

// BenchmarkList measures lists of a store with a million trackings and five
// million events. A first page, of a limited list and of a reader that goes
// away, and sums have 300 ms, completion of a value has 100 ms. All rows as CSV and JSONL stand
// beside a program that prints the same rows as plain text (x-minimal), and so
// does a table of 100,000 rows on a terminal (x-plain), of which 3 is the aim.
func BenchmarkList(b *testing.B) {
	w := newHome(b)
	rows := rowsOf(b, 1_000_000)
	path := largeStore(b, rows)
	w.env = append(w.env, "WAYBILL_ACCOUNT="+largeAccount, "WAYBILL_STORE="+path)
	w.run("list", "--limit", "1") // whatever the first list of a store has to do
	for _, filter := range []struct{ name, flags string }{
		{"all", ""},
		{"status=90%", "--status delivered"},
		{"status=1%", "--status EXCEPTION"},
		{"status=35rows", "--status RETURNED"},
		{"run=first", "--run 1"},
		{"run=last", fmt.Sprint("--run ", lastRun)},
		{"run=again", fmt.Sprint("--run ", runAgain)},
		{"run=scattered", fmt.Sprint("--run ", runScattered)},
		{"run=last,status=1%", fmt.Sprint("--status EXCEPTION --run ", lastRun)},
		{"updated=1h", "--updated 1h"},
		{"updated=29d", "--updated 29d"},
		{"updated=..48h", "--updated ..48h"},
		{"delivered=..29d", "--delivered ..29d"},
		{"created=29d", "--created 29d"},
		{"status=rejected", "--status rejected"},
		{"status=pending", "--status pending"},
	} {
		flags := strings.Fields(filter.flags)
		b.Run("page/limit/"+filter.name, func(b *testing.B) {
			w.best(b, func() {
				out, _ := measure(b, w.command(append([]string{"list", "-o", "csv", "--limit", strconv.Itoa(pageLength)}, flags...)...))
				if lines := strings.Count(out, "\n"); lines != pageLength+1 {
					b.Fatalf("%d lines", lines)
				}
			})
		})
		b.Run("page/head/"+filter.name, func(b *testing.B) {
			w.best(b, func() { w.head(b, w.command(append([]string{"list", "-o", "csv"}, flags...)...)) })
		})
	}
	for _, command := range []string{
		"list --status DELIVERD", "list --updated 1s", "stats", "stats --carrier dhl", "stats --run 1", "stats -o json",
		"list --limit 20 --sort -received", "list --limit 20 --sort reference", "list --limit 20 --refer-id ORD-00010*", "list --limit 20 --status not-checked", "list --limit 20 --stuck",
		"__complete show ORD-00", "__complete list --status ", "__complete list --run ",
	} {
		b.Run("sums/"+strings.ReplaceAll(command, " ", "_"), func(b *testing.B) {
			w.best(b, func() { measure(b, w.command(strings.Split(command, " ")...)) })
		})
	}
	for _, format := range []string{"csv", "jsonl"} {
		b.Run("rows/"+format, func(b *testing.B) {
			var ours, theirs, most float64
			for range b.N {
				_, bare := measure(b, unread(b, peer("barelist", path, strconv.Itoa(rows))))
				_, own := measure(b, unread(b, w.command("list", "-o", format, "-q")))
				ours, theirs, most = ours+own.seconds, theirs+bare.seconds, max(most, own.peak)
			}
			b.ReportMetric(ours/theirs, "x-minimal")
			b.ReportMetric(float64(rows*b.N)/ours, "rows/s")
			b.ReportMetric(float64(rows*b.N)/theirs, "minimal-rows/s")
			b.ReportMetric(most, "MB-VmHWM")
		})
	}
	b.Run("table", func(b *testing.B) {
		limit := strconv.Itoa(min(rows, tableLength))
		var table, plain, asCSV float64
		for range b.N {
			plain += w.onTerminal(b, peer("barelist", path, limit))
			asCSV += w.onTerminal(b, w.command("list", "-o", "csv", "-q", "--limit", limit))
			table += w.onTerminal(b, w.command("list", "-q", "--limit", limit))
		}
		b.ReportMetric(table/plain, "x-plain")
		b.ReportMetric(table/asCSV, "x-csv")
		b.ReportMetric(float64(min(rows, tableLength)*b.N)/table, "rows/s")
	})
}

// best reports the shortest time that f took, in milliseconds: what else the
// machine does makes times longer, not shorter.
func (w *world) best(b *testing.B, f func()) {
	b.Helper()
	least := math.Inf(1)
	for range b.N {
		began := time.Now()
		f()
		least = min(least, time.Since(began).Seconds()*1000)
	}
	b.ReportMetric(least, "ms")
}

// head reads the first page of what a command prints, goes away, and waits for
// the command to end.
func (w *world) head(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range pageLength + 1 {
		if !lines.Scan() {
			b.Fatalf("%q printed less than a page: %v", cmd.Args, lines.Err())
		}
	}
	_ = out.Close()
	if code, err := ended(cmd, 15*time.Minute); code != 0 || err != nil {
		b.Fatalf("%q ended with %d: %v\n%s", cmd.Args, code, err, cmd.Stderr)
	}
}

// onTerminal returns how many seconds a command takes that prints to a terminal
// of 120 columns.
func (w *world) onTerminal(b *testing.B, cmd *exec.Cmd) float64 {
	b.Helper()
	cmd.Stdout = nil
	began := time.Now()
	if code, raw := w.on(120, cmd, "TERM=xterm-256color"); code != 0 {
		b.Fatalf("%q ended with %d: %s", cmd.Args, code, raw)
	}
	return time.Since(began).Seconds()
}
