package intake_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const item1 = `{"referId":"A1","rawTrackingNumber":"1Z1"}`

func TestItems(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want result
	}{
		{"array", "[\n" + item1 + ",\n {\"rawTrackingNumber\":\"1Z2\",\"referId\":\"A2\",\"metadata\":{\"carrierCode\":\"ups\"}}\n]\n", result{Good: []string{"2 A1|1Z1|", "3 A2|1Z2|ups"}}},
		{"object with data", "{\n\t\"data\" :\r\n[" + item1 + "]\n}\n", result{Good: []string{"3 A1|1Z1|"}}},
		{"lines", item1 + "\n\n" + item1 + "\r\n" + item1, result{Good: []string{"1 A1|1Z1|", "3 A1|1Z1|", "4 A1|1Z1|"}}},
		{"lines that end with CR", item1 + "\r\r" + item1 + "\r\n" + item1, result{Good: []string{"1 A1|1Z1|", "3 A1|1Z1|", "4 A1|1Z1|"}}},
		{"objects side by side", item1 + item1 + " " + item1, result{Good: []string{"1 A1|1Z1|", "1 A1|1Z1|", "1 A1|1Z1|"}}},
		{"one object over lines", "{\n\"referId\":\n\"A1\",\"rawTrackingNumber\":\"1Z1\"}", result{Good: []string{"1 A1|1Z1|"}}},
		{"requests one after the other", `{"data":[` + item1 + `]}` + "\n" + `{"data":[]}` + "\n" + `{"data":[` + item1 + `]}`, result{Good: []string{"1 A1|1Z1|", "3 A1|1Z1|"}}},
		{
			"carrier left out", `[{"referId":"A1","rawTrackingNumber":"1Z1","metadata":null},{"referId":"A2","rawTrackingNumber":"1Z2","metadata":{}},` +
				`{"referId":"A3","rawTrackingNumber":"1Z3","metadata":{"carrierCode":null}},{"referId":"A4","rawTrackingNumber":"1Z4","metadata":{"carrierCode":" "}}]`,
			result{Good: []string{"1 A1|1Z1|", "1 A2|1Z2|", "1 A3|1Z3|", "1 A4|1Z4|"}},
		},
		{"escapes", `{"refer\u0049d":"\u0041\/\"1","rawTrackingNumber":"\ud83d\ude00\\"}`, result{Good: []string{`1 A/"1|😀\|`}}},
		{"white space", `{"referId":" A1\u00a0","rawTrackingNumber":"\t1Z1"}`, result{Good: []string{"1 A1|1Z1|"}}},
		{"errors of a former import", `{"referId":"A1","rawTrackingNumber":"1Z1","waybillError":[1,{"a":"}"}]}`, result{Good: []string{"1 A1|1Z1|"}}},
		{"missing", `[{},{"referId":""},{"referId":"A","rawTrackingNumber":""}]`, result{Problems: []string{
			"1:2 referId: referId is missing", "1:2 rawTrackingNumber: rawTrackingNumber is missing",
			"1:16 referId: referId is empty", "1:5 rawTrackingNumber: rawTrackingNumber is missing",
			"1:55 rawTrackingNumber: rawTrackingNumber is empty",
		}}},
		{"types", "{\"referId\":1001,\n \"rawTrackingNumber\":null,\"metadata\":[]}\n{\"referId\":{},\"rawTrackingNumber\":true,\"metadata\":{\"carrierCode\":-7}}", result{Problems: []string{
			"1:12 referId: referId must be a string, not a number", "2:22 rawTrackingNumber: rawTrackingNumber must be a string, not null", "2:38 metadata: metadata must be an object, not an array",
			"3:12 referId: referId must be a string, not an object", "3:35 rawTrackingNumber: rawTrackingNumber must be a string, not true or false", "3:66 metadata.carrierCode: carrierCode must be a string, not a number",
		}}},
		{"unknown fields", "{\"referId\":\"A1\",\"rawTrackingNumber\":\"1Z1\",\n\"note\":{\"a\":[\"]\"]},\"carrierCode\":\"ups\",\"metadata\":{\"carrierCode\":\"ups\",\"lang\":\"x\"}}", result{Problems: []string{
			`2:1 note: unknown field "note"`, `2:20 carrierCode: unknown field "carrierCode"`, `2:72 metadata.lang: unknown field "metadata.lang"`,
		}}},
		{"names are exact", `{"referID":"A1","rawtrackingnumber":"1Z1"}`, result{Problems: []string{
			`1:2 referID: unknown field "referID"`, `1:17 rawtrackingnumber: unknown field "rawtrackingnumber"`,
			"1:1 referId: referId is missing", "1:1 rawTrackingNumber: rawTrackingNumber is missing",
		}}},
		{"twice", `{"referId":"A1","referId":"A2","rawTrackingNumber":"1Z1","metadata":{"carrierCode":"a","carrierCode":"b"},"metadata":{}}`, result{Problems: []string{
			"1:17 referId: referId appears twice in one object", "1:88 metadata.carrierCode: metadata.carrierCode appears twice in one object", "1:107 metadata: metadata appears twice in one object",
		}}},
		{"not objects", `[1,"a",null,[` + item1 + `],true]`, result{Problems: []string{
			"1:2 : an item must be an object, not a number", "1:4 : an item must be an object, not a string", "1:8 : an item must be an object, not null",
			"1:13 : an item must be an object, not an array", "1:58 : an item must be an object, not true or false",
		}}},
		{"half a character", `[{"referId":"\ud83d","rawTrackingNumber":"1Z1"},{"referId":"x\ude00","rawTrackingNumber":"1\ud83d\u0041"}]`, result{Problems: []string{
			"1:13 referId: referId contains an unpaired surrogate", "1:60 referId: referId contains an unpaired surrogate",
			"1:90 rawTrackingNumber: rawTrackingNumber contains an unpaired surrogate",
		}}},
		{"bytes that are not UTF-8", "[{\"referId\":\"A\xff\",\"rawTrackingNumber\":\"1Z1\"},\n{\"referId\":\"\\u0041\xc3\",\"rawTrackingNumber\":\"1Z1\"}]", result{Problems: []string{
			"1:13 referId: referId is not valid UTF-8", "2:12 referId: referId is not valid UTF-8",
		}}},
		{"controls", `{"referId":"A\u001b[2J","rawTrackingNumber":"1\u0000"}`, result{Problems: []string{
			"1:12 referId: control character U+001B in referId", "1:45 rawTrackingNumber: control character U+0000 in rawTrackingNumber",
		}}},
		{"damage", `{"referId":"1.2E+15","rawTrackingNumber":"#N/A"}`, result{Problems: []string{
			"1:12 referId: Excel rounded this number; its last digits are lost", "1:42 rawTrackingNumber: rawTrackingNumber is a spreadsheet error",
		}}},
		{"a list where an item should be", `[{"data":[` + item1 + `]}]`, result{Problems: []string{"1:3 data: data found where an item is expected"}}},
		{"characters count, not bytes", `{"referId":"ÄÖ","rawTrackingNumber":""}`, result{Problems: []string{"1:37 rawTrackingNumber: rawTrackingNumber is empty"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := readAll(t, "in.json", tt.text, intake.Options{})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("read otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func TestItemSyntax(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"comma at the end", "[\n" + item1 + ",\n]", "in:3:1: expected a value after the comma"},
		{"no comma", "[" + item1 + "\n " + item1 + "]", "in:2:2: expected a comma or ]"},
		{"commas between lines", item1 + ",\n" + item1, "in:1:43: comma between two objects"},
		{"cut in an array", "[" + item1, "in:1:44: unexpected end of file"},
		{"cut in an item", "[" + item1 + ",\n{\"referId\":", "in:2:1: the file ends inside the value that starts here"},
		{"cut in a string", "[" + item1 + ",\n\"abc", "in:2:1: the file ends inside the value that starts here"},
		{"cut after data", `{"data":[` + item1 + "]\n", "in:2:1: unexpected end of file"},
		{"line end in a string", "{\"referId\":\"A\n1\"}", "in:1:14: line end or control character inside a string"},
		{"no value", "[,]", "in:1:2: missing value"},
		{"single quotes", "[" + item1 + ",\n {'referId':1}]", "in:2:3: invalid JSON: invalid character '\\'' looking for beginning of object key string"},
		{"bare words", "{referId:1}", "in:1:2: invalid JSON: invalid character 'r' looking for beginning of object key string"},
		{"wrong bracket", `{"referId":"A1"]`, "in:1:16: invalid JSON: invalid character ']' after object key:value pair"},
		{"escape", `{"referId":"\x"}`, "in:1:14: invalid JSON: invalid character 'x' in string escape code"},
		{"foreign byte", "{\"referId\":\x1b}", "in:1:12: invalid JSON: invalid character '\\x1b' looking for beginning of value"},
		{"more fields", `{"data":[` + item1 + "],\n \"meta\x1b\": 1}", "in:2:7: line end or control character inside a string"},
		{"more fields beside data", `{"data":[` + item1 + "],\n \"meta\\u001b\": 1}", `in:2:2: unknown field "meta\x1b" next to data`},
		{"data twice", `{"data":[],"data":[]}`, `in:1:12: unknown field "data" next to data`},
		{"deep", strings.Repeat("[", 70), "in:1:66: brackets nested deeper than 64"},
		{"long item", `[{"referId":"` + strings.Repeat("x", intake.MaxRecord) + `"}]`, "in:1:2: the item is longer than 1 MiB"},
		{"text after", "[]\nx", "in:2:1: expected an object or an array"},
		{"not closed right", `{"data":[]]`, "in:1:11: expected a comma or }"},
		{"no name", `{"data":[],5:1}`, "in:1:12: expected the name of a field"},
	} {
		got, _ := readAll(t, "in", tt.text, intake.Options{Format: intake.JSON})
		if got.Err != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got.Err, tt.want)
		}
	}
}

func TestUnknownFieldHints(t *testing.T) {
	for _, tt := range []struct{ field, want string }{
		{"referID", "write referId;"},
		{"orderId", "write referId;"},
		{"tracking_number", "write rawTrackingNumber;"},
		{"carrier", "write metadata.carrierCode;"},
		{"Metadata", "write metadata;"},
		{"note", "remove it: "},
	} {
		in, err := intake.Open("in", strings.NewReader(`{"`+tt.field+`":1}`), intake.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := in.Next()
		if err != nil || !strings.HasPrefix(rec.Problems[0].Hint, tt.want) {
			t.Errorf("%s: %v, %v; want a hint that begins with %q", tt.field, rec.Problems, err, tt.want)
		}
	}
}

func TestManyUnknownFields(t *testing.T) {
	got, _ := readAll(t, "in", `{"referId":"A1","rawTrackingNumber":"1Z1"`+strings.Repeat(`,"x":1`, 25)+`}`, intake.Options{})
	if n := len(got.Problems); n != 11 || got.Problems[10] != "1:1 : 15 more unknown fields" {
		t.Errorf("%d problems, %v; want 10 and the number of the rest", n, got.Problems)
	}
}

func TestItemsStripSpaces(t *testing.T) {
	got, sum := readAll(t, "in", `{"referId":"A 1","rawTrackingNumber":"1Z 9\u00a09","metadata":{"carrierCode":"a b"}}`, intake.Options{StripSpaces: true, Rules: tracking.Rules{AcceptOdd: true}})
	if diff := cmp.Diff(result{
		Good:     []string{"1 A 1|1Z99|a b"},
		Problems: []string{"note 1:78 metadata.carrierCode: carrierCode looks like a carrier's name"},
	}, got); diff != "" {
		t.Errorf("read otherwise (-want +got):\n%s", diff)
	}
	if sum.Stripped != 1 {
		t.Errorf("stripped %d, want 1", sum.Stripped)
	}
}

// What list, show and runs rows print is read back.
func TestOwnOutputIsReadBack(t *testing.T) {
	for name, text := range map[string]string{
		"list.json":  `[{"referId":"A1","trackingNumber":"1Z1","carrierCode":"ups","state":"accepted","status":9002,"error":{"code":1},"more":[{}]}]`,
		"rows.jsonl": `{"file":"o.csv","line":2,"referId":"A1","rawTrackingNumber":"1Z1","carrierCode":"ups","state":"rejected","reason":""}` + "\n",
		"list.csv":   "REFERENCE,NUMBER,carrierCode,STATE,REASON\nA1,1Z1,ups,accepted,\n",
		"newer.csv":  "referId,trackingNumber,carrierCode,state\nA1,1Z1,ups,accepted\n",
	} {
		if got, _ := readAll(t, name, text, intake.Options{}); len(got.Good) != 1 || !strings.HasSuffix(got.Good[0], " A1|1Z1|ups") || len(got.Problems) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, text := range []string{
		`[{"referId":"A1","trackingNumber":"1Z1"}]`, `[{"referId":"A1","rawTrackingNumber":"1Z1","state":"x","trackingNumber":"1Z2"}]`,
		`[{"referId":"A1","state":"x","trackingNumber":null}]`, `[{"referId":"A1","rawTrackingNumber":"1Z1","state":7}]`,
	} {
		if got, _ := readAll(t, "in.json", text, intake.Options{}); len(got.Good) != 0 || len(got.Problems) == 0 {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
