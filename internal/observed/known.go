package observed

import (
	"slices"
	"strings"
)

// class is a set of the objects that the interface shows.
type class uint8

const (
	classEvent class = 1 << iota
	classTracking
	classSummary
	classDetail
	classCheckpoint
	classItem
	classMetadata
)

// shown is an object of the interface and its members.
type shown struct {
	class  class
	name   string // in shapes
	fields []string
}

// objects lists them all. A test compares it with the interface document.
//
// Interface: Resources and their fields.
// Interface: Events.
func objects() []shown {
	return []shown{
		{classEvent, "event", []string{"eventId", "event", "eventTime", "data"}},
		{classTracking, "tracking", []string{"trackingNumber", "status", "statusTrack", "routerId", "summary", "detail", "error"}},
		{classSummary, "summary", []string{"id", "trackingNumber", "status", "statusLabel", "latestEvent", "latestCheckpointTime", "transitTime", "created", "updated"}},
		{classDetail, "detail", []string{"trackingNumber", "statusSummary", "trackingEvents"}},
		{classCheckpoint, "checkpoint", []string{"eventType", "eventCity", "eventState", "eventZIPCode", "eventTimestamp", "GMTTimestamp"}},
		{classItem, "item", []string{"referId", "rawTrackingNumber", "metadata"}},
		{classMetadata, "metadata", []string{"carrierCode"}},
	}
}

// message is the one member around trackings that the interface shows.
//
// Interface: Endpoints, 3. Query a tracking.
const message = "message"

// Documented words.
//
// Interface: States and transitions.
const (
	deliveredNumber = "1"
	deliveredLabel  = "DELIVERED"
	deliveredTrack  = "delivered"
	deliveredEvent  = "router.delivered"
)

func documentedStatus(number, names string) bool {
	known := []string{deliveredLabel, deliveredTrack, ""}
	return (number == deliveredNumber || slices.Contains(known, number)) &&
		!slices.ContainsFunc(strings.Split(names, namesSeparator), func(n string) bool { return !slices.Contains(known, n) })
}

// documentedShape is the answer of a query that is shown.
//
// Interface: Endpoints, 3. Query a tracking.
const documentedShape = "{message: string}"

// has reports whether the interface shows a member of an object. In an answer, whose
// form it does not show, a tracking may have what a creation item has.
func (c class) has(name string, answer bool) bool {
	if answer {
		c |= classItem | classMetadata
		if name == message {
			return true
		}
	}
	return slices.ContainsFunc(objects(), func(o shown) bool { return c&o.class != 0 && slices.Contains(o.fields, name) })
}

func (c class) String() string {
	var names []string
	for _, o := range objects() {
		if c&o.class != 0 {
			names = append(names, o.name)
		}
	}
	return "<" + strings.Join(names, "+") + ">"
}

// part returns the class of a member of an object of class c, by the place that the
// interface gives it.
func (c class) part(name string) class {
	switch {
	case c&classEvent != 0 && name == "data":
		return classTracking
	case c&classTracking != 0 && name == "summary":
		return classSummary
	case c&classTracking != 0 && name == "detail":
		return classDetail
	case c&classDetail != 0 && name == "trackingEvents":
		return classCheckpoint
	case c&classItem != 0 && name == "metadata":
		return classMetadata
	}
	return 0
}

// classify returns the class of an object in an answer, by its name and its members.
//
// Assumed: the form of answers is not shown, so the objects of the interface are
// recognised wherever they stand.
func classify(name string, members []member) class {
	switch name {
	case "summary":
		return classSummary
	case "detail":
		return classDetail
	case "metadata":
		return classMetadata
	}
	var c class
	var number, refer bool
	for _, m := range members {
		switch m.name {
		case "statusTrack", "routerId":
			c |= classTracking
		case "summary", "detail":
			if m.raw[0] == '{' {
				c |= classTracking
			}
		case "statusLabel", "latestEvent", "latestCheckpointTime", "transitTime":
			c |= classSummary
		case "trackingEvents", "statusSummary":
			c |= classDetail
		case "eventType", "GMTTimestamp", "eventTimestamp":
			c |= classCheckpoint
		case "rawTrackingNumber":
			c |= classItem
		case "trackingNumber":
			number = true
		case "referId":
			refer = true
		}
	}
	switch {
	case c == 0 && number:
		return classTracking
	case c == 0 && refer:
		return classItem
	}
	return c
}

// standardHeaders are those that standards of HTTP define, in the spelling of
// canonical.
var standardHeaders = strings.Fields(`Accept Accept-Encoding Accept-Language Accept-Ranges Age Allow Alt-Svc Authorization Cache-Control
	Connection Content-Disposition Content-Encoding Content-Language Content-Length Content-Location Content-Range
	Content-Security-Policy Content-Type Cookie Date Etag Expect Expires Forwarded From Host If-Match If-Modified-Since If-None-Match
	Keep-Alive Last-Modified Link Location Origin Permissions-Policy Pragma Priority Proxy-Authenticate Proxy-Authorization Range
	Referer Referrer-Policy Retry-After Server Set-Cookie Strict-Transport-Security Te Trailer Transfer-Encoding Upgrade
	User-Agent Vary Via Warning Www-Authenticate X-Content-Type-Options X-Frame-Options`)
