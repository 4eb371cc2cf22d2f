package listen

import (
	"log/slog"
	"sync"
	"time"
)

// repeatAlert is how often a lasting failure is reported.
const repeatAlert = time.Minute

// storeAlert reports a store that fails: when it begins, once a minute while it
// lasts, and when it is over. A full disk under load fails a thousand
// deliveries a second.
type storeAlert struct {
	log          *slog.Logger
	begins, ends string // what is said

	mu       sync.Mutex
	reported time.Time // zero while all is well
	failed   int64     // deliveries since the beginning
}

func (t *storeAlert) failure(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
	if now := time.Now(); t.reported.IsZero() || now.Sub(t.reported) >= repeatAlert {
		t.reported = now
		t.log.Error(t.begins, "err", err, "deliveries", t.failed)
	}
}

func (t *storeAlert) recovered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported.IsZero() {
		return
	}
	t.log.Warn(t.ends, "not stored", t.failed)
	t.reported, t.failed = time.Time{}, 0
}

// readAlert reports an inbox that can't be read: once a minute at most, since one cause may
// come and go, and each time that it is over.
type readAlert struct {
	log      *slog.Logger
	reported time.Time
	lasts    bool // what was reported
}

func (a *readAlert) update(err error) {
	switch now := time.Now(); {
	case err == nil && a.lasts:
		a.lasts = false
		a.log.Warn("received events are read again")
	case err != nil && !a.lasts && now.Sub(a.reported) >= repeatAlert:
		a.reported, a.lasts = now, true
		a.log.Warn("received events can't be read, trying again", "err", err)
	}
}
