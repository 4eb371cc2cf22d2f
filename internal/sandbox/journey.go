package sandbox

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the routes
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// city is a place on a route. Its offset is fixed: sandbox cities have no daylight saving time.
type city struct {
	name, state, zip string
	offset           time.Duration // of local time from UTC
}

type route struct {
	carrier string
	cities  []city
}

// routeTable has a city a line, with the carrier that passes it, and the hours of its time from UTC.
//
//go:embed routes.tsv
var routeTable string

// routes are the ways of all carriers. The first way of a carrier stands for it when a number tells it.
var routes = sync.OnceValue(func() []route {
	var all []route
	for line := range strings.Lines(routeTable) {
		stop := strings.Split(strings.TrimSpace(line), "\t")
		hours, _ := strconv.Atoi(stop[4])
		if len(all) == 0 || all[len(all)-1].carrier != stop[0] {
			all = append(all, route{carrier: stop[0]})
		}
		way := &all[len(all)-1]
		way.cities = append(way.cities, city{stop[1], stop[2], stop[3], time.Duration(hours) * time.Hour})
	}
	return all
})

// postalServices are carriers by the country that ends a number.
var postalServices = map[string]string{
	"GB": "royal-mail", "CA": "canada-post", "JP": "japan-post", "DE": "deutsche-post",
}

// carrierOf finds the carrier from the form of a number, as the service does; the first carrier by default.
func carrierOf(number string) string {
	digits := strings.Trim(number, "0123456789") == ""
	switch n := len(number); {
	case strings.HasPrefix(number, "1Z"):
		return "ups"
	case digits && n >= 20:
		return "usps"
	case digits && n == 12:
		return "fedex"
	case digits && n == 10:
		return "dhl"
	}
	return cmp.Or(postalServices[number[max(0, len(number)-2):]], "ups")
}

// status is a state of a shipment. All but delivered are the sandbox's own
// invention; their numbers from 9001 on and their events say so.
//
// Assumed: only status 1 and router.delivered are shown.
type status struct {
	number  int
	track   string
	summary string
}

var (
	registered     = status{9001, "sandbox_registered", "Registered (invented by the sandbox)"}
	transit        = status{9002, "sandbox_in_transit", "In transit (invented by the sandbox)"}
	outForDelivery = status{9003, "sandbox_out_for_delivery", "Out for delivery (invented by the sandbox)"}
	delivered      = status{1, "delivered", "Delivered"}
)

type step struct {
	at     time.Time // UTC
	text   string
	city   city
	status status
}

// journey is the history of a shipment, oldest step first. It depends only on seed, number and time of creation.
type journey struct {
	carrier string
	id      string // routerId
	made    time.Time
	steps   []step
}

// journey computes a parcel's journey. Three or more steps precede its creation, because a parcel is handed over
// before it is tracked; some have almost arrived.
func (s *Server) journey(p parcel) journey {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", s.config.Seed, p.item.ReferID, p.item.Number))
	seed := rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]))
	random := rand.New(seed) //nolint:gosec // not a secret
	j := journey{carrier: cmp.Or(p.item.CarrierCode, carrierOf(p.item.Number)), id: uuid(sum), made: p.at}
	all := routes()
	i := slices.IndexFunc(all, func(r route) bool { return strings.EqualFold(r.carrier, j.carrier) })
	if i < 0 {
		i = int(sum[16]) % len(all)
	}
	j.steps = stepsOf(random, all[i].cities, p.at)
	return j
}

func stepsOf(random *rand.Rand, cities []city, created time.Time) []step {
	steps := []step{
		{text: "Shipment information received", city: cities[0], status: registered},
		{text: "Picked up", city: cities[0], status: transit},
	}
	for i, c := range cities {
		if i > 0 {
			steps = append(steps, step{text: "Arrived at facility", city: c, status: transit})
		}
		if i < len(cities)-1 {
			steps = append(steps, step{text: "Departed facility", city: c, status: transit})
		}
	}
	last := cities[len(cities)-1]
	nearby := step{text: "Out for delivery", city: last, status: outForDelivery}
	steps = append(steps, nearby, step{text: "Delivered", city: last, status: delivered})
	past := 3 + random.IntN(len(steps)-3) // steps before the creation: never the last
	at := created.Truncate(time.Second)
	for i := past - 1; i >= 0; i-- {
		at = at.Add(-time.Duration(40+random.IntN(500)) * time.Minute)
		steps[i].at = at
	}
	at = created.Truncate(time.Second)
	for i := past; i < len(steps); i++ {
		at = at.Add(time.Duration(60+random.IntN(600)) * time.Minute)
		steps[i].at = at
	}
	return steps
}

func uuid(sum [32]byte) string {
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// done returns the steps up to now, at least one.
func (j journey) done(now time.Time) []step {
	n := slices.IndexFunc(j.steps, func(st step) bool { return st.at.After(now) })
	if n < 0 {
		n = len(j.steps)
	}
	return j.steps[:max(n, 1)]
}

// after returns the time of the step after n done ones; far in the future if there is none.
func (j journey) after(n int) time.Time {
	if n >= len(j.steps) {
		return j.made.AddDate(1000, 0, 0)
	}
	return j.steps[n].at
}

const millis = "2006-01-02T15:04:05.000Z"

// object is a tracking as included in deliveries.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func (j journey) object(it tracking.Item, now time.Time) map[string]any {
	done := j.done(now)
	st := done[len(done)-1].status
	return map[string]any{
		"referId":        it.ReferID,
		"carrierCode":    j.carrier,
		"trackingNumber": it.Number,
		"status":         st.number,
		"statusTrack":    st.track,
		"routerId":       j.id,
		"summary":        j.summary(it, done),
		"detail": map[string]any{
			"trackingNumber": it.Number, "statusSummary": st.summary, "trackingEvents": checkpoints(done),
		},
		"error": nil,
	}
}

func (j journey) summary(it tracking.Item, done []step) map[string]any {
	last := done[len(done)-1]
	updated := slices.MaxFunc([]time.Time{j.made, last.at}, time.Time.Compare)
	return map[string]any{
		"id":                   j.id,
		"trackingNumber":       it.Number,
		"status":               last.status.number,
		"statusLabel":          strings.ToUpper(last.status.track),
		"latestEvent":          last.text,
		"latestCheckpointTime": last.at.Format(millis),
		"transitTime":          int(last.at.Sub(done[0].at) / (24 * time.Hour)),
		"created":              j.made.Format(millis),
		"updated":              updated.Format(millis),
	}
}

func checkpoints(done []step) []map[string]any {
	cs := make([]map[string]any, 0, len(done))
	for _, st := range slices.Backward(done) {
		cs = append(cs, map[string]any{
			"eventType":      st.text,
			"eventCity":      st.city.name,
			"eventState":     st.city.state,
			"eventZIPCode":   st.city.zip,
			"eventTimestamp": st.at.Add(st.city.offset).Format("2006-01-02T15:04:05"),
			"GMTTimestamp":   st.at.Format("2006-01-02T15:04:05Z"),
		})
	}
	return cs
}
