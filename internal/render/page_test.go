package render

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/term"
)

// screen returns a terminal of so many columns and what comes to it.
func screen(columns int, env map[string]string) (*term.Writer, *bytes.Buffer) {
	var out bytes.Buffer
	known := map[string]string{"COLUMNS": strconv.Itoa(columns)}
	maps.Copy(known, env)
	return term.New(nil, &out, new(bytes.Buffer), term.Facts{OutTerminal: true, Env: known}).Out, &out
}

// file returns a stream that is no terminal and what comes to it.
func file() (*term.Writer, *bytes.Buffer) {
	var out bytes.Buffer
	return term.Plain(&out), &out
}

var plainly = map[string]string{"NO_COLOR": "1"}

func fill(t *testing.T, r *Rows, rows ...[]string) {
	t.Helper()
	for _, row := range rows {
		if err := r.Row(row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
}

func shipments() ([]Column, [][]string) {
	return []Column{{Name: "REF", ID: true}, {Name: "NUMBER", ID: true}, {Name: "ROWS", Right: true}, {Name: "LATEST EVENT", Flex: true}, {Name: "STATUS"}},
		[][]string{
			{"order-1001", "1Z999AA10123456784", "1", "Departed from the sorting centre in Køge", "InTransit"},
			{"order-2", "00340434161094042557", "12", "配達完了 配達完了 配達完了 配達完了", "Delivered"},
			{"注文3", "RR123456785JP", "", "", ""},
		}
}

func TestTableOnATerminal(t *testing.T) {
	tests := []struct {
		columns int
		want    string
	}{
		{120, `
REF         NUMBER                ROWS  LATEST EVENT                              STATUS
order-1001  1Z999AA10123456784       1  Departed from the sorting centre in Køge  InTransit
order-2     00340434161094042557    12  配達完了 配達完了 配達完了 配達完了       Delivered
注文3       RR123456785JP
`},
		{67, `
REF         NUMBER                ROWS  LATEST EVENT      STATUS
order-1001  1Z999AA10123456784       1  Departed from t…  InTransit
order-2     00340434161094042557    12  配達完了 配達完…  Delivered
注文3       RR123456785JP
`},
		{20, `
REF         NUMBER                ROWS  LATEST EVENT  STATUS
order-1001  1Z999AA10123456784       1  Departed fr…  InTransit
order-2     00340434161094042557    12  配達完了 配…  Delivered
注文3       RR123456785JP
`},
	}
	for _, tt := range tests {
		out, got := screen(tt.columns, plainly)
		columns, rows := shipments()
		fill(t, NewTable(out, columns...), rows...)
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got.String()); diff != "" {
			t.Errorf("%d columns: (-want +got)\n%s", tt.columns, diff)
		}
	}
}

func TestTableCutsWhatOneEndlessValueWouldSpoil(t *testing.T) {
	endless := strings.Repeat("1Z", 1<<20)
	columns := []Column{{Name: "NUMBER", ID: true}, {Name: "LATEST EVENT", Flex: true}, {Name: "KIND", Flex: true}, {Name: "STATE"}}
	rows := [][]string{{endless, endless, endless, "yes"}, {"1Z1", "Delivered", "router.delivered", "no"}}
	out, got := screen(110, plainly)
	fill(t, NewTable(out, columns...), rows...)
	for line := range strings.Lines(got.String()) {
		if term.DisplayWidth(line) > 111 {
			t.Errorf("%d columns: %.200s", term.DisplayWidth(line), line)
		}
	}
	out, got = file()
	fill(t, NewTable(out, columns...), rows...)
	if !strings.Contains(got.String(), "\n"+endless+"\t"+endless+"\t"+endless+"\tyes\n") {
		t.Error("elsewhere than on a terminal a value was cut")
	}
}

func TestTableFitsSixtyColumns(t *testing.T) {
	out, got := screen(60, plainly)
	fill(t, NewTable(out, Column{Name: "NUMBER"}, Column{Name: "LATEST EVENT", Flex: true}, Column{Name: "STATUS"}),
		[]string{"1Z999AA10123456784", strings.Repeat("long ", 40), "InTransit"},
		[]string{"RR123456785JP", "short", "Delivered"})
	want := "NUMBER              LATEST EVENT                   STATUS\n" +
		"1Z999AA10123456784  long long long long long lon…  InTransit\n" +
		"RR123456785JP       short                          Delivered\n"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(got.String()) {
		if w := term.DisplayWidth(strings.TrimSuffix(line, "\n")); w > 60 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
}

func TestTableWithoutTerminal(t *testing.T) {
	out, got := file()
	columns, rows := shipments()
	rows = append(rows, []string{"a\tb", "c\nd\x1b[2J", "3", strings.Repeat("x", 300), "\u202e"})
	fill(t, NewTable(out, columns...), rows...)
	want := "REF\tNUMBER\tROWS\tLATEST EVENT\tSTATUS\n" +
		"order-1001\t1Z999AA10123456784\t1\tDeparted from the sorting centre in Køge\tInTransit\n" +
		"order-2\t00340434161094042557\t12\t配達完了 配達完了 配達完了 配達完了\tDelivered\n" +
		"注文3\tRR123456785JP\t\t\t\n" +
		`a\tb` + "\t" + `c\nd\u{1b}[2J` + "\t3\t" + strings.Repeat("x", 300) + "\t" + `\u{202e}` + "\n"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func statusStyle(cell string) term.Style {
	switch cell {
	case "Delivered":
		return term.Good
	case "Failed":
		return term.Bad
	}
	return term.Normal
}

func colouredColumns() []Column {
	return []Column{{Name: "STATUS"}, {Name: "N", Right: true}, {Name: "LAST"}}
}

// coloured returns the cells of a row of colouredColumns, or of fewer.
func coloured(texts ...string) []Cell {
	styles := []func(string) term.Style{statusStyle, func(string) term.Style { return term.Faint }, statusStyle}
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i] = Cell{Text: text, Style: styles[i](text)}
	}
	return cells
}

// fillColoured is fill with [coloured] rows.
func fillColoured(t *testing.T, r *Rows, rows ...[]string) {
	t.Helper()
	for _, row := range rows {
		if err := r.Add(coloured(row...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestColouredTable(t *testing.T) {
	rows := [][]string{{"Delivered", "1", "Failed"}, {"x", "22", "Delivered"}, {"Failed", "", ""}}
	plainOut, plain := screen(80, plainly)
	fillColoured(t, NewTable(plainOut, colouredColumns()...), rows...)
	out, got := screen(80, nil)
	fillColoured(t, NewTable(out, colouredColumns()...), rows...)
	for _, part := range []string{"\x1b[32mDelivered\x1b[0m  ", "\x1b[31mFailed\x1b[0m\n", "\x1b[2m22\x1b[0m", "\x1b[32mDelivered\x1b[0m\n", "\x1b[1mSTATUS\x1b[0m"} {
		if !strings.Contains(got.String(), part) {
			t.Errorf("%q is missing in %q", part, got)
		}
	}
	if diff := cmp.Diff(plain.String(), uncoloured(got.String())); diff != "" {
		t.Errorf("colour moves the layout: (-plain +coloured)\n%s", diff)
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Errorf("colour in spite of NO_COLOR: %q", plain)
	}
}

// uncoloured returns s without sequences.
func uncoloured(s string) string {
	for _, on := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"} {
		s = strings.ReplaceAll(s, on, "")
	}
	return s
}

func TestForcedColourWithoutTerminal(t *testing.T) {
	var got bytes.Buffer
	out := term.New(nil, &got, new(bytes.Buffer), term.Facts{Env: map[string]string{"CLICOLOR_FORCE": "1"}}).Out
	fillColoured(t, NewTable(out, Column{Name: "S"}), []string{"Delivered"})
	if want := "\x1b[1mS\x1b[0m\n\x1b[32mDelivered\x1b[0m\n"; got.String() != want {
		t.Errorf("got %q; want %q", got.String(), want)
	}
}

func TestLongTableStreams(t *testing.T) {
	out, got := screen(30, plainly)
	r := NewTable(out, Column{Name: "ID"}, Column{Name: "N", Right: true}, Column{Name: "TEXT", Flex: true}, Column{Name: "END"})
	const rows = 5000
	long := strings.Repeat("long", 20)
	var before int
	for i := range rows {
		text := "text"
		if i == 3 || i == 4000 {
			text = long
		}
		if err := r.Row(fmt.Sprintf("id%d", i), fmt.Sprint(i), text, "e"); err != nil {
			t.Fatal(err)
		}
		if i == 4500 {
			before = got.Len()
		}
	}
	if before == 0 {
		t.Error("nothing written before Flush")
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	if len(lines) != rows+1 {
		t.Fatalf("%d lines; want %d", len(lines), rows+1)
	}
	for i, want := range map[int]string{
		0:        "ID       N  TEXT           END",
		1:        "id0      0  text           e",
		4:        "id3      3  longlonglong…  e",
		4001:     "id4000 4000 longlonglong…  e",
		rows + 0: "id4999 4999 text           e",
	} {
		if lines[i] != want {
			t.Errorf("line %d: %q; want %q", i, lines[i], want)
		}
	}
}

func TestRowsAreCounted(t *testing.T) {
	out, got := screen(80, plainly)
	r := NewTable(out, Column{Name: "A"}, Column{Name: "B"})
	if err := r.Row("1", "2", "3"); err == nil {
		t.Error("no error for three cells in two columns")
	}
	fill(t, r, []string{"1"}, nil)
	if want := "A  B\n1\n\n"; got.String() != want {
		t.Errorf("got %q; want %q", got.String(), want)
	}
}

func TestTableWithoutRowsHasAHeader(t *testing.T) {
	for name, stream := range map[string]func() (*term.Writer, *bytes.Buffer){
		"A  B\n": func() (*term.Writer, *bytes.Buffer) { return screen(80, plainly) },
		"A\tB\n": file,
	} {
		out, got := stream()
		fill(t, NewTable(out, Column{Name: "A"}, Column{Name: "B"}))
		if got.String() != name {
			t.Errorf("got %q; want %q", got.String(), name)
		}
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsAreReturned(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		out := term.New(nil, full{}, full{}, term.Facts{OutTerminal: terminal}).Out
		r := NewTable(out, Column{Name: "A"})
		if err := r.Row("1"); err != nil {
			t.Errorf("terminal %t: %v before anything is written", terminal, err)
		}
		for range 2 {
			if err := r.Flush(); !errors.Is(err, errFull) {
				t.Errorf("terminal %t: Flush: %v; want %v", terminal, err, errFull)
			}
		}
		if err := r.Row("2"); !errors.Is(err, errFull) {
			t.Errorf("terminal %t: Row: %v; want %v", terminal, err, errFull)
		}
		if err := Fields(out, Field{Name: "a", Value: "b"}); !errors.Is(err, errFull) {
			t.Errorf("terminal %t: Fields: %v; want %v", terminal, err, errFull)
		}
	}
	long := NewTable(term.New(nil, full{}, full{}, term.Facts{OutTerminal: true}).Out, Column{Name: "A"})
	var err error
	for range 100_000 {
		if err = long.Row(strings.Repeat("x", 100)); err != nil {
			break
		}
	}
	if !errors.Is(err, errFull) {
		t.Errorf("a long table went on for all its rows: %v", err)
	}
}

// FuzzTable holds the two layouts against each other: what tablewriter makes
// of a page is what the streaming writer makes of its rows.
func FuzzTable(f *testing.F) {
	f.Add("a", "b\x1b", "日本語", " x ", "é́", "\ufe0f", true)
	f.Add("0", "0", "0", "0", "\u0301", "0", true)
	f.Add("", " ", "", "\u202e", "❤\ufe0f", "👍🏽", false)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g string, right bool) {
		columns := []Column{{Name: "ONE", Right: right}, {Name: "TWO"}, {Name: "THREE"}}
		rows := [][]string{{a, b, c}, {d, e, g}, {c, "Delivered", a}}
		for _, env := range []map[string]string{plainly, nil} {
			out, laidOut := screen(10, env)
			fillColoured(t, NewTable(out, columns...), rows...)
			out, streamed := screen(10, env)
			s := NewTable(out, columns...)
			for _, row := range rows {
				if err := s.Add(coloured(row...)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.form.(*page).startStreaming(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			want := streamed.String()
			if diff := cmp.Diff(want, laidOut.String()); diff != "" {
				t.Errorf("rows %q: (-streamed +laid out)\n%s", rows, diff)
			}
			if !utf8.ValidString(want) || strings.Count(want, "\n") != len(rows)+1 || strings.Contains(want, " \n") {
				t.Errorf("rows %q gave %q", rows, want)
			}
		}
	})
}

func BenchmarkTable(b *testing.B) {
	columns, rows := shipments()
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				out, _ := screen(100, plainly)
				r := NewTable(out, columns...)
				for i := range n {
					if err := r.Row(rows[i%3]...); err != nil {
						b.Fatal(err)
					}
				}
				if err := r.Flush(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestNarrowTableLeavesOutEmptyColumnsFirst(t *testing.T) {
	columns := []Column{{Name: "REFERENCE", ID: true}, {Name: "CARRIER", Rank: 1}, {Name: "STATUS"}, {Name: "REASON"}, {Name: "UPDATED", Rank: 2}}
	out, got := screen(45, plainly)
	fill(t, NewTable(out, columns...), []string{"order-1001", "", "InTransit", "", "2026-11-22"}, []string{"order-1002", "", "Delivered", "", "2026-11-21"})
	if header, _, _ := strings.Cut(got.String(), "\n"); header != "REFERENCE   STATUS     REASON  UPDATED" {
		t.Errorf("got %q", header)
	}
}

func TestNarrowTableLeavesOutByRank(t *testing.T) {
	columns := []Column{
		{Name: "INPUT", Rank: 2}, {Name: "REFERENCE", ID: true}, {Name: "LATEST EVENT", Flex: true, Rank: 3}, {Name: "STATUS"}, {Name: "UPDATED", Rank: 1}, {Name: "CARRIER", Rank: 3},
	}
	row := []string{"orders.csv:12", "order-1001", "Departed from the sorting centre", "InTransit", "2026-11-22 14:03 +01:00", "dhl"}
	for _, tt := range []struct {
		columns int
		want    string // the header
	}{
		{200, "INPUT REFERENCE LATEST EVENT STATUS UPDATED CARRIER"},
		{92, "INPUT REFERENCE LATEST EVENT STATUS UPDATED CARRIER"},
		{83, "INPUT REFERENCE LATEST EVENT STATUS UPDATED"},
		{61, "INPUT REFERENCE STATUS UPDATED"},
		{60, "REFERENCE STATUS UPDATED"},
		{46, "REFERENCE STATUS UPDATED"},
		{45, "REFERENCE STATUS"},
		{5, "REFERENCE STATUS"},
	} {
		for _, rows := range []int{1, pageRows + 5} {
			out, got := screen(tt.columns, plainly)
			r := NewTable(out, columns...)
			for range rows {
				if err := r.Row(row...); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
			header, _, _ := strings.Cut(got.String(), "\n")
			if shown := strings.Join(strings.Fields(header), " "); shown != tt.want {
				t.Errorf("%d columns: %q; want %q", tt.columns, shown, tt.want)
			}
			for line := range strings.Lines(got.String()) {
				if w := term.DisplayWidth(strings.TrimSuffix(line, "\n")); w > max(tt.columns, len("order-1001  InTransit")) {
					t.Fatalf("%d columns, %d rows: %d columns: %q", tt.columns, rows, w, line)
				}
			}
		}
	}
}

// trackings returns columns as list has them, and a row of them.
func trackings() ([]Column, []string) {
	return []Column{
			{Name: "REFERENCE", ID: true},
			{Name: "NUMBER", ID: true},
			{Name: "CARRIER", ID: true, Rank: 4},
			{Name: "STATE", Rank: 5},
			{Name: "STATUS", Flex: true},
			{Name: "LATEST EVENT", Flex: true, Rank: 3},
			{Name: "UPDATED", Rank: 1},
		},
		[]string{"ORD-10000", "9400111899223000001001", "dhl", "accepted", "SANDBOX_IN_TRANSIT (9002)", "Arrived at the sorting hub.", "3 min ago, webhook"}
}

// pageLines returns the lines of a table of so many columns; each must fit.
func pageLines(t *testing.T, width int, columns []Column, rows ...[]string) []string {
	t.Helper()
	out, got := screen(width, plainly)
	fill(t, NewTable(out, columns...), rows...)
	lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
	for _, line := range lines {
		if w := term.DisplayWidth(line); w > width && !strings.Contains(line, strings.Repeat("r", 44)+" ") { // a wide identifier, which is whole
			t.Errorf("%d columns: %d: %q", width, w, line)
		}
	}
	return lines
}

func TestOneLongIdentifierLeavesRoomForTheOthers(t *testing.T) {
	columns, usual := trackings()
	long := slices.Clone(usual)
	long[0], long[1] = strings.Repeat("r", 255), strings.Repeat("9", 200)
	for _, width := range []int{60, 80, 100, 140, 200} {
		for _, rows := range [][][]string{{usual, long}, {long}} {
			lines := pageLines(t, width, columns, rows...)
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "rrrr") || !strings.Contains(last, "…  999") {
				t.Errorf("%d columns: %q; want the long identifiers cut visibly", width, last)
			}
			if width >= 140 && (!strings.Contains(lines[1], usual[4]) || !strings.Contains(lines[1], usual[6])) {
				t.Errorf("%d columns, %d rows: %q; want status and time", width, len(rows), lines[1])
			}
			if len(rows) == 2 && !strings.HasPrefix(strings.Join(strings.Fields(lines[1]), " "), usual[0]+" "+usual[1]+" SANDBOX") && width < 140 {
				t.Errorf("%d columns: %q; want the other identifiers whole", width, lines[1])
			}
		}
	}
}

func TestWideIdentifiersOfMostRowsKeepARoom(t *testing.T) {
	columns, wide := trackings()
	short := slices.Clone(wide)
	wide[0] = strings.Repeat("r", 44)
	for _, line := range pageLines(t, 100, columns, wide, wide, short)[1:3] {
		if !strings.HasPrefix(line, strings.Repeat("r", 30)) {
			t.Errorf("got %q", line)
		}
	}
}

func TestUsualIdentifiersAreWholeAtEighty(t *testing.T) {
	columns, row := trackings()
	row[0], row[1] = strings.Repeat("r", 30), strings.Repeat("9", 30)
	if line := pageLines(t, 80, columns, row)[1]; !strings.HasPrefix(line, row[0]+"  "+row[1]+"  SANDBOX_IN_TRAN…") {
		t.Errorf("got %q", line)
	}
}

func TestWiderTerminalNeverShowsLessOfAMoreImportantColumn(t *testing.T) {
	columns, row := trackings()
	for _, long := range []string{row[5], strings.Repeat("Arrived at the sorting hub. ", 4)} {
		row[5] = long
		event := 0 // how much of it the narrower terminal had room for
		for width := 80; width < 260; width++ {
			lines := pageLines(t, width, columns, row)
			if !strings.Contains(lines[1], row[4]+"  ") {
				t.Fatalf("%d columns: %q; want the whole status", width, lines[1])
			}
			_, rest, _ := strings.Cut(lines[1], row[4])
			shown := term.DisplayWidth(strings.TrimSpace(strings.TrimSuffix(rest, row[6])))
			if shown < min(event, wideFlex) {
				t.Errorf("%d columns: %d of the latest event; %d on a narrower terminal", width, shown, event)
			}
			event = shown
		}
	}
}
