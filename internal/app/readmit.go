package app

import (
	"context"
	"errors"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Readmit verifies a refused delivery again, as of when it came, and puts it
// into the inbox if it is authentic. It returns nil if it is not, or was
// readmitted meanwhile.
func Readmit(ctx context.Context, box inbox.Keeper, verifier *Verifier, scheme string, d inbox.Delivery) (*inbox.Receipt, error) {
	v := verifier.Verify(d.Request(), d.ReceivedAt)
	if !v.OK {
		return nil, nil //nolint:nilnil // that it stays refused is an answer
	}
	refused := d.Seq
	batch := webhook.Decode(d.Body)
	d.Seq, d.Verified, d.Reason = 0, inbox.Yes, ""
	d.Scheme, d.SecretName, d.BodyAuthenticated = scheme, v.SecretName, v.BodyAuthenticated
	d.Single, d.Anomaly = batch.Single, batch.Anomaly
	placed, err := box.Readmit(ctx, refused, d, inbox.Prepare(d, batch))
	if errors.Is(err, inbox.ErrNoDelivery) {
		return nil, nil //nolint:nilnil // so is that somebody else was faster
	}
	return &placed, err
}
