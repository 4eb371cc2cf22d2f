package observed

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// The tables of the interface document and ours name the same members, and the same words.
func TestKnownIsWhatTheInterfaceShows(t *testing.T) {
	f, err := os.Open("../../docs/interface.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	documented := map[string][]string{}
	object, heading, status := "", "", ""
	headings := map[string]string{"### Tracking creation item": "item", "### Webhook delivery data object": "tracking", "## Events": "event"}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		cells := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "#"):
			object, heading = "", line
			for begin, name := range headings {
				if strings.HasPrefix(line, begin) {
					object = name
				}
			}
		case strings.HasPrefix(line, "The ") && strings.HasSuffix(line, " object:"):
			object = strings.Fields(line)[1]
		case len(cells) < 4 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "Field":
		case strings.HasPrefix(heading, "## States") && strings.TrimSpace(cells[1]) != "status":
			status += line
		case object != "":
			name := strings.TrimSpace(cells[1])
			if outer, inner, ok := strings.Cut(name, "."); ok {
				documented[outer] = append(documented[outer], inner)
				continue
			}
			documented[object] = append(documented[object], name)
		}
	}
	for name, fields := range documented {
		if !slices.Equal(fields, objects[name]) {
			t.Errorf("%s: the document has %q, the code %q", name, fields, objects[name])
		}
	}
	if len(documented) != len(objects) {
		t.Errorf("the document has %d objects, the code %d", len(documented), len(objects))
	}
	want := "| " + strings.Join(append(slices.Clone(statuses[:3]), deliveredEvent), " | ") + " |"
	if status != want {
		t.Errorf("statuses of the document %q; want %q", status, want)
	}
}

// An outline contains what the whole answer contains.
func FuzzOutline(f *testing.F) {
	for _, body := range []string{
		` { "data" : [ {"trackingNumber":"N","status":7,"error":null} , {"trackingNumber":"M","status":7,"error":null} ] }`,
		`{"st\u0061tus":7,"trackingNumber":1,"error":{"c\u006fde":"X","detail":1}}`, `[[0],0,0,[],[],{},{"a":[]}]`,
		`{"event":"router.x","event":2,"data":{"status":-1,"status":"a b","error":"x"}}`, `"x"`, `{"a\"b":1,"b":1}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		short, end := outline(nil, body, jsonscan.SkipSpace(body, 0), nil)
		if whole := jsonscan.Whole(body); !json.Valid(short) || end != whole.At+len(whole.Raw) {
			t.Fatalf("%q up to %d of %q", short, end, body)
		}
		for _, source := range []Source{Query, Delivery} {
			a, b := extractor{source, register{}, map[*Entry]bool{}}, extractor{source, register{}, map[*Entry]bool{}}
			a.answer(200, nil, jsonscan.Whole(body).Raw)
			b.answer(200, nil, short)
			if got, want := b.keys(), a.keys(); !maps.Equal(got, want) {
				t.Errorf("%s %q: %v\nof %q: %v", source, short, got, body, want)
			}
		}
	})
}

// keys returns what was found, and whether it is documented.
func (x *extractor) keys() map[Key]bool {
	all := map[Key]bool{}
	for e, documented := range x.found {
		all[e.Key] = documented
	}
	return all
}
