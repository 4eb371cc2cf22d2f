//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	visible "github.com/waybill-cli/waybill/internal/term"
)

// scriptsOfTheWorld are texts whose columns on a terminal are not their characters.
var scriptsOfTheWorld = []string{
	"Departed from the sorting centre",
	"配達完了しました、東京都千代田区",
	"배송 완료 서울특별시",
	"👩🏽‍🚀 on board 👨‍👩‍👧‍👦 🇩🇪 ❤️",
	"Zu\u0308rich, Genève, e\u0301\u0323te\u0301",
	"נמסר בתל אביב",
	"تم التسليم في القاهرة",
	"ｆｕｌｌ ｗｉｄｔｈ ﾊﾝｶｸ",
	"ไทย สถานที่จัดส่ง",
	"tab\there, line\nbreak, \x1b[2J\u202e\u200b\u00ad\x9b\x07",
	"",
	strings.Repeat("very long ", 30),
}

var sentItems = regexp.MustCompile(`"referId":"([^"]*)","rawTrackingNumber":"([^"]*)"`)

// newWorldOfScripts is a world with a run of two rows for each of the scripts, and what
// the service answered about them. Every seventh row was refused.
func newWorldOfScripts(tb testing.TB) *world {
	tb.Helper()
	var created sync.Map // referIds
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			answers := []map[string]any{}
			for _, row := range sentItems.FindAllSubmatch(body, -1) {
				refer, number := string(row[1]), string(row[2])
				if strings.HasPrefix(refer, "REFUSED") {
					answers = append(answers, map[string]any{"referId": refer, "trackingNumber": number, "success": false, "error": "配達: no such carrier 👩🏽‍🚀"})
					continue
				}
				created.Store(refer, true)
				answers = append(answers, map[string]any{"referId": refer, "trackingNumber": number, "success": true})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "data": answers})
			return
		}
		var i int
		refer := r.URL.Query().Get("referId")
		if _, known := created.Load(refer); !known {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Sscanf(refer[strings.LastIndexByte(refer, '-')+1:], "%d", &i)
		text := scriptsOfTheWorld[i%len(scriptsOfTheWorld)]
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{
			"referId": refer, "summary": map[string]any{
				"trackingNumber": fmt.Sprint("NUMBER", i), "status": i, "statusLabel": text, "latestEvent": text,
				"latestCheckpointTime": "2026-01-01T00:00:00", "updated": "2026-01-02T00:00:00Z",
			},
		}})
	}))
	tb.Cleanup(server.Close)
	w := newHome(tb).at(server.URL)
	var rows bytes.Buffer
	for i := range 2 * len(scriptsOfTheWorld) {
		refer, number := fmt.Sprintf("ORD-%d", i), fmt.Sprintf("NUMBER%d", i)
		switch {
		case i%7 == 6:
			refer = fmt.Sprintf("REFUSED-%d", i)
		case i%5 == 3:
			refer = fmt.Sprintf("注文👍🏽-%d", i)
		case i == 0:
			refer = "-0"
		}
		line, err := json.Marshal(map[string]any{"referId": refer, "rawTrackingNumber": number, "metadata": map[string]any{"carrierCode": "dhl"}})
		if err != nil {
			tb.Fatal(err)
		}
		rows.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(w.home, "orders.jsonl"), rows.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	if code, _, stderr := w.run("create", "orders.jsonl", "-q", "--skip-proof", "--accept-odd-values", "--batch-size", "8"); code != 6 {
		tb.Fatalf("exit status %d: %s", code, stderr)
	}
	w.run("show", "--run", "1", "-q")
	return w
}

// tables are command lines that print one table each.
var tables = [][]string{
	{"runs", "list"},
	{"runs", "rows", "1"},
	{"list"},
	{"show", "--run", "1"},
	{"signature", "schemes"},
	{"config", "list", "--origin"},
}

// moreTables print a table for programs, and something else for people.
var moreTables = [][]string{
	{"runs", "show", "1", "--all"},
	{"create", "orders.jsonl", "--dry-run", "--accept-odd-values"},
	{"runs", "resume", "1"},
	{"config", "path"},
}

