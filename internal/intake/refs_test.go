package intake_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
)

// TestRefs holds which forms of REFs are read, and how.
func TestRefs(t *testing.T) {
	two := result{Good: []string{"2 A1|1Z1|", "3 A2|1Z2|"}}
	byMap := map[string]string{"referId": "Order No", "rawTrackingNumber": "Box"}
	for _, tt := range []struct {
		name, file, text string
		given            map[string]string
		want             result
	}{
		{"as create reads them", "", "referId,rawTrackingNumber,name\nA1,1Z1,Pat\nA2,1Z2,\n", nil, two},
		{"synonyms, tabs, CRLF", "", "AWB\tx\tOrder\r\n1Z1\t\tA1\r\n1Z2\ty\tA2\r\n", nil, two},
		{"named columns", "", "Box;Order No\n1Z1;A1\n1Z2;A2\n", byMap, two},
		{"one of the named columns", "", "x;Order No\n1Z1;A1\n", byMap, result{Good: []string{"2 A1||"}}},
		{"a list where columns are named", "", "A1\nA2\n", byMap, result{Good: []string{"1 A1", "2 A2"}}},
		{"our list where columns are named", "", "REFERENCE,NUMBER,STATE\n\"=\"\"0012\"\"\",\"=\"\"1E5\"\"\",accepted\n,1Z2,\n", byMap, result{Good: []string{"2 0012|1E5|", "3 |1Z2|"}}},
		{"our rows", "", "referId,rawTrackingNumber,carrierCode,state,reason,file,line\nA1,1Z1,ups,accepted,,a.csv,2\nA2,1Z2,,rejected,\"a, b\",a.csv,3\n", nil, two},
		{"referIds alone", "", "Order ID\n\n A1 \nA2\n", nil, result{Good: []string{"3 A1||", "4 A2||"}}},
		{"numbers alone", "", "\ufefftracking_number\n1Z1\n", nil, result{Good: []string{"2 |1Z1|"}}},
		{"a header without rows", "", "referId\n", nil, result{Err: "in: no data rows"}},
		{"a list", "", "A1\n\n  A2\t\r\nA-3\n\u00a0\n", nil, result{Good: []string{"1 A1", "3 A2", "4 A-3"}}},
		{"a list of one without line end", "", "A1", nil, result{Good: []string{"1 A1"}}},
		{"a list in quotes", "", "\"A,1\"\n\"=\"\"0012\"\"\"\n=\"0013\"\n\"A;\"\"2\"\n", nil, result{Good: []string{"1 A,1", "2 0012", "3 0013", "4 A;\"2"}}},
		{"a list with a mark", "", "\ufeffA1\nA2\n", nil, result{Good: []string{"1 A1", "2 A2"}}},
		{"nothing", "", " \n\r\n", nil, result{Err: "in: no data rows"}},
		{"no column", "", "Sendung,Betrag\nA1,2\n", nil, result{Err: `in:1: no column for referId or rawTrackingNumber; the header is: "Sendung", "Betrag"`}},
		{"no named column", "", "Sendung,Betrag\nA1,2\n", byMap, result{Err: `in:1: no column "Order No", which --map names for referId; the header is: "Sendung", "Betrag"`}},
		{"several columns", "", "Order,Ref\nA1,2\n", nil, result{Err: `in:1: 2 columns could be referId; the header is: "Order", "Ref"`}},
		{"odd values are asked for", "", "referId,AWB\nN/A,1.23E+15\n", nil, result{Good: []string{"2 N/A|1.23E+15|"}}},
		{"bad rows", "", "referId,AWB,x\nA1\n,,y\nA 2,1\u00013,\nA3,1,,2\n", nil, result{Problems: []string{
			"2:0 : the row has 1 cell, the header has 3; no cell for \"AWB\"",
			"3:0 : no referId and no tracking number", "3:1 referId: the line before has 1 cell, the header has 3: it may belong to this row",
			"4:2 AWB: control character U+0001 in rawTrackingNumber",
			"5:4 : the row has 4 cells, the header has 3",
		}}},
		{"bad lines", "", "A1\nA2,A3\nA4;A5\nA 6\n\"A\n7\"\nA\xff8\n\"A9\n", nil, result{Good: []string{"1 A1", "4 A 6"}, Problems: []string{
			"2:0 : several values in one line, and no header line names the columns",
			"3:0 : several values in one line, and no header line names the columns",
			"5:1 : control character U+000A in REF", "7:1 : REF is not valid UTF-8",
			"8:0 : quote not closed",
		}}},
		{"texts", "", "[\"A1\",\n \" A2\\u00a0\"]\n", nil, result{Good: []string{"1 A1", "2 A2"}}},
		{"texts under the name of a table", "refs.txt", `["A1"]`, nil, result{Good: []string{"1 A1"}}},
		{"objects", "", `{"referId":"A1","rawTrackingNumber":"1Z1","x":[{}],"metadata":7}` + "\n" + `{"trackingNumber":"1Z2","referId":null}` + "\n" + `{"referId":"A3"}`, nil, result{Good: []string{"1 A1|1Z1|", "2 |1Z2|", "3 A3||"}}},
		{"our answers", "", `[{"referId":"A1","trackingNumber":"1Z1","ref":"1Z1","raw":{"referId":"X"}},` + "\n" + `{"referId":"A2","trackingNumber":"","ref":"A2"}]`, nil, result{Good: []string{"1 A1|1Z1|", "2 A2"}}},
		{"data", "", `{"data":[{"referId":"A1"},"A2"]}`, nil, result{Good: []string{"1 A1||", "1 A2"}}},
		{"no texts", "", `[1,null,{},{"referId":7},"",["A1"],{"referId":"A","referId":"B"}]`, nil, result{Problems: []string{
			"1:2 : a REF must be a string or an object, not a number", "1:4 : a REF must be a string or an object, not null",
			"1:9 : no referId and no tracking number", "1:23 referId: referId must be a string, not a number",
			"1:26 : no referId and no tracking number", "1:29 : a REF must be a string or an object, not an array",
			"1:61 referId: referId has two different values",
		}}},
		{"cut off", "", `["A1","A`, nil, result{Good: []string{"1 A1"}, Err: "in:1:7: the file ends inside the value that starts here"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := readAll(t, "in"+tt.file, tt.text, intake.Options{Refs: true, Map: tt.given})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A list may begin with what is the name of a column, or of JSON, elsewhere.
func TestRefsAsAList(t *testing.T) {
	got, sum := readAll(t, "in", "order\n[\"A1\n{A2}\nA3,A4\n", intake.Options{Refs: true, Format: intake.List})
	want := result{Good: []string{"1 order", "3 {A2}"}, Problems: []string{
		"2:1 : quote inside a cell that is not quoted", "4:0 : several values in one line, and no header line names the columns",
	}}
	if diff := cmp.Diff(want, got); diff != "" || sum.Format != intake.List {
		t.Errorf("%s: %s", sum.Format, diff)
	}
	if _, err := intake.Open("in", strings.NewReader("x"), intake.Options{Format: intake.List}); err == nil {
		t.Error("items are read from a list")
	}
}

// A column that --map names and the header lacks is reported.
func TestMissingColumnOfRefs(t *testing.T) {
	_, sum := readAll(t, "in", "Order,x\nA1,2\n", intake.Options{Refs: true, Map: map[string]string{"rawTrackingNumber": "Box"}})
	if sum.ReferID != "Order" || sum.Number != "" || len(sum.Missing) != 1 || sum.Missing[0] != "Box" {
		t.Errorf("%+v", sum)
	}
}

// FuzzRefs holds that a list of REFs is refused, or each line of it is read as it
// is, and that no input makes an empty REF.
func FuzzRefs(f *testing.F) {
	seeds(f)
	f.Add(byte(1), "A1\n\"A,2\"\r\n=\"0013\"\n")
	f.Add(byte(0), `["A1",{"ref":"A2"},{"referId":null,"trackingNumber":"1Z1"}]`)
	f.Fuzz(func(t *testing.T, strip byte, text string) {
		o := intake.Options{Refs: true, StripSpaces: strip == 1}
		all, _, ok := records(text, o)
		if !ok {
			return
		}
		for _, rec := range all {
			if rec.Good() && rec.Ref == "" && rec.Item.ReferID == "" && rec.Item.Number == "" {
				t.Fatalf("line %d of %q is good and names nothing", rec.Line, text)
			}
			if rec.Good() && rec.Ref != "" && !strings.ContainsAny(rec.Ref, "\"=,;\t|[{") && !strings.HasPrefix(strings.ToLower(rec.Ref), "sep") {
				if again, _, ok := records("A0\n"+rec.Ref+"\n", o); !ok || len(again) != 2 || again[1].Ref != rec.Ref {
					t.Fatalf("%q of %q became %v", rec.Ref, text, again)
				}
			}
		}
	})
}
