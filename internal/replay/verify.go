package replay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Verifier verifies requests, such as a [webhook.Verifier].
type Verifier interface {
	Verify(r webhook.Request, now time.Time) webhook.Verdict
}

func verify(d inbox.Delivery, scheme string, v Verifier) inbox.Delivery {
	return d.Judged(scheme, v.Verify(d.Request(), d.ReceivedAt))
}

// Readmit verifies a refused delivery again and puts it into the inbox if it is
// authentic. It returns nil if it is not, or if somebody else readmitted it.
func Readmit(ctx context.Context, box inbox.Verdicts, scheme string, v Verifier, d inbox.Delivery) (*inbox.Receipt, error) {
	refused := d.Seq
	if d = verify(d, scheme, v); d.Verified != inbox.Yes {
		return nil, nil //nolint:nilnil // that it stays refused is an answer
	}
	d.Seq = 0
	d, rows := inbox.Decode(d)
	receipt, err := box.Readmit(ctx, refused, d, rows)
	if errors.Is(err, inbox.ErrNoDelivery) {
		return nil, nil //nolint:nilnil // so is that somebody else was faster
	}
	return &receipt, err
}

// Reverified counts stored deliveries that were verified again.
type Reverified struct {
	Verified int                    // that were not before
	Refused  int                    // that do not verify
	MadeUp   int                    // synthetic ones, which the others do not count
	Events   int64                  // that were released
	Reasons  map[webhook.Reason]int // why those of Refused do not verify
}

// Reverify verifies every stored delivery again that is not verified and whose
// bytes are still there.
func Reverify(ctx context.Context, in Inbox, verdicts inbox.Verdicts, scheme string, v Verifier) (Reverified, error) {
	n := Reverified{Reasons: map[webhook.Reason]int{}}
	var open []int64
	for d, err := range Whole(ctx, in) {
		if err != nil {
			return n, err
		}
		if d.Verified != inbox.Yes {
			open = append(open, d.Seq)
		}
	}
	for _, seq := range slices.Backward(open) { // oldest first: of equals the first stands
		d, err := in.Delivery(ctx, seq)
		if err != nil {
			return n, err
		}
		d = verify(d, scheme, v)
		switch {
		case d.IsSynthetic():
			n.MadeUp++
		case d.Verified == inbox.Yes:
			n.Verified++
		default:
			n.Refused++
			n.Reasons[d.Reason]++
		}
		receipt, err := verdicts.SetVerdict(ctx, d)
		if err != nil {
			return n, err
		}
		n.Events += receipt.CountCurrent()
	}
	return n, nil
}
