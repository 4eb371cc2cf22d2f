package track_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// A file of more rows than are looked up at once is listed in its order, each row with
// what is known of it, and a repeated one again.
func TestListOfManyRows(t *testing.T) {
	folder := t.TempDir()
	env := []string{"WAYBILL_STORE=" + filepath.Join(folder, "s.db"), "WAYBILL_ACCOUNT=acme"}
	var parcels []parcel
	file, want := "referId,rawTrackingNumber\n", "referId,trackingNumber,state\n"
	for i := range 700 {
		parcels = append(parcels, parcel{referID: fmt.Sprint("A", i), run: true})
	}
	fillStore(t, env, parcels)
	for i := 800; i >= 0; i-- {
		row, state := fmt.Sprintf("A%d,N%d", i, i), "pending"
		if i >= 700 {
			state = "notCreated"
		}
		if i%100 == 0 {
			file, want = file+row+"\n", want+row+","+state+"\n"
		}
		file, want = file+row+"\n", want+row+","+state+"\n"
	}
	name := filepath.Join(folder, "orders.csv")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runLine(t, env, "list", "--from", name, "-o", "csv", "--columns", "reference,number,state"); got != want {
		t.Errorf("%d lines; want %d:\n%s", strings.Count(got, "\n"), strings.Count(want, "\n"), got)
	}
}

// parcel is a tracking: one without a label was created and not sent, one
// without a run was only seen.
type parcel struct {
	referID, label, carrier string
	run                     bool
	days, transit           int // since its last checkpoint, and until then
}

// fillStore creates the parcels in a store, in one run.
func fillStore(t *testing.T, env []string, parcels []parcel) {
	t.Helper()
	c, _, _ := clitest.Call(t, env...)
	db, err := c.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var rows []ledger.Entry
	var answers []ledger.RecordedAnswer
	for i, p := range parcels {
		key := tracking.Key{ReferID: p.referID, Number: fmt.Sprint("N", i)}
		if p.run {
			rows = append(rows, ledger.Entry{Line: i + 2, Item: tracking.Item{ReferID: key.ReferID, Number: key.Number}})
		}
		if p.label != "" {
			at := time.Now().AddDate(0, 0, -p.days)
			s := ledger.Sighting{
				Key: key, Phase: ledger.Processed,
				Report:      tracking.Report{StatusLabel: p.label},
				CarrierCode: p.carrier, Times: tracking.Times{Checkpoint: at},
				Transit: time.Duration(p.transit) * 24 * time.Hour, Seen: at, Source: ledger.FromQuery,
			}
			answers = append(answers, ledger.RecordedAnswer{ReferID: p.referID, Asked: time.Now(), Seen: []ledger.Sighting{s}})
		}
	}
	plan := ledger.Plan{Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: 10}
	if _, err := bulk.Stage(t.Context(), db.Stager, plan, func(yield func(ledger.Entry, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}, bulk.StageChecks{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Trackings.Record(t.Context(), answers); err != nil {
		t.Fatal(err)
	}
}

// runLine runs a command line and returns what it prints.
func runLine(t *testing.T, env []string, line ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	a := &app.App{
		IO: term.New(strings.NewReader(""), &out, &errs, term.Facts{}), Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: env, WorkDir: home, Home: home}
		},
	}
	if code := cli.Run(t.Context(), a, line); code != command.OK {
		t.Fatalf("%v: status %d: %s%s", line, code, out.String(), errs.String())
	}
	return out.String()
}

// statsJSON is what this test reads of stats.
type statsJSON struct {
	Summary struct {
		Trackings int64
		ByStatus  []struct {
			Phase, Name string
			Trackings   int64
		}
	}
	ByCarrier []struct {
		CarrierCode          string
		Trackings, Delivered int64
	}
	ByAge       []struct{ FromDays, Trackings, Delivered *int64 }
	TransitDays struct {
		Histogram []struct{ Days, Trackings int64 }
	}
}

// sums returns the numbers that a report must have: of its head, and of each line of its
// tables. All runs of the test are less than a day old.
func (s *statsJSON) sums() map[string]int64 {
	sums := map[string]int64{"trackings": s.Summary.Trackings}
	for _, c := range s.ByCarrier {
		sums["delivered"] += c.Delivered
		sums["Carriers: "+cmp.Or(c.CarrierCode, "not known")] = c.Trackings
	}
	for _, c := range s.Summary.ByStatus {
		sums["Statuses: "+c.Name] = c.Trackings
		if c.Phase != string(ledger.Processed) {
			sums["not reported"] += c.Trackings
		}
	}
	for _, a := range s.ByAge {
		if n := *a.Trackings - *a.Delivered; a.FromDays == nil {
			sums["Age of what is under way: not created here"] = n
		} else {
			sums["Age of what is under way: less than 1 day"] = n - sums["not reported"]
		}
	}
	for _, h := range s.TransitDays.Histogram {
		sums["Transit times: "+command.Plural(h.Days, "day")] = h.Trackings
	}
	maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	return sums
}

// sumsOfPage returns the same numbers as a written report has them.
func sumsOfPage(t *testing.T, page string) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	add := func(name, number string) {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if sums[name] += n; n == 0 && sums[name] == 0 {
			delete(sums, name)
		}
	}
	for _, m := range regexp.MustCompile(`<b>(\d+)</b><span>(trackings|delivered|not reported)`).FindAllStringSubmatch(page, -1) {
		add(m[2], m[1])
	}
	for _, section := range regexp.MustCompile(`(?s)<section>\n<h2>([^<]+)</h2>(.*?)</section>`).FindAllStringSubmatch(page, -1) {
		for _, line := range regexp.MustCompile(`<tr><th scope="row">([^<]+)</th><td>(\d+)</td><td>([^<]+)</td>`).FindAllStringSubmatch(section[2], -1) {
			name := section[1] + ": " + line[1]
			if add(name, line[2]); strings.HasPrefix(name, "Age") {
				add(name, line[3]) // of those with a problem
			}
		}
	}
	return sums
}

