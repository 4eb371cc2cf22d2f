package listen

import (
	"log/slog"
	"sync"
	"time"
)

// troubleAgain is how often a trouble that lasts is told.
const troubleAgain = time.Minute

// trouble tells of a store that fails: when it begins, from time to time while
// it lasts, and when it is over. A full disk under load fails a thousand
// deliveries a second.
type trouble struct {
	log *slog.Logger

	mu     sync.Mutex
	told   time.Time // zero while all is well
	failed int64     // deliveries since the beginning
}

func (t *trouble) met(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	if now := time.Now(); t.told.IsZero() || now.Sub(t.told) >= troubleAgain {
		t.told = now
		t.log.Error("deliveries are not stored and their sender is told so", "err", err, "deliveries", t.failed)
	}
}

func (t *trouble) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told.IsZero() {
		return
	}
	t.log.Warn("deliveries are stored again", "refused", t.failed)
	t.told, t.failed = time.Time{}, 0
}
