package store_test

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
)

// Whoever runs for long tries again what passes, and ends for anything else.
func TestTemporaryErrors(t *testing.T) {
	for kind, want := range map[error]bool{
		store.ErrFull: true, store.ErrLocked: true, store.ErrReadOnly: true, store.ErrUnreachable: true,
		store.ErrNoConnections: true, store.ErrTimedOut: true, store.ErrTakenOver: true, store.ErrCutOff: true,
		store.ErrLost: false, store.ErrGone: false, store.ErrTooNew: false,
	} {
		if err := (&store.Error{Op: "write", Path: "w.db", Kind: kind}); inbox.IsTemporary(err) != want {
			t.Errorf("%v: temporary is %v; want %v", err, !want, want)
		}
	}
}
