package buildinfo

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSBOM(t *testing.T) {
	info := Info{Version: "1.4.0", Commit: "feed", Date: "2026-05-06T00:00:00Z", Go: "go1.26.8", Platform: "linux/amd64"}
	got, err := sbom(info, &debug.BuildInfo{
		Main: debug.Module{Path: "example.org/waybill", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v2.0.0+incompatible", Sum: "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE="},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v1.0.1"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := SBOM{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: Metadata{Timestamp: "2026-05-06T00:00:00Z", Component: Component{
			Type: "application", Ref: "pkg:golang/example.org/waybill@1.4.0", Name: "example.org/waybill", Version: "1.4.0",
			PURL: "pkg:golang/example.org/waybill@1.4.0", Properties: []Property{{"waybill:commit", "feed"}, {"waybill:platform", "linux/amd64"}},
		}},
		Components: []Component{
			{Type: "library", Ref: "pkg:golang/std@1.26.8", Name: "std", Version: "1.26.8", PURL: "pkg:golang/std@1.26.8"},
			{
				Type: "library", Ref: "pkg:golang/example.org/a@v2.0.0%2Bincompatible", Name: "example.org/a", Version: "v2.0.0+incompatible",
				PURL:   "pkg:golang/example.org/a@v2.0.0%2Bincompatible",
				Hashes: []Hash{{"SHA-256", "0000000000000000000000000000000000000000000000000000000000000001"}},
			},
			{Type: "library", Ref: "pkg:golang/example.org/c@v1.0.1", Name: "example.org/c", Version: "v1.0.1", PURL: "pkg:golang/example.org/c@v1.0.1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSBOMOfADamagedRecord(t *testing.T) {
	for _, sum := range []string{"h1:", "h2:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=", "h1:AAAA", "h1:?"} {
		if _, err := sbom(Info{}, &debug.BuildInfo{Deps: []*debug.Module{{Path: "a", Sum: sum}}}); err == nil {
			t.Errorf("%s is taken for a checksum", sum)
		}
	}
}
