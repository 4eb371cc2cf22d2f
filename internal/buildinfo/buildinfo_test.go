package buildinfo

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	recorded := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: hash},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	tests := []struct {
		name     string
		told     Info
		recorded *debug.BuildInfo
		want     Info
	}{
		{"nothing known", Info{}, nil, Info{Version: "dev"}},
		{"outside any version", Info{}, recorded("(devel)"), Info{Version: "dev"}},
		{"no version recorded", Info{}, recorded(""), Info{Version: "dev"}},
		{"by go install", Info{}, recorded("v1.4.0"), Info{Version: "1.4.0"}},
		{
			"from a changed tree",
			Info{},
			recorded("(devel)", vcs...),
			Info{Version: "dev", Commit: hash + "-dirty", Date: "2026-01-02T03:04:05Z"},
		},
		{
			"from a clean tree",
			Info{},
			recorded("(devel)", vcs[:2]...),
			Info{Version: "dev", Commit: hash, Date: "2026-01-02T03:04:05Z"},
		},
		{
			"changed, of which hash is not recorded",
			Info{},
			recorded("(devel)", vcs[2]),
			Info{Version: "dev"},
		},
		{
			"the linker wins",
			Info{Version: "v2.0.0-rc.1", Commit: "feed", Date: "2026-05-06T00:00:00Z"},
			recorded("v1.4.0", vcs...),
			Info{Version: "2.0.0-rc.1", Commit: "feed", Date: "2026-05-06T00:00:00Z"},
		},
		{
			"a told commit without a date takes no other's",
			Info{Commit: "feed"},
			recorded("(devel)", vcs...),
			Info{Version: "dev", Commit: "feed"},
		},
		{"a word that begins with v stays", Info{Version: "vanilla"}, nil, Info{Version: "vanilla"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Go, tt.want.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
			if diff := cmp.Diff(tt.want, merge(tt.told, tt.recorded)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUserAgentIsOneToken(t *testing.T) {
	got := UserAgent()
	if want := "waybill/" + Read().Version; got != want {
		t.Errorf("UserAgent() = %q, want %q", got, want)
	}
	if name, v, ok := strings.Cut(got, "/"); !ok || name != "waybill" || v == "" || strings.ContainsAny(got, " \t\r\n") {
		t.Errorf("UserAgent() = %q, want waybill/VERSION without spaces", got)
	}
}
