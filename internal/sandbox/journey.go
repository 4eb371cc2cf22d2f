package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// city is a place that shipments pass. Its offset is fixed: sandbox cities know no summer time.
type city struct {
	name, state, zip string
	offset           time.Duration // of local time from UTC
}

type route struct {
	carrier string
	cities  []city
}

// routes returns the ways of all carriers. The first way of a carrier stands for it when a number tells it.
func routes() []route {
	const h = time.Hour
	var (
		louisville = city{"Louisville", "KY", "40213", -5 * h}
		chicago    = city{"Chicago", "IL", "60638", -6 * h}
		denver     = city{"Denver", "CO", "80239", -7 * h}
		seattle    = city{"Seattle", "WA", "98108", -8 * h}
		memphis    = city{"Memphis", "TN", "38118", -6 * h}
		newark     = city{"Newark", "NJ", "07114", -5 * h}
		miami      = city{"Miami", "FL", "33122", -5 * h}
		leipzig    = city{"Leipzig", "SN", "04435", 1 * h}
		bonn       = city{"Bonn", "NW", "53113", 1 * h}
		london     = city{"London", "ENG", "TW6 2GW", 0}
		leeds      = city{"Leeds", "ENG", "LS10 1AB", 0}
		glasgow    = city{"Glasgow", "SCT", "G2 8DN", 0}
		toronto    = city{"Toronto", "ON", "L5T 2T7", -5 * h}
		calgary    = city{"Calgary", "AB", "T2E 6W5", -7 * h}
		tokyo      = city{"Tokyo", "13", "144-0041", 9 * h}
		osaka      = city{"Osaka", "27", "549-0001", 9 * h}
		hamburg    = city{"Hamburg", "HH", "20539", 1 * h}
		munich     = city{"Munich", "BY", "80939", 1 * h}
	)
	return []route{
		{"ups", []city{louisville, chicago, denver, seattle}},
		{"usps", []city{newark, memphis, denver, seattle}},
		{"fedex", []city{memphis, newark, miami}},
		{"dhl", []city{leipzig, london, newark, chicago}},
		{"royal-mail", []city{london, leeds, glasgow}},
		{"canada-post", []city{toronto, chicago, calgary}},
		{"japan-post", []city{tokyo, osaka, seattle}},
		{"deutsche-post", []city{bonn, hamburg, munich}},
	}
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
	case strings.HasSuffix(number, "GB"):
		return "royal-mail"
	case strings.HasSuffix(number, "CA"):
		return "canada-post"
	case strings.HasSuffix(number, "JP"):
		return "japan-post"
	case strings.HasSuffix(number, "DE"):
		return "deutsche-post"
	}
	return "ups"
}

// status is a state of a shipment. All but delivered are the sandbox's own
// invention; their numbers from 9001 on and their events say so.
//
// Assumed: only status 1 and router.delivered are shown.
type status struct {
	number       int
	label, track string
	event        string
	summary      string
}

func statuses() (registered, transit, delivery, delivered status) {
	return status{9001, "SANDBOX_REGISTERED", "sandbox_registered", "router.sandbox_registered", "Registered (invented by the sandbox)"},
		status{9002, "SANDBOX_IN_TRANSIT", "sandbox_in_transit", "router.sandbox_in_transit", "In transit (invented by the sandbox)"},
		status{9003, "SANDBOX_OUT_FOR_DELIVERY", "sandbox_out_for_delivery", "router.sandbox_out_for_delivery", "Out for delivery (invented by the sandbox)"},
		status{1, "DELIVERED", "delivered", "router.delivered", "Delivered"}
}

type step struct {
	at     time.Time // UTC
	text   string
	city   city
	status status
}

// journey is what happens to a shipment, oldest step first, by seed, number and time of creation alone.
type journey struct {
	carrier string
	id      string // routerId
	made    time.Time
	steps   []step
}

// journey works out a parcel's journey. Three steps lie before its creation,
// for a parcel is handed over before it is tracked; some are nearly there.
func (s *Server) journey(p parcel) journey {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", s.config.Seed, p.item.ReferID, p.item.Number))
	random := rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]))) //nolint:gosec // not a secret
	j := journey{carrier: p.item.CarrierCode, id: uuid(sum), made: p.at}
	if j.carrier == "" {
		j.carrier = carrierOf(p.item.Number)
	}
	all := routes()
	i := slices.IndexFunc(all, func(r route) bool { return strings.EqualFold(r.carrier, j.carrier) })
	if i < 0 {
		i = int(sum[16]) % len(all)
	}
	j.steps = stepsOf(random, all[i].cities, p.at)
	return j
}

func stepsOf(random *rand.Rand, cities []city, created time.Time) []step {
	registered, transit, delivery, delivered := statuses()
	steps := []step{{text: "Shipment information received", city: cities[0], status: registered}}
	steps = append(steps, step{text: "Picked up", city: cities[0], status: transit})
	for i, c := range cities {
		if i > 0 {
			steps = append(steps, step{text: "Arrived at facility", city: c, status: transit})
		}
		if i < len(cities)-1 {
			steps = append(steps, step{text: "Departed facility", city: c, status: transit})
		}
	}
	last := cities[len(cities)-1]
	steps = append(steps, step{text: "Out for delivery", city: last, status: delivery}, step{text: "Delivered", city: last, status: delivered})
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

// after returns when the step that follows n done ones happens; far away if there is none.
func (j journey) after(n int) time.Time {
	if n >= len(j.steps) {
		return j.made.AddDate(1000, 0, 0)
	}
	return j.steps[n].at
}

const millis = "2006-01-02T15:04:05.000Z"

// object is a tracking as deliveries carry it.
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
		"detail":         map[string]any{"trackingNumber": it.Number, "statusSummary": st.summary, "trackingEvents": checkpoints(done)},
		"error":          nil,
	}
}

func (j journey) summary(it tracking.Item, done []step) map[string]any {
	last := done[len(done)-1]
	updated := j.made
	if last.at.After(updated) {
		updated = last.at
	}
	return map[string]any{
		"id":                   j.id,
		"trackingNumber":       it.Number,
		"status":               last.status.number,
		"statusLabel":          last.status.label,
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
