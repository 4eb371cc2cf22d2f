package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// plain returns a decoded value as JSON's own types: durations, sizes and
// secrets are text, as shown.
func plain(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return FormatDuration(v)
	case fmt.Stringer: // sizes and secrets
		return v.String()
	case tracking.Match:
		return AbsentEntry(tracking.Absent{Match: v})
	case tracking.Absent:
		return AbsentEntry(v)
	case webhook.Scheme:
		return SchemeSettings(v)
	case names:
		all := make(map[string]any, len(v))
		for name, item := range v {
			all[name] = plain(item)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = plain(item)
		}
		return all
	}
	return v
}

// text shows a decoded value on one line.
func text(v any) string {
	switch v := plain(v).(type) {
	case float64:
		return plainNumber(v)
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
		return compactJSON(v)
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			if _, isObject := item.(map[string]any); isObject {
				return compactJSON(v)
			}
			texts[i] = text(item)
		}
		return strings.Join(texts, ",")
	default:
		return fmt.Sprint(v)
	}
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// compactJSON writes what plain returns on one line, with <, > and & as they are.
func compactJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) //nolint:errchkjson // JSON's own types always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// AbsentEntry returns an entry of query.absent as it stands in a file.
func AbsentEntry(a tracking.Absent) map[string]any {
	all := map[string]any{}
	if a.Match != (tracking.Match{}) {
		var equals any = a.Match.Equals
		_ = json.Unmarshal([]byte(a.Match.Equals), &equals) // what is no JSON stays text
		all["path"], all["equals"] = a.Match.Path, equals
	}
	if a.Status != 0 {
		all["status"] = a.Status
	}
	if a.Message != "" {
		all["message"] = a.Message
	}
	return all
}
