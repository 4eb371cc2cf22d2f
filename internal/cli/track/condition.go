package track

import (
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
)

// Condition is when waiting for a tracking ends. The zero Condition is as
// soon as it is processed; at most one field is set.
type Condition struct {
	status string // it has this status
	event  string // a verified event of this kind has come
	change bool   // what is known of it differs from what was known at first
}

// parseCondition parses the value of --for.
func parseCondition(s string) (Condition, error) {
	status, byStatus := strings.CutPrefix(s, "status=")
	kind, byEvent := strings.CutPrefix(s, "event=")
	switch {
	case s == "processed":
		return Condition{}, nil
	case s == "change":
		return Condition{change: true}, nil
	case byStatus && status != "":
		return Condition{status: status}, nil
	case byEvent && kind != "":
		return Condition{event: kind}, nil
	}
	return Condition{}, command.Usagef("use --for processed, --for status=X (a status number or name), --for event=X (a kind such as router.delivered) or --for change",
		"--for %q is not understood", s)
}

func (c Condition) String() string {
	switch {
	case c.status != "":
		return "status=" + c.status
	case c.event != "":
		return "event=" + c.event
	case c.change:
		return "change"
	}
	return "processed"
}

// Met reports whether every tracking of a result meets a condition on its state. A
// parcel that no answer has does not keep the others from being processed; it has
// no status.
func (c Condition) Met(res query.Result) bool {
	processed := 0
	for _, t := range res.Trackings {
		switch {
		case t.Phase == ledger.Processed && (c.status == "" || t.HasStatus(c.status)):
			processed++
		case t.Phase == query.Undecided && c.status == "":
		default:
			return false
		}
	}
	return processed > 0
}

// Processed returns how many trackings of a result are.
func Processed(res query.Result) int64 {
	n := int64(0)
	for _, t := range res.Trackings {
		if t.Phase == ledger.Processed {
			n++
		}
	}
	return n
}

// changed reports whether a field differs between two states of a tracking. A field
// that only one of them has is no difference: events and answers have different
// ones.
func changed(was, now query.Tracking) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return (was.Phase != now.Phase && was.Phase != query.Undecided && now.Phase != query.Undecided) ||
		differ(was.Status, now.Status) || differ(was.StatusLabel, now.StatusLabel) || differ(was.StatusTrack, now.StatusTrack) ||
		differ(was.LatestEvent, now.LatestEvent) || differ(was.LatestTime, now.LatestTime)
}
