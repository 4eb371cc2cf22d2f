package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// BenchmarkDelivery verifies and decodes deliveries of one and of fifty
// events of about 1.2 kB each.
func BenchmarkDelivery(b *testing.B) {
	event := strings.Replace(delivered, "Delivered, front door", "Delivered, front door "+strings.Repeat("x", 1200-len(delivered)), 1)
	for _, tt := range []struct {
		name   string
		events int
	}{{"1", 1}, {"50", 50}} {
		b.Run(tt.name, func(b *testing.B) {
			body := "[" + strings.TrimSuffix(strings.Repeat(event+",", tt.events), ",") + "]"
			v := verifier(b, webhook.Scheme{}, "k")
			r := post(body, "Content-Type", "application/json", "X-Signature", hexMAC("k", body))
			now := time.Now()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !v.Verify(r, now).OK || len(webhook.Decode(r.Body).Events) != tt.events {
					b.Fatal("not verified, or events lost")
				}
			}
			b.ReportMetric(float64(b.N*tt.events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
