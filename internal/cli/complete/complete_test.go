package complete_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// completions returns what a line may go on with, and what was written to standard
// error.
func completions(t *testing.T, folder string, args ...string) (values []string, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app.App{
		IO:     term.New(strings.NewReader(""), &out, &errs, term.Facts{}),
		Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: []string{"WAYBILL_ACCOUNT=a", "WAYBILL_STORE=" + filepath.Join(folder, "waybill.db")}, WorkDir: folder, Home: folder}
		},
	}
	if code := cli.Run(t.Context(), a, append([]string{"__complete"}, args...)); code != command.OK {
		t.Fatalf("%q: status %d, %s", args, code, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, ":") {
			value, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			values = append(values, value)
		}
	}
	return values, errs.String()
}

// fill makes a store with runs of one row each.
func fill(t *testing.T, folder string, runs int, files ...string) {
	t.Helper()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "waybill.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		staged, err := db.Stage(ctx, ledger.Plan{Files: files, Mode: ledger.Async, BatchSize: 10})
		if err != nil {
			t.Fatal(err)
		}
		id := strconv.Itoa(i)
		if _, err := staged.Add(ctx, []ledger.Entry{{Line: 1, Item: tracking.Item{ReferID: "R" + id, Number: "N" + id}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := staged.Open(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// state returns the names of the files in a folder with their sizes and times.
func state(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		info, e := d.Info()
		if err == nil && e == nil {
			all = append(all, path+" "+strconv.FormatInt(info.Size(), 10)+" "+info.ModTime().String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCompletionIsBoundedAndWritesNothing(t *testing.T) {
	folder := t.TempDir()
	fill(t, folder, 120, "orders.csv")
	before := state(t, folder)
	got, stderr := completions(t, folder, "runs", "show", "")
	if len(got) != 100 || got[0] != "120" {
		t.Errorf("%d runs, the first %q; want 100, the newest first", len(got), got[0])
	}
	if after := state(t, folder); !slices.Equal(before, after) {
		t.Errorf("completion changed files:\n%q\n%q", before, after)
	}
	if strings.Contains(stderr, "note") || strings.Contains(stderr, "warning") {
		t.Errorf("stderr %q", stderr)
	}
}

// A server that does not answer in ten minutes keeps nobody waiting, and is not written about.
func TestCompletionGivesUpOnASilentServer(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	defer time.AfterFunc(time.Minute, func() {
		t.Error("it waits for the server")
		listener.Close()
	}).Stop()
	url := "postgres://ops@" + listener.Addr().String() + "/d?connect_timeout=600"
	got, stderr := completions(t, t.TempDir(), "runs", "show", "--store", url, "")
	if len(got) > 0 || strings.Contains(stderr, "store") {
		t.Errorf("%q, stderr %q", got, stderr)
	}
}

// Names from outside can't steer the terminal or make lines of their own.
func TestCompletionShowsNoControlCharacters(t *testing.T) {
	folder := t.TempDir()
	fill(t, folder, 1, "a\nb\x1b[31m.csv")
	if err := os.WriteFile(filepath.Join(folder, "h.csv"), []byte("\"Order\nNo\",AWB,\x1b[2J\nA,N\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"runs", "show", ""}, {"create", filepath.Join(folder, "h.csv"), "--map", "referId="}} {
		got, _ := completions(t, folder, args...)
		if len(got) != 1 || strings.ContainsAny(strings.Join(got, ""), "\x1b\n") {
			t.Errorf("%q: %q; want one value without control characters", args, got)
		}
	}
}

// --sheet offers the sheets of the workbooks that the line names.
func TestCompletionOfSheets(t *testing.T) {
	folder := t.TempDir()
	f := excelize.NewFile()
	err := f.SetSheetName("Sheet1", "Orders")
	for _, name := range []string{"Old orders", "Notes"} {
		_, added := f.NewSheet(name)
		err = errors.Join(err, added)
	}
	path := filepath.Join(folder, "orders.xlsx")
	if err = errors.Join(err, f.SetSheetVisible("Notes", false), f.SaveAs(path), os.WriteFile(filepath.Join(folder, "a.csv"), []byte("referId\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want []string }{
		{[]string{"create", path, "--sheet", ""}, []string{"Orders", "Old orders", "Notes"}},
		{[]string{"check", path, "--sheet", "Ol"}, []string{"Old orders"}},
		{[]string{"show", "--from", path, "--sheet", "N"}, []string{"Notes"}},
		{[]string{"create", filepath.Join(folder, "a.csv"), "--sheet", ""}, nil},
		{[]string{"create", filepath.Join(folder, "none.xlsx"), "--sheet", ""}, nil},
		{[]string{"create", folder, "--sheet", ""}, nil},
		{[]string{"create", ""}, []string{"csv", "tsv", "txt", "json", "jsonl", "ndjson", "xlsx"}},
	} {
		if got, _ := completions(t, folder, tt.args...); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q; want %q", tt.args, got, tt.want)
		}
	}
}

// Completion ends in time, whatever it reads.
func TestCompletionReadsNoPipe(t *testing.T) {
	folder := t.TempDir()
	if got, _ := completions(t, folder, "create", folder, "--map", "referId="); len(got) != 0 {
		t.Errorf("headers %q of a folder", got)
	}
}

// A status of several spellings is offered once, with the trackings of all of them; a
// REF that a command line would take for a flag is not offered.
func TestCompletionOffersEachValueOnce(t *testing.T) {
	folder := t.TempDir()
	fill(t, folder, 3, "orders.csv")
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "waybill.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, track := range []string{"", "Delivered", "delivered"} {
		n := strconv.Itoa(i)
		sighting := ledger.Sighting{
			Key: tracking.Item{ReferID: "R" + n, Number: "N" + n}.Key(), Phase: ledger.Processed,
			Report: tracking.Report{Status: "1", StatusLabel: "DELIVERED", StatusTrack: track},
			Seen:   time.Now(), Source: ledger.FromQuery,
		}
		if err := db.Record(ctx, []ledger.RecordedAnswer{{Seen: []ledger.Sighting{sighting}}}); err != nil {
			t.Fatal(err)
		}
	}
	staged, err := db.Stage(ctx, ledger.Plan{Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := staged.Add(ctx, []ledger.Entry{{Line: 1, Item: tracking.Item{ReferID: "-q", Number: "N9"}}, {Line: 2, Item: tracking.Item{ReferID: "S ", Number: "N8"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := staged.Open(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := completions(t, folder, "list", "--status", ""); !slices.Equal(got, append([]string{"delivered"}, view.StatusWords()...)) {
		t.Errorf("statuses %q", got)
	}
	if got, _ := completions(t, folder, "show", ""); !slices.Equal(got, []string{"R0", "R1", "R2"}) {
		t.Errorf("references %q", got)
	}
}

// What completes beside events follows the flags of the line; refused deliveries complete nothing.
func TestCompletionOfEvents(t *testing.T) {
	folder := t.TempDir()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "waybill.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	delivery := inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: inbox.Unknown, Body: []byte(`{"eventId":"e1","event":"k","data":{"trackingNumber":"N1"}}`)}
	if _, err := db.Put(ctx, delivery, inbox.Prepare(delivery, webhook.Decode(delivery.Body))); err != nil {
		t.Fatal(err)
	}
	delivery.Verified, delivery.Reason = inbox.No, webhook.ReasonSignatureMismatch
	if _, err := db.PutRefused(ctx, delivery); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ line, want string }{
		{"events readmit ", ""},
		{"events list --columns prob", ""},
		{"events list --dead --columns prob", "problem"},
		{"signature learn --secret-from file:" + folder + "/s", "file:" + folder + "/secret"},
	} {
		if got, _ := completions(t, folder, strings.Split(tt.line, " ")...); strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %s", tt.line, got, tt.want)
		}
	}
}
