package observed

import (
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// maxMembers is how many members of an object a shape names: one with more is keyed
// by identifiers.
const maxMembers = 64

// shapeOf returns the names and types of an answer down to the objects that the
// interface shows: {data: [<tracking>], message: string}.
func shapeOf(raw []byte) string { return formOf("", raw, maxDepth, nil) }

// formOf returns the form of a value. literal returns what is shown of a scalar
// member in place of its type; nil for nothing.
func formOf(name string, raw []byte, depth int, literal func(member) string) string {
	switch raw[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	case '{', '[':
	default:
		return "number"
	}
	if depth == 0 {
		return "…"
	}
	if raw[0] == '[' {
		var forms []string
		for v := range jsonscan.Values(raw, 0) {
			if f := formOf("", v.Raw, depth-1, literal); !slices.Contains(forms, f) && len(forms) < maxNames {
				forms = append(forms, f)
			}
		}
		slices.Sort(forms)
		return "[" + strings.Join(forms, " | ") + "]"
	}
	members := membersOf(raw)
	if c := classify(name, members); c != 0 {
		return c.String()
	}
	forms := make([]string, 0, len(members))
	for _, m := range members {
		key := memberName(m.name)
		if len(members) > maxMembers {
			key = unnamed
		}
		form := ""
		if literal != nil {
			form = literal(m)
		}
		if form == "" {
			form = formOf(m.name, m.raw, depth-1, literal)
		}
		forms = append(forms, key+": "+form)
	}
	slices.Sort(forms)
	return "{" + strings.Join(slices.Compact(forms), ", ") + "}"
}

// errorForm returns the form of an error, with the words of its codes.
func errorForm(raw []byte) string {
	return formOf("", raw, 4, func(m member) string {
		switch m.name {
		case "code", "type", "errorCode", "reason":
			if m.raw[0] != '{' && m.raw[0] != '[' {
				return vocabulary(m.literal())
			}
		}
		return ""
	})
}
