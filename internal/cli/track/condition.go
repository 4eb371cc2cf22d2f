package track

import (
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
)

// condition says when waiting for a tracking is over. The zero condition is as
// soon as it is processed; at most one field is set.
type condition struct {
	status string // it has this status
	event  string // a verified event of this kind has come
	change bool   // what is known of it differs from what was known at first
}

func ParseCondition(s string) (condition, error) {
	status, byStatus := strings.CutPrefix(s, "status=")
	kind, byEvent := strings.CutPrefix(s, "event=")
	switch {
	case s == "processed":
		return condition{}, nil
	case s == "change":
		return condition{change: true}, nil
	case byStatus && status != "":
		return condition{status: status}, nil
	case byEvent && kind != "":
		return condition{event: kind}, nil
	}
	return condition{}, command.Usagef("use --for processed, --for status=X (a status number or name), --for event=X (a kind such as router.delivered) or --for change",
		"--for %q is not understood", s)
}

func (c condition) String() string {
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

// Met reports whether every tracking of a result fulfils a condition that can be
// seen from it. A parcel that no answer tells of does not hold up waiting for
// the others to be processed, but no status is claimed of it.
func (c condition) Met(res query.Result) bool {
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

// Processed is how many trackings of a result are.
func Processed(res query.Result) int64 {
	n := int64(0)
	for _, t := range res.Trackings {
		if t.Phase == ledger.Processed {
			n++
		}
	}
	return n
}

// Changed reports whether something was told of a tracking that differs from
// what was told before. What only one of the two tells is no difference: an
// event and an answer need not have the same fields.
func Changed(was, now query.Tracking) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return (was.Phase != now.Phase && was.Phase != query.Undecided && now.Phase != query.Undecided) ||
		differ(was.Status, now.Status) || differ(was.StatusLabel, now.StatusLabel) || differ(was.StatusTrack, now.StatusTrack) ||
		differ(was.LatestEvent, now.LatestEvent) || differ(was.LatestTime, now.LatestTime)
}
