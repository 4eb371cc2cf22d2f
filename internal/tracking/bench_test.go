package tracking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// batchAnswer is an answer to a create that tells of every row: a verdict and,
// if told, the tracking.
func batchAnswer(rows int, told bool) ([]byte, []tracking.Item) {
	items := make([]tracking.Item, rows)
	verdicts, data := make([]string, rows), make([]string, rows)
	for i := range items {
		items[i] = tracking.Item{ReferID: fmt.Sprintf("ORD-%06d", i), Number: fmt.Sprintf("1Z999AA1%010d", i)}
		verdicts[i] = fmt.Sprintf(`{"referId":%q,"rawTrackingNumber":%q,"success":true,"error":null}`, items[i].ReferID, items[i].Number)
		data[i] = strings.ReplaceAll(object, "1Z999", items[i].Number)
	}
	raw := `{"message":"created","items":[` + strings.Join(verdicts, ",") + `]`
	if told {
		raw += `,"data":[` + strings.Join(data, ",") + `]`
	}
	return []byte(raw + "}"), items
}

// BenchmarkCreated reads the answer to a create as a run does: is it credible,
// which rows does it refuse and, of v1, what does it tell of the trackings.
func BenchmarkCreated(b *testing.B) {
	for _, v1 := range []bool{true, false} {
		name, rows := "v2", tracking.MaxAsyncBatch
		if v1 {
			name, rows = "v1", tracking.MaxSyncBatch
		}
		raw, items := batchAnswer(rows, v1)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				body := tracking.ReadBody(raw)
				if !body.JSON() || body.Wrong() || body.ErrorText() == "" {
					b.Fatal("not credible")
				}
				if refused, blanket := body.Refusals(items); len(refused) != 0 || blanket {
					b.Fatal("a row is refused")
				}
				if v1 && len(body.Answer().Trackings) != rows {
					b.Fatalf("%d trackings; want %d", len(body.Answer().Trackings), rows)
				}
			}
		})
	}
}
