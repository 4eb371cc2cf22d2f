package listen

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// rejectAdvice says what makes requests acceptable, by the status that they get.
var rejectAdvice = map[int]string{
	http.StatusBadRequest:                  "the sender, or a tunnel, closed the connection too early",
	http.StatusRequestTimeout:              fmt.Sprintf("it must arrive within %v", bodyTimeout),
	http.StatusMethodNotAllowed:            "deliveries must use POST",
	http.StatusRequestEntityTooLarge:       "raise --max-body",
	http.StatusUnsupportedMediaType:        "turn compression off at the sender or tunnel",
	http.StatusRequestHeaderFieldsTooLarge: fmt.Sprintf("at most %d bytes are read", maxHeader),
}

// rejectAlert reports requests that are answered without being stored, of each status once a
// minute at most: the sender may be the service, and gets the same answer every time.
type rejectAlert struct {
	log *slog.Logger

	mu       sync.Mutex
	byStatus map[int]*rejections
}

type rejections struct {
	reported time.Time
	count    int64 // since the receiver began
}

func (a *rejectAlert) report(status int, text, from string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byStatus[status] == nil {
		a.byStatus[status] = &rejections{}
	}
	r := a.byStatus[status]
	r.count++
	if now := time.Now(); now.Sub(r.reported) >= repeatAlert {
		r.reported = now
		a.log.Warn(fmt.Sprintf("a request was answered %d and not stored: %s; %s", status, text, rejectAdvice[status]), "from", from, "requests", r.count)
	}
}
