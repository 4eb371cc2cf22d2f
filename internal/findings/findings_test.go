package findings_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/findings"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// examine returns the findings of a file.
func examine(t *testing.T, name, text string) *findings.Report {
	t.Helper()
	r, err := intake.Open(name, strings.NewReader(text), intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := findings.New()
	t.Cleanup(c.Close)
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(r, rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Summary(name, r.Summary()); err != nil {
		t.Fatal(err)
	}
	report, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// listed returns all findings, each as kind, line and hint.
func listed(t *testing.T, r *findings.Report) []string {
	t.Helper()
	list := []string{}
	for f, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %s %d: %s", f.Severity, f.Kind, f.Line, f.Hint))
	}
	return list
}

func csv(rows ...string) string {
	return "referId,rawTrackingNumber\n" + strings.Join(rows, "\n") + "\n"
}

func TestFindings(t *testing.T) {
	const label = "compare it with the label or the carrier's own list"
	for name, c := range map[string]struct {
		rows []string
		want []string
	}{
		"nothing":            {[]string{"A-1,1Z999AA10123456784", "A-2,RB123456785GB", "A-3,65561557219"}, nil},
		"check digit":        {[]string{"A-1,1Z999AA10123456785"}, []string{"warning check-digit 2: " + label}},
		"cyrillic":           {[]string{"A-1,1Z999АA10123456784"}, []string{"warning look-alike 2: write 1Z999AA10123456784"}},
		"full width":         {[]string{"A-1,１Z999AA10123456784"}, []string{"warning look-alike 2: write 1Z999AA10123456784"}},
		"arabic digits":      {[]string{"A-1,1Z999AA1٠123456784"}, []string{"warning look-alike 2: write 1Z999AA10123456784"}},
		"letter for digit":   {[]string{"A-1,94OO109699938860246573"}, []string{"warning look-alike 2: write 9400109699938860246573"}},
		"order in cyrillic":  {[]string{"Заказ-1,1Z999AA10123456784"}, nil},
		"order with one":     {[]string{"ОRD-1,1Z999AA10123456784"}, []string{"warning look-alike 2: write ORD-1"}},
		"entity":             {[]string{"A&amp;B-1,1Z999AA10123456784"}, []string{"warning markup 2: write A&B-1"}},
		"tag":                {[]string{"A-1,<b>1Z999AA10123456784</b>"}, []string{"warning markup 2: remove it"}},
		"url":                {[]string{"A-1,1Z999AA1%200123456784"}, []string{"warning markup 2: export the value itself"}},
		"quotes":             {[]string{"A-1,«1Z999AA10123456784»"}, []string{"warning quotes 2: write 1Z999AA10123456784"}},
		"two in a cell":      {[]string{"A-1,1Z999AA10123456784/1Z5R89390357567127"}, []string{"warning several-in-cell 2: give each number a row of its own, with the same referId"}},
		"air waybill":        {[]string{"A-1,020-12345678"}, nil},
		"one for two orders": {[]string{"A-1,65561557219", "A-2,65561557219"}, []string{"warning shared-number 3: check which order it belongs to"}},
		"spelling":           {[]string{"A-1,1Z999AA10123456784", "A-1,1Z 999AA10123456784"}, []string{"error white-space 3: fix the value, or pass --strip-spaces to remove the spaces"}},
		"case":               {[]string{"A-1,1Z999AA10123456784", "A-1,1z999aa10123456784"}, []string{"note lower-case 3: ", "warning spelling 3: write it in one way"}},
		"orders by case":     {[]string{"A-1,65561557219", "a 1,65561557210"}, []string{"warning spelling 3: write it in one way if it is one order", "note several-numbers 2: right for an order in several parcels"}},
		"orders by mark":     {[]string{"A-1,65561557219", "A_1,65561557210"}, []string{"warning spelling 3: write it in one way if it is one order", "note several-numbers 2: right for an order in several parcels"}},
		"other orders":       {[]string{"A-11,65561557219", "A1-1,65561557210"}, nil},
		"repeated":           {[]string{"A-1,65561557219", "A-1,65561557219"}, []string{"note repeated-row 3: it is sent once"}},
		"parcels":            {[]string{"A-1,65561557219", "A-1,65561557210"}, []string{"note several-numbers 2: right for an order in several parcels"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := listed(t, examine(t, "orders.csv", csv(c.rows...))), c.want
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// A form that only a length tells is the form of the carrier that the row names, or
// of none.
func TestCarrierOfTheRow(t *testing.T) {
	const wrong = "warning check-digit 2: the check digit is wrong for "
	for row, want := range map[string]string{
		"A-1,630002864925,jtexpress":           "",
		"A-1,630002864925,fedex-express":       wrong + "FedEx Express (12 digits)",
		"A-1,630002864925,dhl-paket":           wrong + "DHL Paket Identcode (12 digits)",
		"A-1,1234567890123450,canadapost":      wrong + "Canada Post 16 digits",
		"A-1,1Z999AA10123456785,jtexpress":     wrong + "UPS 1Z",
		"A-1,9400111899223197428491,jtexpress": "note check-digit 2: the check digit is wrong for USPS IMpb",
		"A-1,9400111899223197428491,usps":      wrong + "USPS IMpb",
	} {
		got := ""
		for f, err := range examine(t, "orders.csv", "referId,rawTrackingNumber,carrierCode\n"+row+"\n").All() {
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind == findings.CheckDigit {
				got += fmt.Sprintf("%s %s %d: %s", f.Severity, f.Kind, f.Line, f.Message)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

// Numbers that are shorter than nearly all others lost their zeros if the others
// have some, or if their check digit fits with them.
func TestLostZeros(t *testing.T) {
	for name, c := range map[string]struct{ usual, short, want string }{
		"others have some": {"09133131530%03d", "9133131530724", "if so, write 09133131530724"},
		"digit fits":       {"7393800054%06d", "73938000549297", "if so, write 0073938000549297"},
		"digit does not":   {"7393800054%06d", "73938000549296", ""},
		"another length":   {"09133131530%03d", "12345", ""},
		"own check digit":  {"000918810%03d", "3318810025", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []string
			for i := range 20 {
				rows = append(rows, fmt.Sprintf("A-%d,"+c.usual, i, i))
			}
			got := ""
			for f, err := range examine(t, "orders.csv", csv(append(rows, "B-1,"+c.short)...)).All() {
				if err != nil {
					t.Fatal(err)
				}
				if f.Kind == findings.LostZeros && f.Line == 22 {
					got = f.Hint
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Where most numbers of a length fail all rules they are of a carrier without one:
// they are not listed one by one. Others are.
func TestUnknownCarrier(t *testing.T) {
	var rows []string
	for i := range 60 {
		rows = append(rows, fmt.Sprintf("A-%d,7%08d%d", i, i*7919, 8))
	}
	rows = append(rows, "B-1,1Z999AA10123456785")
	report := examine(t, "orders.csv", csv(rows...))
	got := listed(t, report)
	if len(got) != 2 || !strings.HasPrefix(got[0], "warning check-digit 62") || !strings.HasPrefix(got[1], "note unknown-carrier") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if report.Count(findings.Warning) != 1 || len(report.Groups) != 2 {
		t.Errorf("groups: %+v", report.Groups)
	}
}

// No number of digits alone is taken for a UPS number with a wrong character.
func TestDigitsAreNoLookAlike(t *testing.T) {
	var rows []string
	for i := range 200 {
		rows = append(rows, fmt.Sprintf("A-%d,1%017d", i, 38024241427036167+i*1_000_003))
	}
	if got := listed(t, examine(t, "orders.csv", csv(rows...))); len(got) != 1 || !strings.HasPrefix(got[0], "note unknown-carrier") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// A group keeps the findings that come first in the file, and counts all.
func TestGroupKeepsTheFirst(t *testing.T) {
	var rows []string
	for i := range 3000 {
		rows = append(rows, fmt.Sprintf("A-%d,1Z999AA10123456784", i))
	}
	report := examine(t, "orders.csv", csv(rows...))
	g := report.Groups[0]
	if g.Kind != findings.SharedNumber || g.Count != 2999 || len(g.First) != findings.Shown || g.First[0].Line != 3 || g.First[19].Line != 22 {
		t.Errorf("%s: %d, first %d: %+v", g.Kind, g.Count, len(g.First), g.First[0])
	}
	if n := len(listed(t, report)); n != 2999 {
		t.Errorf("%d listed", n)
	}
}

// A group's first findings are those of the files in the order in which they were read, though rows are compared by
// number.
func TestGroupOfSeveralFiles(t *testing.T) {
	c := findings.New()
	t.Cleanup(c.Close)
	var want []string
	for _, file := range []string{"b.csv", "a.csv", "c.csv"} {
		for line := range 6 {
			number := fmt.Sprintf("1Z999AA1012345678%d", (line*5+1)%6)
			it := tracking.Item{ReferID: fmt.Sprintf("%s-%d", file, line), Number: number}
			if err := c.Add(nil, intake.Record{File: file, Line: line + 2, Item: it}); err != nil {
				t.Fatal(err)
			}
			if file != "b.csv" {
				want = append(want, fmt.Sprintf("%s:%d", file, line+2))
			}
		}
	}
	report, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(report.Groups, func(g findings.Group) bool { return g.Kind == findings.SharedNumber })
	var got []string
	for _, f := range report.Groups[i].First {
		got = append(got, fmt.Sprintf("%s:%d", f.File, f.Line))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// One odd value among many numbers of known forms is a warning, and so is a number of another carrier.
func TestOddAmongMany(t *testing.T) {
	rows := []string{"A-1,1Z999AA10123456784,ups", "A-2,RB123456785GB,", "A-3,986578788855,fedex", "A-4,1Z5R89390357567127,ups", "A-5,LH211265976AU,", "A-6,65561557219,gls"}
	for row, want := range map[string]string{
		"B-1,https://example.com/p/77,":                            "no-form",
		"B-1,https://example.com/?tracknum=1Z5R89390357567136,ups": "no-form",
		"B-1,me@example.com,":                                      "no-form",
		"B-1,by bike,":                                             "white-space",
		"B-1,handdelivered,":                                       "no-form",
		"B-1,1Z5R8939035756713,ups":                                "no-form",
		"B-1,contains1Z5R89390357567136,":                          "no-form",
		"B-1,1Z5R893903575671361Z12345E0205271688,":                "no-form",
		"B-1,QX-77-123-Y,":                                         "no-form",
		"B-1,QX-77-123-Y,hermes-nowhere":                           "",
		"B-1,RB123456785GB1,":                                      "no-form",
		"B-1,1Z5R89390357567136,fedex":                             "other-carrier",
		"B-1,1Z5R89390357567136,ups":                               "",
		"B-1,1Z5R89390357567136,100002":                            "",
		"B-1,9400111899223197428490,fedex-smartpost":               "",
		"B-1,C11031500001880,ontrac":                               "",
		"B-1,C11031500001880,usps":                                 "other-carrier",
		"B-1,32971514560102447849175802862014,fedex":               "",
		"B-1,32971514560102447849175803862014,fedex":               "check-digit",
		"B-1,JD0002254567899123,yodel":                             "",
	} {
		got := ""
		for _, g := range examine(t, "orders.csv", "referId,rawTrackingNumber,carrierCode\n"+strings.Join(append(rows, row), "\n")+"\n").Groups {
			if g.Severity != findings.Note {
				got += string(g.Kind)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
	got := listed(t, examine(t, "orders.csv", "Order,AWB,Courier\nA-1,1Z999AA10123456784,FedEx\nA-2,1Z5R89390357567127,UPS\n"))
	if len(got) == 0 || !strings.HasPrefix(got[0], "warning other-carrier 2: ") || strings.Contains(strings.Join(got, ""), "carrier 3") {
		t.Errorf("names of carriers: %q", got)
	}
}

// Rows of one tracking with two carrier codes are an error, wherever they stand and however many there are.
func TestContradictions(t *testing.T) {
	item := func(i int, carrier string) tracking.Item {
		return tracking.Item{ReferID: fmt.Sprint("R", i), Number: fmt.Sprint("N1000", i%9973), CarrierCode: carrier}
	}
	const many = 100_000 // more than are held in memory
	for name, tt := range map[string]struct {
		rows  int
		other map[int]tracking.Item // in place of the row there
		want  bool
	}{
		"all differ":                   {rows: 1000},
		"repeats":                      {rows: 1000, other: map[int]tracking.Item{500: item(3, "c0"), 900: item(500, "c2")}},
		"another number":               {rows: 1000, other: map[int]tracking.Item{500: {ReferID: "R3", Number: "N10004", CarrierCode: "x"}}},
		"a contradiction":              {rows: 1000, other: map[int]tracking.Item{500: item(3, "c1")}, want: true},
		"the last of few":              {rows: 2, other: map[int]tracking.Item{1: item(0, "")}, want: true},
		"behind other spellings":       {rows: 3, other: map[int]tracking.Item{0: {ReferID: "r 1", Number: "n-10001"}, 2: item(1, "x")}, want: true},
		"a contradiction far away":     {rows: many, other: map[int]tracking.Item{many - 1: item(0, "c1")}, want: true},
		"a contradiction in the midst": {rows: many, other: map[int]tracking.Item{50_000: item(49_000, "x")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := findings.New()
			defer c.Close()
			for i := range tt.rows {
				it, ok := tt.other[i]
				if !ok {
					it = item(i, fmt.Sprint("c", i%3))
				}
				if err := c.Add(nil, intake.Record{File: "in.csv", Line: i + 2, Item: it}); err != nil {
					t.Fatal(err)
				}
			}
			report, err := c.Finish()
			if err != nil || (len(report.Contradictory) > 0) != tt.want || report.Count(findings.Error) > 1 {
				t.Errorf("%v, %d errors; want %v, %v", err, report.Count(findings.Error), tt.want, err)
			}
		})
	}
}

// What can't be kept to be compared is an error, and no report.
func TestNoFolderForTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	c := findings.New()
	defer c.Close()
	for i := range 100_000 { // more than are held in memory
		if err := c.Add(nil, numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	if report, err := c.Finish(); report != nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v; want one error", report, err)
	}
}

func numbered(i int) intake.Record {
	it := tracking.Item{ReferID: fmt.Sprintf("ORD-%07d", i), Number: fmt.Sprintf("N1%09d", i)}
	return intake.Record{File: "in.csv", Line: i + 2, Item: it}
}

func BenchmarkCollector(b *testing.B) {
	const rows = 100_000
	for b.Loop() {
		c := findings.New()
		for i := range rows {
			if err := c.Add(nil, numbered(i)); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := c.Finish(); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
	b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
}