// A table on a terminal has its columns one below the other, whatever is in them.
func TestTablesAreAligned(t *testing.T) {
	t.Parallel()
	w := newWorldOfScripts(t)
	for _, args := range append(slices.Clone(tables), []string{"runs", "show", "1", "--all"}) {
		for _, columns := range []uint16{60, 80, 100, 140} {
			what := fmt.Sprintf("%q, %d columns", args, columns)
			var plain, coloured, again string
			for tries := 0; plain == "" || plain != again; tries++ { // until no age in it grew meanwhile
				if tries > 100 {
					t.Fatalf("%s: it is laid out otherwise each time: %s", what, cmp.Diff(plain, again))
				}
				plain, coloured, again = w.table(columns, args, "TERM=dumb"), w.table(columns, args, "TERM=xterm-256color"), w.table(columns, args, "NO_COLOR=1")
			}
			if strings.Contains(plain, "\x1b") {
				t.Errorf("%s: sequences in %q", what, plain)
			}
			harmless(t, what, coloured, colours)
			aligned(t, what, int(columns), plain)
			if coloured = colours.ReplaceAllString(coloured, ""); coloured != plain {
				t.Errorf("%s: it is laid out otherwise than without colour: %s", what, cmp.Diff(plain, coloured))
			}
		}
	}
}

// table returns what a command prints on a terminal.
func (w *world) table(columns uint16, args []string, env string) string {
	w.tb.Helper()
	cmd := w.command(append(slices.Clone(args), "-q")...)
	cmd.Stdout = nil
	_, raw := w.on(columns, cmd, env)
	return raw
}

// What needs attention stands out, and is not told by its colour alone.
func TestStatesAreColoured(t *testing.T) {
	w := newWorldOfScripts(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"runs", "rows", "1"}, "\x1b[31mrejected\x1b[0m"},
		{[]string{"runs", "list"}, "\x1b[31m3\x1b[0m"},
		{[]string{"show", "--run", "1", "-q"}, "\x1b[31mrejected\x1b[0m"},
		{[]string{"list"}, "\x1b[31mrejected\x1b[0m"},
	} {
		if _, raw := w.terminal(140, tt.args...); !strings.Contains(raw, tt.want) {
			t.Errorf("%q: no %q in %q", tt.args, tt.want, raw)
		}
	}
}

// heading finds the names in a header: words with single spaces.
var heading = regexp.MustCompile(`\S+( \S+)*`)

// aligned checks that where a column begins by the header, a cell begins in every line,
// or ends there where numbers are aligned to the right.
func aligned(t *testing.T, what string, columns int, table string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(table[strings.LastIndex(table, "\n\n")+1:], "\n"), "\n")
	if lines[0] == "" { // above the table is something else
		lines = lines[1:]
	}
	at := heading.FindAllStringIndex(lines[0], -1)
	if len(at) < 2 || len(lines) < 2 {
		t.Errorf("%s: no table: %q", what, table)
		return
	}
	for n, line := range lines {
		if aboutIt(line) {
			continue
		}
		if width := visible.DisplayWidth(line); width > columns {
			t.Errorf("%s: line %d has %d columns: %s", what, n, width, line)
		}
		for i, a := range at[1:] {
			if left, right := begins(line, a[0]), n > 0 && ends(line, a[1]); !left && !right {
				t.Errorf("%s: line %d: %s is not below its header:\n%s\n%s", what, n, lines[0][at[i+1][0]:at[i+1][1]], lines[0], line)
			}
		}
	}
}

// begins reports whether a cell begins at a column of a terminal, or nothing is there.
func begins(line string, column int) bool {
	before, _, ok := cutAt(line, column)
	return !ok && visible.DisplayWidth(line) < column || ok && strings.HasSuffix(before, " ")
}

// ends reports whether a cell ends before a column of a terminal.
func ends(line string, column int) bool {
	before, after, ok := cutAt(line, column)
	return ok && !strings.HasSuffix(before, " ") && (after == "" || after[0] == ' ')
}

// cutAt cuts a line where a column of a terminal begins.
func cutAt(line string, column int) (before, after string, ok bool) {
	for i := range len(line) + 1 {
		if visible.DisplayWidth(line[:i]) == column && column+visible.DisplayWidth(line[i:]) == visible.DisplayWidth(line) {
			return line[:i], line[i:], true
		}
	}
	return "", "", false
}

