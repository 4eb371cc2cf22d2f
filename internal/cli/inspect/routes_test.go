package inspect

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/waybill-cli/waybill/internal/inspect"
)

// Every route is in the document, and no other is.
func TestEveryRouteIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../../../docs/inspector.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("`([A-Z]+ "+inspect.APIPrefix+"/[^ `?]*)[^ `]*`").FindAllSubmatch(document, -1) {
		documented = append(documented, string(m[1]))
	}
	known := []string{"GET " + inspect.APIPrefix + "/session", "GET " + inspect.APIPrefix + "/stream"}
	for _, r := range (&Page{}).routes() {
		known = append(known, r.Method+" "+inspect.APIPrefix+r.Pattern)
	}
	slices.Sort(known)
	slices.Sort(documented)
	for _, route := range known {
		if !slices.Contains(documented, route) {
			t.Errorf("docs/inspector.md does not have `%s`", route)
		}
	}
	for _, route := range documented {
		if !slices.Contains(known, route) {
			t.Errorf("docs/inspector.md has `%s`, and there is no such route", route)
		}
	}
}
