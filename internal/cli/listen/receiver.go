package listen

import (
	"log/slog"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/listen"
)

// newReceiver returns a receiver of deliveries that verifies as the settings
// say. Errors are those of [app.Session.Verifier].
func newReceiver(s *app.Session, opened *app.Store, warnings *storeWarnings) (*listen.Receiver, error) {
	w := s.Config.Webhook
	verifier, err := s.Verifier()
	if err != nil {
		return nil, err
	}
	if verifier == nil && w.Verify == "enforce" {
		return nil, s.Config.Refuse("webhook.verify", "enforce needs a scheme to verify with", "set webhook.scheme, or webhook.verify: observe")
	}
	o := listen.Options{
		Store:      opened.Inbox,
		MaxBody:    int64(s.Config.Listen.MaxBody),
		Unverified: &listen.UnverifiedLimit{MaxBytes: int64(s.Config.Listen.MaxUnverified), CountBytes: opened.Retention.UnverifiedBytes},
		Away:       opened.Changes.Away,
		Log:        slog.New(&logHandler{io: s.IO, warnings: warnings}),
	}
	if verifier != nil {
		o.Verify, o.Scheme, o.Enforce = verifier.Verify, w.Scheme, w.Verify == "enforce"
	}
	return listen.New(o)
}