// What is printed for programs can be read by them: CSV by a strict reader, in lines as
// long as the header, and JSON by any.
func TestTablesAreReadByPrograms(t *testing.T) {
	w := newWorldOfScripts(t)
	for _, args := range slices.Concat(tables, moreTables) {
		_, text, stderr := w.run(append(slices.Clone(args), "-q", "-o", "csv")...)
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Errorf("%q: %d rows of CSV, %v: %s%s", args, len(rows), err, text, stderr)
		}
		_, text, _ = w.run(append(slices.Clone(args), "-q", "-o", "json")...)
		if !json.Valid(text) {
			t.Errorf("%q: no JSON: %s", args, text)
		}
		_, text, _ = w.run(append(slices.Clone(args), "-q", "-o", "jsonl")...)
		for line := range bytes.Lines(text) {
			if !json.Valid(line) {
				t.Errorf("%q: no JSON Lines: %s", args, line)
			}
		}
	}
}

// LibreOffice opens what --excel writes, with either separator, and shows the values that
// CSV has, each in a cell of its own.
func TestExcelFilesOpenInLibreOffice(t *testing.T) {
	t.Parallel()
	soffice := libreOffice(t)
	if soffice == "" {
		return
	}
	w := newWorldOfScripts(t)
	w.env = append(w.env, "TZ=UTC")
	separators := map[string]rune{"semicolon": ';', "comma": ','}
	for name, separator := range separators {
		folder := filepath.Join(w.home, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		var files []string
		for i, args := range slices.Concat(tables, moreTables) {
			file := filepath.Join(folder, fmt.Sprintf("%d.csv", i))
			w.run(append(slices.Clone(args), "-q", "--excel="+name, "--out", file)...)
			files = append(files, file)
		}
		out := filepath.Join(folder, "out")
		convert(t, soffice, w.home, separator, "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false", out, files...)
		for i, args := range slices.Concat(tables, moreTables) {
			what := fmt.Sprintf("%q, %s", args, name)
			written, err := os.ReadFile(files[i])
			if err != nil {
				t.Fatal(err)
			}
			opened, err := os.ReadFile(filepath.Join(out, filepath.Base(files[i])))
			if err != nil {
				t.Fatal(err)
			}
			mine := parsed(t, what, bytes.TrimPrefix(written, []byte("\ufeff")), separators[name])
			if diff := cmp.Diff(mine, parsed(t, what, opened, ',')); diff != "" {
				t.Errorf("%s: (-written +in LibreOffice)\n%s", what, diff)
			}
			_, text, _ := w.run(append(slices.Clone(args), "-q", "-o", "csv")...)
			if diff := cmp.Diff(alike(parsed(t, what, text, ','), mine)); diff != "" {
				t.Errorf("%s: (-as CSV +with --excel)\n%s", what, diff)
			}
		}
	}
}

// LibreOffice opens the workbooks that tables are written to, and shows the values that CSV
// has: identifiers as text, counts as numbers, times as times.
func TestWorkbooksOpenInLibreOffice(t *testing.T) {
	t.Parallel()
	soffice := libreOffice(t)
	if soffice == "" {
		return
	}
	w := newWorldOfScripts(t)
	w.env = append(w.env, "TZ=UTC")
	var files []string
	all := slices.Concat(tables, moreTables)
	for i, args := range all {
		file := filepath.Join(w.home, fmt.Sprintf("%d.xlsx", i))
		w.run(append(slices.Clone(args), "-q", "-o", "xlsx", "--out", file)...)
		files = append(files, file)
	}
	out := filepath.Join(w.home, "out")
	saveAs(t, soffice, w.home, "", "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false", out, files...)
	for i, args := range all {
		what := fmt.Sprintf("%q", args)
		opened, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("%d.csv", i)))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := w.run(append(slices.Clone(args), "-q", "-o", "csv")...)
		text = bytes.Replace(text, []byte("\noutput,csv,"), []byte("\noutput,xlsx,"), 1) // of config list
		if diff := cmp.Diff(alike(parsed(t, what, text, ','), parsed(t, what, opened, ','))); diff != "" {
			t.Errorf("%s: (-as CSV +in LibreOffice)\n%s", what, diff)
		}
	}
}

