// Package buildinfo identifies the running build of waybill. It needs no I/O: all data was put into the binary by its
// builder.
package buildinfo

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Set by the linker: -ldflags "-X github.com/waybill-cli/waybill/internal/buildinfo.version=…".
// Nothing in the program assigns them.
var (
	version string // without a leading v; empty if the linker did not set it
	commit  string // full hash
	date    string // RFC 3339, UTC: of the commit, so that builds are reproducible
)

// Unreleased is the version of a build without a version.
const Unreleased = "dev"

// Info says what a binary was built from and for.
type Info struct {
	Version  string `json:"version"`          // such as 1.4.0, without a leading v; [Unreleased] if not known
	Commit   string `json:"commit,omitempty"` // full hash, with "-dirty" if the tree had changes; empty if not known
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339 UTC; empty if not known
	Go       string `json:"go"`               // the toolchain, such as go1.26.0
	Platform string `json:"platform"`         // GOOS/GOARCH
}

// Read returns the data that the linker or the go command put into the binary. It is safe for concurrent use.
func Read() Info {
	recorded, _ := debug.ReadBuildInfo()
	return merge(Info{Version: version, Commit: commit, Date: date}, recorded)
}

// UserAgent returns the program's name in HTTP requests: "waybill/VERSION".
func UserAgent() string { return "waybill/" + Read().Version }

// merge fills values that the linker did not set from the go command's record, which is nil without modules.
func merge(info Info, recorded *debug.BuildInfo) Info {
	info.Go, info.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	if recorded != nil {
		fill(&info, recorded)
	}
	info.Version = release(info.Version)
	return info
}

// fill sets the empty fields of info. Commit and date belong together: no hash is shown with another's time.
func fill(info *Info, recorded *debug.BuildInfo) {
	info.Version = cmp.Or(info.Version, recorded.Main.Version)
	if info.Commit != "" {
		return
	}
	dirty := false
	for _, s := range recorded.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.time":
			info.Date = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && info.Commit != "" {
		info.Commit += "-dirty"
	}
}

// release returns v without a leading v, or [Unreleased] for a build without a version.
func release(v string) string {
	if v == "" || v == "(devel)" {
		return Unreleased
	}
	if len(v) > 1 && v[0] == 'v' && v[1] >= '0' && v[1] <= '9' {
		return v[1:]
	}
	return v
}
