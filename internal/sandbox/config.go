// Package sandbox is a miniature tracking service: stateful, on loopback, with settings for everything that the
// interface does not show. It serves `waybill sandbox`, the demo and the tests.
package sandbox

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Config configures a sandbox. The zero value is usable: any key, no delay, nested answers.
type Config struct {
	Key        string        // the only accepted key; empty accepts any non-empty key
	Processing time.Duration // how long a v2 tracking is Processing
	Latency    time.Duration // before each answer
	Seed       uint64        // determines timelines, faults and identifiers

	Shape       func(found any) any // the answer about one tracking, or a list of them; nil for a message and data
	CreateShape string              // empty, items, or a message
	Absent      string              // message, empty, or a 404
	NumberParam string              // query parameter for a tracking number; "ignored": there is none

	Reject  string // regular expression over referId and number; empty rejects nothing
	MaxBody int64  // bytes of a create request; 0 for 8 MiB

	Faults map[string]float64 // probability by name

	WebhookURL    string // on loopback; empty sends none
	WebhookSecret string
	WebhookScheme webhook.Scheme

	// WebhookTrouble is called when the receiver first fails to accept a delivery. It may be nil.
	WebhookTrouble func(error)
}

// Ignored as Config.NumberParam disables queries by number.
const Ignored = "ignored"

// Names of faults.
const (
	FaultError500  = "500-before"     // 500, nothing stored
	FaultError502  = "502-after"      // stored, then 502
	FaultCutBefore = "cut-before"     // connection cut, nothing stored
	FaultCutAfter  = "cut-after"      // stored, then the connection cut
	FaultTruncate  = "truncate"       // stored, half an answer
	FaultStall     = "stall"          // stored, never answered
	FaultRedirect  = "redirect"       // 307 to another path of this host, nothing stored
	FaultHTML      = "html"           // 200 with a web page, nothing stored
	FaultEnvelope  = "error-envelope" // 200 with {"code":401,…}, nothing stored
	FaultNotFound  = "404-all"        // 404, nothing stored
	FaultLate      = "late"           // connection cut, stored 3 s later
	FaultFalseOK   = "200-before"     // a create is answered as if stored, but is not
	FaultAbsent    = "absent"         // a query is answered as if the tracking did not exist
	FaultRefused   = "400-after"      // a create is stored, then 400
	FaultThrottled = "429-after"      // a create is stored, then 429
)

// Faults returns the names of all faults.
func Faults() []string {
	return []string{
		FaultError500, FaultError502, FaultCutBefore, FaultCutAfter, FaultTruncate, FaultStall,
		FaultRedirect, FaultHTML, FaultEnvelope, FaultNotFound, FaultLate, FaultFalseOK, FaultAbsent,
		FaultRefused, FaultThrottled,
	}
}

func faultApplies(name string, op operation) bool {
	switch name {
	case FaultFalseOK, FaultRefused, FaultThrottled:
		return op != opDetail
	case FaultAbsent:
		return op == opDetail
	}
	return true
}

const lateDelay = 3 * time.Second

// ConfigError says which setting is wrong and which values are allowed.
type ConfigError struct{ Setting, Problem string }

func (e *ConfigError) Error() string { return e.Setting + ": " + e.Problem }

func (c *Config) complete() error {
	c.NumberParam = cmp.Or(c.NumberParam, "trackingNumber")
	c.MaxBody = cmp.Or(c.MaxBody, 8<<20)
	for name, p := range c.Faults {
		if !slices.Contains(Faults(), name) {
			return &ConfigError{"fault", fmt.Sprintf("%q is not one of %s", name, strings.Join(Faults(), ", "))}
		}
		if !(p >= 0 && p <= 1) {
			return &ConfigError{"fault", fmt.Sprintf("%s: probability %v is not between 0 and 1", name, p)}
		}
	}
	if c.WebhookURL == "" {
		return nil
	}
	u, err := url.Parse(c.WebhookURL)
	if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) {
		return &ConfigError{"webhook-url", "must be an http URL of this computer, such as http://127.0.0.1:8377"}
	}
	if c.WebhookSecret == "" {
		return nil
	}
	return c.WebhookScheme.Check()
}
