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

// owner is what tells the living from the dead: each open store that sends
// holds a lock on a file of its own, which the system takes away when its
// process ends, however it ends. Its name stands in the store with whatever
// the process works on.
type owner struct {
	folder string

	mu   sync.Mutex
	name string
	lock *flock.Flock
}

// acquire returns the name of this store's owner, which lives from the first call.
// Nobody can ask after the name before it is returned, so nobody can take the
// owner for dead while its file is there and not locked yet.
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
		err = errors.New("somebody else has it")
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

// isAlive reports whether the process of that owner is alive. The file of a dead
// one is removed. Those who ask do not get into each other's way.
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

// release ends the owner's life.
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

// removeIfExists removes a file that somebody else may have removed.
func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
