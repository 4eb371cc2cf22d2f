package app

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// secretsPause is how long secrets are used before their files are looked at
// again.
const secretsPause = time.Second

// Verifier verifies with the secrets as their files hold them, so that a
// secret can be changed while deliveries arrive. It is safe for concurrent use.
type Verifier struct {
	make  func() (*webhook.Verifier, error) // reads the secrets
	told  func(error)                       // called for each change; the error says why it can't be used and the old secrets stay
	files []string

	mu    sync.Mutex
	now   *webhook.Verifier
	seen  []os.FileInfo
	after time.Time // when the files are looked at again
}

// newVerifier reads the secrets. places are those of webhook.secrets.
func newVerifier(places []string, read func() (*webhook.Verifier, error), told func(error)) (*Verifier, error) {
	f := &Verifier{make: read, told: told}
	for _, place := range places {
		if path, ok := strings.CutPrefix(place, "file:"); ok {
			f.files = append(f.files, path)
		}
	}
	f.seen, f.after = f.look(), time.Now().Add(secretsPause)
	var err error
	f.now, err = read()
	return f, err
}

// Verify is [webhook.Verifier.Verify].
func (f *Verifier) Verify(r webhook.Request, now time.Time) webhook.Verdict {
	return f.current(time.Now()).Verify(r, now)
}

// current returns the verifier, made anew if a file has changed.
func (f *Verifier) current(at time.Time) *webhook.Verifier {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.files) == 0 || at.Before(f.after) {
		return f.now
	}
	f.after = at.Add(secretsPause)
	seen := f.look()
	if !changed(f.seen, seen) {
		return f.now
	}
	f.seen = seen
	v, err := f.make()
	if err == nil {
		f.now = v
	}
	f.told(err)
	return f.now
}

// look returns what the system says of the files, nil for one that is not
// there or that is a pipe, which can be read but once.
func (f *Verifier) look() []os.FileInfo {
	seen := make([]os.FileInfo, len(f.files))
	for i, path := range f.files {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			seen[i] = info
		}
	}
	return seen
}

// changed reports whether a file differs from what it was, or is gone.
func changed(before, after []os.FileInfo) bool {
	for i, now := range after {
		was := before[i]
		if (now == nil) != (was == nil) {
			return true
		}
		if now != nil && (!os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) || was.Size() != now.Size()) {
			return true
		}
	}
	return false
}
