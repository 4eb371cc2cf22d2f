package config

import (
	"encoding/json"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func matchEntry(m tracking.Match) map[string]any {
	return map[string]any{"path": m.Path, "equals": literal(m.Equals)}
}

// AbsentEntry returns an entry of query.absent as it stands in a file.
func AbsentEntry(a tracking.Absent) map[string]any {
	all := map[string]any{}
	if a.Match != (tracking.Match{}) {
		all = matchEntry(a.Match)
	}
	if a.Status != 0 {
		all["status"] = a.Status
	}
	if a.Message != "" {
		all["message"] = a.Message
	}
	return all
}

// literal decodes a JSON literal; what is none stays text.
func literal(s string) any {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	return v
}
