package config

import "encoding/json"

// Match asks for one value in an answer of the service.
type Match struct {
	Path   string // RFC 6901 pointer; empty is the whole answer
	Equals string // JSON literal: `"ok"`, `true`, `200`, `null`
}

// Absent is one form that "no such tracking" may take. All that is given must hold.
//
// Assumed: the interface does not show what it looks like.
type Absent struct {
	Status  int    // HTTP status; 0 if not asked
	Message string // text of the answer's `message`; empty if not asked
	Match   Match  // zero if not asked
}

func (m Match) plain() map[string]any {
	return map[string]any{"path": m.Path, "equals": literal(m.Equals)}
}

func (a Absent) plain() map[string]any {
	all := map[string]any{}
	if a.Match != (Match{}) {
		all = a.Match.plain()
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
