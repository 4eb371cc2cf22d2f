package observed

import (
	"slices"
	"strings"
)

type object struct {
	name   string
	fields []string
}

// objects lists them all. A test compares it with the interface document.
//
// Interface: Resources and their fields.
// Interface: Events.
var objects = []object{
	{"event", []string{"eventId", "event", "eventTime", "data"}},
	{"tracking", []string{"trackingNumber", "status", "statusTrack", "routerId", "summary", "detail", "error"}},
	{"summary", []string{"id", "trackingNumber", "status", "statusLabel", "latestEvent", "latestCheckpointTime", "transitTime", "created", "updated"}},
	{"detail", []string{"trackingNumber", "statusSummary", "trackingEvents"}},
	{"checkpoint", []string{"eventType", "eventCity", "eventState", "eventZIPCode", "eventTimestamp", "GMTTimestamp"}},
	{"item", []string{"referId", "rawTrackingNumber", "metadata"}},
	{"metadata", []string{"carrierCode"}},
}

// statuses are the documented ones, as entries have them, and the kind of event that they came with.
//
// Interface: States and transitions.
var (
	statuses       = []string{"1", "DELIVERED", "delivered", "1 DELIVERED", "1 delivered"}
	deliveredEvent = "router.delivered"
)

// shows reports whether the interface shows a member of an object.
func shows(name, member string) bool {
	return slices.ContainsFunc(objects, func(o object) bool { return o.name == name && slices.Contains(o.fields, member) })
}

// showsInAnswer is shows for an answer, whose form the interface does not show but for
// the member message: a tracking may have there what its parts and a creation item have.
//
// Interface: Endpoints, 3. Query a tracking.
func showsInAnswer(name, member string) bool {
	if member == "message" || shows(name, member) {
		return true
	}
	return name == "tracking" && slices.ContainsFunc([]string{"summary", "detail", "item", "metadata"}, func(of string) bool { return shows(of, member) })
}

// part returns which object a member of an object is, empty for none.
func part(of, member string) string {
	switch member {
	case "summary", "detail", "metadata":
		return member
	case "trackingEvents":
		return "checkpoint"
	case "data":
		if of == "event" {
			return "tracking"
		}
	}
	return ""
}

// isTracking reports whether an object of an answer is a tracking.
//
// Assumed: the form of answers is not shown, so trackings are recognised by their
// members wherever they stand.
func isTracking(members []member) bool {
	return slices.ContainsFunc(members, func(m member) bool {
		switch m.name {
		case "trackingNumber", "rawTrackingNumber", "referId", "routerId", "statusTrack", "statusLabel", "summary", "detail", "trackingEvents":
			return true
		}
		return false
	})
}

// standardHeaders are those that standards of HTTP define, in their canonical spelling.
var standardHeaders = strings.Fields(`Accept Accept-Encoding Accept-Language Accept-Ranges Age Allow Alt-Svc Authorization Cache-Control
	Connection Content-Disposition Content-Encoding Content-Language Content-Length Content-Location Content-Range
	Content-Security-Policy Content-Type Cookie Date Etag Expect Expires Forwarded From Host If-Match If-Modified-Since If-None-Match
	Keep-Alive Last-Modified Link Location Origin Permissions-Policy Pragma Priority Proxy-Authenticate Proxy-Authorization Range
	Referer Referrer-Policy Retry-After Server Set-Cookie Strict-Transport-Security Te Trailer Transfer-Encoding Upgrade
	User-Agent Vary Via Warning Www-Authenticate X-Content-Type-Options X-Frame-Options`)
