package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/api"
)

// traced is how much of a body --debug shows, in bytes.
const traced = 4 << 10

// trace shows one exchange with the service on stderr. The key is never part
// of it; headers that may hold secrets are masked.
func (s *Session) trace(x api.Exchange) {
	s.IO.Note("> %s %s", x.Method, x.URL)
	if len(x.Request) > 0 {
		s.IO.Note("> %s", start(x.Request))
	}
	if x.Err != nil {
		s.IO.Note("< %v (after %s)", x.Err, x.Took)
	}
	if x.Status == 0 {
		return
	}
	s.IO.Note("< %d (after %s)", x.Status, x.Took)
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		value := strings.Join(x.Header[name], ", ")
		if SecretHeader(name) {
			value = "***"
		}
		s.IO.Note("< %s: %s", name, value)
	}
	s.IO.Note("< %s", start(x.Answer))
}

// SecretHeader reports whether a header of a request or response may hold a secret.
func SecretHeader(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "cookie", "set-cookie", "proxy-authorization":
		return true
	}
	return false
}

func start(b []byte) string {
	if len(b) > traced {
		return string(b[:traced]) + "…"
	}
	return string(b)
}
