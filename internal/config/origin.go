package config

// Level is where a value came from. A higher level wins over a lower one.
type Level int

// The levels, lowest first.
const (
	FromDefault Level = iota
	FromUser          // top level of the user file
	FromProfile       // the chosen profile in the user file
	FromProject       // .waybill.yaml in the working folder
	FromEnv
	FromFlag
)

// Origin is the place that gave a value.
type Origin struct {
	Level   Level
	Name    string // --timeout or WAYBILL_TIMEOUT; empty for files and defaults
	File    string // absolute path; empty but for files
	Line    int    // 1-based; 0 if not in a file
	Profile string // the profile's name; empty outside profiles
}

// String gives the place in words: `flag --timeout`, `env WAYBILL_TIMEOUT`, a
// path, a path with `(profile NAME)`, or `default`.
func (o Origin) String() string {
	switch o.Level {
	case FromFlag:
		return "flag " + o.Name
	case FromEnv:
		return "env " + o.Name
	case FromProfile:
		return o.File + " (profile " + o.Profile + ")"
	case FromUser, FromProject:
		return o.File
	default:
		return "default"
	}
}