// What LibreOffice saves as a workbook is read as it is shown there.
func TestWorkbookOfLibreOffice(t *testing.T) {
	t.Parallel()
	soffice := libreOffice(t)
	if soffice == "" {
		return
	}
	w := newHome(t)
	const sheet = `<?xml version="1.0" encoding="UTF-8"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:automatic-styles>
<number:number-style style:name="N5"><number:number number:decimal-places="0" number:min-integer-digits="5"/></number:number-style>
<number:number-style style:name="NE"><number:scientific-number number:decimal-places="2" number:min-integer-digits="1" number:min-exponent-digits="2"/></number:number-style>
<number:date-style style:name="ND"><number:year number:style="long"/><number:text>-</number:text><number:month number:style="long"/><number:text>-</number:text><number:day number:style="long"/></number:date-style>
<style:style style:name="padded" style:family="table-cell" style:data-style-name="N5"/><style:style style:name="science" style:family="table-cell" style:data-style-name="NE"/><style:style style:name="date" style:family="table-cell" style:data-style-name="ND"/>
</office:automatic-styles><office:body><office:spreadsheet>
<table:table table:name="Cover"><table:table-row><table:table-cell office:value-type="string"><text:p>Read me</text:p></table:table-cell></table:table-row></table:table>
<table:table table:name="My orders">
<table:table-row><table:table-cell table:number-columns-spanned="3" office:value-type="string"><text:p>Orders of November</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell table:number-rows-spanned="2" office:value-type="string"><text:p>referId</text:p></table:table-cell><table:table-cell table:number-columns-spanned="2" office:value-type="string"><text:p>Shipment</text:p></table:table-cell></table:table-row>
<table:table-row><table:covered-table-cell/><table:table-cell office:value-type="string"><text:p>rawTrackingNumber</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>Sent</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="string"><text:p>00123</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>1Z999AA10123456784</text:p></table:table-cell><table:table-cell table:style-name="date" office:value-type="date" office:date-value="2026-11-20"/></table:table-row>
<table:table-row table:visibility="collapse"><table:table-cell table:style-name="padded" office:value-type="float" office:value="42"/><table:table-cell office:value-type="float" office:value="123456789012"/></table:table-row>
<table:table-row><table:table-cell table:formula="of:=&quot;ÄÖ-&quot;&amp;7" office:value-type="string"/><table:table-cell office:value-type="string"><text:p>RB123456785GB</text:p></table:table-cell></table:table-row>%s
</table:table></office:spreadsheet></office:body></office:document>`
	const bad = `
<table:table-row><table:table-cell table:style-name="date" office:value-type="date" office:date-value="2026-03-04"/><table:table-cell office:value-type="float" office:value="12345678901234567890"/></table:table-row>
<table:table-row><table:table-cell table:formula="of:=1/0" office:value-type="float"/><table:table-cell table:style-name="science" office:value-type="float" office:value="123456789012"/></table:table-row>`
	for name, rows := range map[string]string{"good": "", "bad": bad} {
		if err := os.WriteFile(filepath.Join(w.home, name+".fods"), fmt.Appendf(nil, sheet, rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	saveAs(t, soffice, w.home, "", "xlsx", w.home, filepath.Join(w.home, "good.fods"), filepath.Join(w.home, "bad.fods"))
	code, text, stderr := w.run("create", "good.xlsx", "--dry-run", "-o", "json", "--base-url", "http://127.0.0.1:1")
	var got []string
	for _, row := range regexp.MustCompile(`"referId": "([^"]*)",\s+"rawTrackingNumber": "([^"]*)"`).FindAllSubmatch(text, -1) {
		got = append(got, string(row[1])+" "+string(row[2]))
	}
	if diff := cmp.Diff([]string{"00123 1Z999AA10123456784", "00042 123456789012", "ÄÖ-7 RB123456785GB"}, got); diff != "" || code != 0 {
		t.Errorf("exit status %d: %s%s (-want +got)\n%s", code, text, stderr, diff)
	}
	if !strings.Contains(string(stderr), "hidden rows are read too: 1 row of sheet") {
		t.Errorf("hidden rows: %s", stderr)
	}
	code, _, stderr = w.run("create", "bad.xlsx", "--base-url", "http://127.0.0.1:1")
	for _, want := range []string{"'My orders'!A7: ", "'My orders'!B7: ", "'My orders'!A8: ", "'My orders'!B8: "} {
		if !strings.Contains(string(stderr), want) || code != 2 {
			t.Errorf("exit status %d, without %s: %s", code, want, stderr)
		}
	}
}

// LibreOffice takes times of ours for times, counts for numbers and identifiers for text.
func TestExcelCellsHaveTypesInLibreOffice(t *testing.T) {
	t.Parallel()
	soffice := libreOffice(t)
	if soffice == "" {
		return
	}
	w := newWorldOfScripts(t)
	file := filepath.Join(w.home, "runs.csv")
	w.run("runs", "list", "--excel=semicolon", "--columns", "run,created,requests,input", "--out", file)
	convert(t, soffice, w.home, ';', "fods", w.home, file)
	opened, err := os.ReadFile(filepath.Join(w.home, "runs.fods"))
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, cell := range regexp.MustCompile(`office:value-type="(\w+)"`).FindAllSubmatch(opened, -1) {
		types = append(types, string(cell[1]))
	}
	want := []string{"string", "string", "string", "string", "float", "date", "float", "string"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// libreOffice returns the path of LibreOffice; empty, with a word about it, if it is
// missing. The continuous integration sets SOFFICE=required.
func libreOffice(t *testing.T) string {
	t.Helper()
	soffice, err := exec.LookPath("soffice")
	if err != nil && os.Getenv("SOFFICE") == "required" {
		t.Fatal("LibreOffice is missing: install libreoffice-calc-nogui")
	} else if err != nil {
		t.Log("NOT TESTED: LibreOffice (soffice) is missing, so nothing has opened what --excel writes")
		return ""
	}
	return soffice
}

// convert lets LibreOffice open CSV and save it in another format.
func convert(t *testing.T, soffice, home string, separator rune, format, folder string, files ...string) {
	t.Helper()
	saveAs(t, soffice, home, fmt.Sprintf("--infilter=CSV:%d,34,76,1,,1033,false,true", separator), format, folder, files...)
}

// oneOffice is held while LibreOffice runs: several at once take longer than one after the other.
var oneOffice sync.Mutex

// saveAs lets LibreOffice open files, with a filter for reading unless that is empty, and save
// them in another format.
func saveAs(t *testing.T, soffice, home, filter, format, folder string, files ...string) {
	t.Helper()
	oneOffice.Lock()
	defer oneOffice.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	args := []string{"--headless", "--norestore", "-env:UserInstallation=file://" + filepath.Join(home, "profile")}
	if filter != "" {
		args = append(args, filter)
	}
	cmd := exec.CommandContext(ctx, soffice, append(append(args, "--convert-to", format, "--outdir", folder), files...)...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// parsed returns the cells of CSV, without what keeps a spreadsheet from changing
// identifiers, and truth values as spreadsheets write them.
func parsed(t *testing.T, what string, text []byte, separator rune) [][]string {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma = separator
	rows, err := r.ReadAll()
	if err != nil {
		t.Errorf("%s: %v: %s", what, err, text)
	}
	for _, row := range rows {
		for i, c := range row {
			if guarded, ok := strings.CutPrefix(c, `="`); ok {
				row[i] = strings.ReplaceAll(strings.TrimSuffix(guarded, `"`), `""`, `"`)
			} else if c == "true" || c == "false" {
				row[i] = strings.ToUpper(c)
			}
		}
	}
	return rows
}

// alike returns the rows of CSV and those of a spreadsheet without what it has more: columns
// for people; and without what it writes otherwise: the offset of our times, and times of the
// service; and without the time of a show, which asks anew.
func alike(data, sheet [][]string) (_, _ [][]string) {
	utc := regexp.MustCompile(`^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z$`)
	decimal := regexp.MustCompile(`^(\d+),(\d+)$`) // beside semicolons
	header := sheet[0]
	for i, row := range sheet {
		sheet[i] = nil
		for j, c := range row {
			if slices.Contains(data[0], header[j]) {
				sheet[i] = append(sheet[i], decimal.ReplaceAllString(c, "$1.$2"))
			}
		}
	}
	for _, rows := range [][][]string{data, sheet} {
		for _, row := range rows[1:] {
			for i, c := range row {
				if row[i] = utc.ReplaceAllString(c, "$1 $2"); slices.Contains([]string{"latestCheckpointTime", "learntAt"}, rows[0][i]) {
					row[i] = ""
				}
			}
		}
	}
	return data, sheet
}
