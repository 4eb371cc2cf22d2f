package observed

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
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
