package carriers_test

import (
	"bufio"
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/carriers"
)

// example is a line of a table in testdata: a number, its carrier, and where it is published.
type example struct{ number, carrier, source string }

func readExamples(t *testing.T, name string) []example {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []example
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 {
			t.Fatalf("%s: %q has %d fields", name, lines.Text(), len(fields))
		}
		list = append(list, example{fields[0], fields[1], fields[2]})
	}
	return list
}

func TestNoPublishedNumberIsWrong(t *testing.T) {
	list := readExamples(t, "valid.tsv")
	named := map[string]bool{}
	for _, e := range list {
		r := carriers.Read(e.number)
		if r.Wrong() {
			t.Errorf("%s of %s (%s) fails %v", e.number, e.carrier, e.source, r.Failed)
		}
		named[e.carrier] = true
	}
	if len(list) < 150 || len(named) < 25 {
		t.Errorf("%d numbers of %d carriers; want 150 of 25", len(list), len(named))
	}
}

func TestWrongNumbersAreNamed(t *testing.T) {
	list := readExamples(t, "invalid.tsv")
	missed := 0
	for _, e := range list {
		if r := carriers.Read(e.number); !r.Wrong() {
			missed++
			t.Logf("%s of %s (%s) is not named: %v", e.number, e.carrier, e.source, r.Form)
		}
	}
	if len(list) < 60 || missed*20 > len(list) {
		t.Errorf("%d of %d not named; want at most 5 %% of 60 or more", missed, len(list))
	}
}

func TestReadNamesTheForm(t *testing.T) {
	for number, want := range map[string]string{
		"1Z999AA10123456784":                 "UPS 1Z",
		"1z 999 aa1 01 2345 6784":            "UPS 1Z",
		"RB123456785GB":                      "Royal Mail, Parcelforce S10",
		"RB123456785XK":                      "postal service of XK S10",
		"RB123456785TV":                      "postal service of TV S10",
		"986578788855":                       "FedEx Express (12 digits)",
		"364123734778":                       "GLS 12 digits",
		"1234-5678-9013":                     "Yamato, Sagawa, Japan Post 12 digits",
		"00340433836442636597":               "DHL and others NVE (00 and 18 digits)",
		"TBA502887274000":                    "Amazon TBA",
		"65561557219":                        "several carriers 11 digits (GLS, DHL, Blue Dart, Aramex)",
		"01015026003653C":                    "DPD 14 digits and check character",
		"4201002334249200190132607600833457": "USPS IMpb with 420 and ZIP code",
	} {
		if r := carriers.Read(number); r.Form.String() != want || r.Wrong() {
			t.Errorf("%s: %v, wrong %v; want %s", number, r.Form, r.Wrong(), want)
		}
	}
	for _, number := range []string{"", "ORD-1001", "12345", "Ω1234567890", "ABCDEFGHIJ", "1Z", "RB12345678"} {
		if r := carriers.Read(number); r.Known() || r.Wrong() {
			t.Errorf("%q: %v; want no form", number, r.Form)
		}
	}
}

func TestCorrectedReplacesWhatIsLikelyWrong(t *testing.T) {
	for number, want := range map[string]string{
		"1Z999AA1O123456784":     "1Z999AA10123456784",
		"IZ999AA10123456784":     "1Z999AA10123456784",
		"RBI23456785GB":          "RB123456785GB",
		"94OO109699938860246573": "9400109699938860246573",
		"1Z999AA10123456784":     "",
		"ORDER-O1":               "",
		"2Z5R89390357567127":     "1Z5R89390357567127",
		"1A5R89390357567127":     "1Z5R89390357567127",
		"2Z5R89390357567128":     "",
		"125R89390357567127":     "1Z5R89390357567127",
		"138024241427036167":     "",
		"128024241427036167":     "",
		"135R89390357567127":     "",
		"CO1031500001879":        "",
		"RBI23456785GB ":         "RB123456785GB",
		"RB1234S6785GB":          "RB123456785GB",
		"RB1234S6785IL":          "RB123456785IL", // letters of the country stay
		"RBI23456785LT":          "RB123456785LT",
		"SSI23456785NO":          "SS123456785NO",
		"RB1234S6786GB":          "",
		"986S78788855":           "986578788855",
		"98657878885S":           "986578788855",
		"S86578788855":           "", // it may begin with a letter
		"1Z5R8939O357S67127":     "1Z5R89390357567127",
	} {
		got, ok := carriers.Corrected(number)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q; want %q", number, got, want)
		}
	}
}

// Every form has a carrier or is S10, and a source.
func TestFormsAreWhole(t *testing.T) {
	n, checked := 0, 0
	for _, f := range carriers.Forms() {
		if f.Name == "" || f.Source == "" {
			t.Errorf("%v has no name or no source", f)
		}
		n++
		if f.Checked {
			checked++
		}
	}
	if n < 50 || checked < 25 {
		t.Errorf("%d forms, %d of them with a rule", n, checked)
	}
}

// A rule that is mistyped in the table would leave its form without one.
func TestTableOfForms(t *testing.T) {
	for line := range strings.Lines(carriers.FormTable) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 8 {
			t.Fatalf("%d columns: %s", len(columns), line)
		}
		if rule := columns[3]; rule != "" && carriers.Rules[rule] == nil {
			t.Errorf("no rule is called %q: %s", rule, line)
		}
		if _, err := strconv.Atoi(cmp.Or(columns[4], "0")); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if kind := columns[6]; kind != "" && kind != "shared" && kind != "loose" {
			t.Errorf("a form can't be %q: %s", kind, line)
		}
	}
}

// The page about trackings names the carriers whose check digits are checked.
func TestPageNamesCarriersWithCheckDigits(t *testing.T) {
	page, err := os.ReadFile("../../docs/trackings.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range carriers.ByCarrier(func(f carriers.Form) bool { return f.Checked }) {
		names = append(names, row[0])
	}
	want := "Check digits are checked for " + strings.Join(names, ", ") + ";"
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/trackings.md does not say %q", want)
	}
}

// Whatever a cell holds, its form is read without a fault.
func FuzzRead(f *testing.F) {
	for _, number := range []string{"1Z999AA10123456784", "RB123456785GB", "4201002334249200190132607600833457", "Ω1234567890\xff", "01015026003653c", "-"} {
		f.Add(number)
	}
	f.Fuzz(func(t *testing.T, number string) {
		r := carriers.Read(number)
		if r.Wrong() && (!r.Known() || !r.Form.Checked) {
			t.Errorf("%q is wrong for %v", number, r.Form)
		}
		if fixed, ok := carriers.Corrected(number); ok && carriers.Read(fixed).Wrong() {
			t.Errorf("%q becomes %q, which is wrong", number, fixed)
		}
	})
}
