package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// timestampSender signs the timestamp alone, as some senders of this market do.
type timestampSender struct {
	name      string
	key       string
	unit      string
	signature string // header, or member of the body
	timestamp string // likewise
	inBody    string // the member that holds both; empty for headers
}

var timestampSenders = []timestampSender{
	{"TrackingMore V4", "a-webhook-secret", webhook.UnitSeconds, "signature", "timestamp", ""},
	{"51Tracking", "the-51tracking-api-key", webhook.UnitSeconds, "Signature", "X-Timestamp", ""},
	{"Track123", "the-track123-api-key", webhook.UnitMilliseconds, "signature", "timestamp", "verify"},
	{"TrackingMore V2", "owner@shop.example", webhook.UnitSeconds, "signature", "timeStr", "verifyInfo"},
}

// deliver returns the n-th delivery of a sender. Its fields that can be empty hold filled.
func (s timestampSender) deliver(n int, array bool, filled string) webhook.Sample {
	when := at.Add(time.Duration(n) * 7 * time.Minute)
	stamp := fmt.Sprint(when.Unix())
	if s.unit == webhook.UnitMilliseconds {
		stamp = fmt.Sprint(when.UnixMilli())
	}
	event := fmt.Sprintf(`"event":"router.delivered","region":"DE","data":{"trackingNumber":"1Z%d","note":%q,"summary":{"latestEvent":%q,"updated":%d},"checkpoints":[]}`,
		n, filled, filled, when.Unix())
	headers := []string{"Content-Type", "application/json", "X-Region", "DE", "X-Trace", filled}
	mac := hexMAC(s.key, stamp)
	if s.inBody == "" {
		headers = append(headers, s.signature, mac, s.timestamp, stamp)
	} else {
		event += fmt.Sprintf(`,%q:{%q:%q,%q:%q}`, s.inBody, s.signature, mac, s.timestamp, stamp)
	}
	body := "{" + event + "}"
	if array {
		body = "[" + body + "]"
	}
	return webhook.Sample{Request: post(body, headers...), At: when.Add(time.Second)}
}

// place is where a sender puts a value.
func (s timestampSender) place(name string, array bool) string {
	switch {
	case s.inBody == "":
		return "header:" + name
	case array:
		return "json:/0/" + s.inBody + "/" + name
	default:
		return "json:/" + s.inBody + "/" + name
	}
}

// A field that is empty in every sample is no part of what is signed: once it
// is filled, every genuine delivery would be refused.
func TestLearnSendersThatSignTheTimestampAlone(t *testing.T) {
	for _, s := range timestampSenders {
		for _, array := range []bool{false, true} {
			for fields, filled := range map[string][]string{
				"empty":       {"", "", ""},
				"filled":      {"Arrived", "In transit", "Left"},
				"the same":    {"Arrived", "Arrived", "Arrived"},
				"later":       {"", "", "Arrived"},
				"empty later": {"Arrived", "", ""},
			} {
				t.Run(fmt.Sprintf("%s, array %v, %s", s.name, array, fields), func(t *testing.T) {
					var all []webhook.Sample
					for i, text := range filled {
						all = append(all, s.deliver(i, array, text))
					}
					got := learn(t, all, "another", s.key)
					if len(got.Candidates) == 0 {
						t.Fatalf("nothing learnt, partial %+v", got.Partial)
					}
					first := got.Candidates[0]
					if want := s.place(s.signature, array); first.Scheme.Signed != "{timestamp}" || !strings.EqualFold(first.Scheme.Signature.From, want) {
						t.Errorf("learnt %s at %s; want {timestamp} at %s", first.Scheme.Signed, first.Scheme.Signature.From, want)
					}
					if want := (webhook.Timestamp{From: s.place(s.timestamp, array), Unit: s.unit, Tolerance: webhook.DefaultTolerance}); first.Scheme.Timestamp != want || first.Strength != webhook.StrengthTimestamp {
						t.Errorf("timestamp %+v, strength %s; want %+v", first.Scheme.Timestamp, first.Strength, want)
					}
					for _, c := range got.Candidates {
						for i, text := range []string{"", "Out for delivery"} {
							next := s.deliver(9+i, array, text)
							if v := verifier(t, c.Scheme, s.key).Verify(next.Request, next.At); !v.OK {
								t.Errorf("%s at %s refuses a genuine delivery: %s", c.Scheme.Signed, c.Scheme.Signature.From, v.Reason)
							}
						}
					}
				})
			}
		}
	}
}

// A part of the body that was the same in every sample proves nothing of the
// body: it may as well be a header of the same text.
func TestLearnRanksNothingByPartsThatDidNotVary(t *testing.T) {
	var all []webhook.Sample
	for i := range 3 {
		d := timestampSenders[0].deliver(i, true, "")
		last := len(d.Header) - 1
		d.Header[last-1].Value = hexMAC("k", "DE"+d.Header[last].Value)
		all = append(all, d)
	}
	got := learn(t, all, "k")
	if len(got.Candidates) == 0 || got.Candidates[0].Scheme.Signed != "{header:X-Region}{timestamp}" {
		t.Fatalf("candidates %+v; want the header before the field", got.Candidates)
	}
	for _, c := range got.Candidates {
		if len(c.Undecided) != 1 || !strings.Contains(c.Undecided[0], "the same in every delivery") {
			t.Errorf("open %q; want it said that a part did not vary", c.Undecided)
		}
	}
}
