package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
)

// owner marks what this process works on. Each open store that sends locks a
// file of its own; the system releases the lock when the process ends, however
// it ends. The file's name is the owner of runs and batches in the store.
type owner struct {
	folder string

	mu   sync.Mutex
	name string
	lock *flock.Flock
}

// acquire returns the name of this store's owner. The first call makes and locks
// its file. Nobody knows the name before it is returned, so nobody can find the
// file unlocked.
func (o *owner) acquire() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock != nil {
		return o.name, nil
	}
	if err := os.MkdirAll(o.folder, 0o700); err != nil {
		return "", err
	}
	name := rand.Text()
	lock := flock.New(o.lockPath(name))
	ok, err := lock.TryLock()
	if err == nil && !ok {
		err = errors.New("locked by another process")
	}
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	o.name, o.lock = name, lock
	return name, nil
}

func (o *owner) lockPath(name string) string { return filepath.Join(o.folder, name+".lock") }

// isOwn reports whether name is this store's owner.
func (o *owner) isOwn(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lock != nil && o.name == name
}

// isAlive reports whether the owner's process is alive. If not, its file is
// removed. Several processes may ask at once.
func (o *owner) isAlive(name string) (bool, error) {
	switch {
	case o.isOwn(name):
		return true, nil
	case name == "" || filepath.Base(name) != name:
		return false, nil
	}
	lock := flock.New(o.lockPath(name), flock.SetFlag(os.O_RDONLY))
	ok, err := lock.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	if !ok {
		return true, nil
	}
	return false, errors.Join(lock.Close(), removeIfExists(lock.Path()))
}

// release unlocks and removes the owner's file.
func (o *owner) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock == nil {
		return nil
	}
	lock := o.lock
	o.lock = nil
	return errors.Join(lock.Close(), removeIfExists(lock.Path()))
}

// removeIfExists removes a file; another process may have done so.
func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
