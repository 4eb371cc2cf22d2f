package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A create of standard input that is interrupted names the command that goes
// on; two of those at once share what is left, and each row goes out once.
func TestResumeAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	const n = 60
	w := newWorld(t, "--latency", "30ms")
	rows := pairs(n, ascending)
	input, err := os.ReadFile(rowsFile(t, w.home, "orders.csv", rows))
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.command("create", "-", "--batch-size", "1", "--concurrency", "1", "-o", "json")
	cmd.Stdin = bytes.NewReader(input)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); w.stats("?rows=0").Requests["createV2"] < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was sent")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code, err := ended(cmd, patience)
	stderr := cmd.Stderr.(*bytes.Buffer).String()
	if code != 130 || err != nil || !strings.Contains(stderr, `"nextCommand":"waybill runs resume 1"`) {
		t.Errorf("interrupted, it ended with %d, %v: %s; want 130 and the command that goes on", code, err, stderr)
	}
	var first createResult
	if err := json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &first); err != nil || first.Accepted < 1 || first.Pending < 1 || first.Unknown != 0 {
		t.Errorf("interrupted: %+v, %v; want some rows accepted and some pending", first, err)
	}
	both := []*exec.Cmd{w.command("runs", "resume", "1", "-o", "json"), w.command("runs", "resume", "1", "-o", "json")}
	for _, cmd := range both {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range both {
		code, err := ended(cmd, patience)
		var r createResult
		if code != 0 || err != nil || json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &r) != nil || r.Accepted != n {
			t.Errorf("resumed, it ended with %d, %v: %s%s", code, err, cmd.Stdout, cmd.Stderr)
		}
	}
	w.whole(rows, 0)
}