// A written report has the numbers that the command stats prints, with each
// filter, and the rows of these trackings.
func TestReportHasTheNumbersOfStats(t *testing.T) {
	folder := t.TempDir()
	envOf := func(account string) []string {
		return []string{"WAYBILL_STORE=" + filepath.Join(folder, account+".db"), "WAYBILL_ACCOUNT=" + account}
	}
	fillStore(t, envOf("acme"), []parcel{
		{referID: "A1", label: "DELIVERED", carrier: "ups", run: true, days: 1, transit: 2},
		{referID: "A2", label: "DELIVERED", carrier: "dhl", days: 2, transit: 3},
		{referID: "A3", label: "IN_TRANSIT", carrier: "dhl", run: true, days: 1},
		{referID: "A4", label: "IN_TRANSIT", carrier: "dhl", days: 14},
		{referID: "A5", label: "RETURNED", carrier: "ups", run: true, days: 21},
		{referID: "A6", run: true},
		{referID: "A7", run: true},
	})
	fillStore(t, envOf("beta"), []parcel{
		{referID: "B1", label: "DELIVERED", carrier: "fedex", run: true, days: 3, transit: 2},
		{referID: "B2", label: "IN_TRANSIT", carrier: "dhl", days: 30},
		{referID: "B3", label: "HELD", run: true, days: 2},
	})
	for _, test := range []struct{ account, flags, rows string }{
		{"acme", "", "A5 A4 A3 A7 A6 A2 A1"},
		{"beta", "", "B2 B3 B1"},
		{"gamma", "", ""},
		{"acme", "--carrier DHL", "A4 A3 A2"},
		{"beta", "--carrier dhl", "B2"},
		{"acme", "--status delivered", "A2 A1"},
		{"acme", "--refer-id A3 --refer-id A7", "A3 A7"},
		{"acme", "--run 1 --status pending", "A5 A3 A7 A6 A1"},
		{"acme", "--stuck=10d", "A5 A4"},
		{"beta", "--updated 48h30m", "B3"},
		{"acme", "--status not-checked", ""},
	} {
		env := envOf(test.account)
		var stats statsJSON
		if err := json.Unmarshal([]byte(runLine(t, env, append([]string{"stats", "-o", "json"}, strings.Fields(test.flags)...)...)), &stats); err != nil {
			t.Fatal(err)
		}
		page := runLine(t, env, append([]string{"report", "-"}, strings.Fields(test.flags)...)...)
		if got, want := sumsOfPage(t, page), stats.sums(); !maps.Equal(got, want) {
			t.Errorf("%s %s: the report has %v; stats has %v", test.account, test.flags, got, want)
		}
		var rows []string
		_, table, _ := strings.Cut(page, `<h2 id="table">`)
		for _, m := range regexp.MustCompile(`<th scope="row">([^<]+)<td>`).FindAllStringSubmatch(table, -1) {
			rows = append(rows, m[1])
		}
		if got := strings.Join(rows, " "); got != test.rows {
			t.Errorf("%s %s: rows %s; want %s", test.account, test.flags, got, test.rows)
		}
	}
}
