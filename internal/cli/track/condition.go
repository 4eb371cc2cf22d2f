package track

import (
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
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

// Met reports whether every tracking of a view fulfils a condition that can be
// seen from it. A parcel that no answer tells of does not hold up waiting for
// the others to be processed, but no status is claimed of it.
func (c condition) Met(v app.View) bool {
	processed := 0
	for _, f := range v.Found {
		switch {
		case f.Phase == ledger.Processed && (c.status == "" || f.HasStatus(c.status)):
			processed++
		case f.Phase == app.Undecided && c.status == "":
		default:
			return false
		}
	}
	return processed > 0
}

// Processed is how many trackings of a view are.
func Processed(v app.View) int64 {
	n := int64(0)
	for _, f := range v.Found {
		if f.Phase == ledger.Processed {
			n++
		}
	}
	return n
}

// Changed reports whether something was told of a tracking that differs from
// what was told before. What only one of the two tells is no difference: an
// event and an answer need not have the same fields.
func Changed(was, now app.Found) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return (was.Phase != now.Phase && was.Phase != app.Undecided && now.Phase != app.Undecided) ||
		differ(was.Status, now.Status) || differ(was.StatusLabel, now.StatusLabel) || differ(was.StatusTrack, now.StatusTrack) ||
		differ(was.LatestEvent, now.LatestEvent) || differ(was.LatestTime, now.LatestTime)
}
