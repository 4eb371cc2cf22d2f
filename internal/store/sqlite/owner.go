package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/waybill-cli/waybill/internal/store"
)

const stagingPoll = 25 * time.Millisecond

func (f *file) lockStaging(ctx context.Context) (string, func() error, error) {
	lock := flock.New(f.path + ".staging.lock")
	if _, err := lock.TryLockContext(ctx, stagingPoll); err != nil {
		return "", nil, fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	name, err := f.owner.Name()
	if err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return name, lock.Close, nil
}

// owner marks the work of this process. Each open store that sends locks its own file; the system releases the lock
// when the process ends, however it ends. The file's name is the owner of runs and batches in the store.
type owner struct {
	folder string

	mu   sync.Mutex
	name string
	lock *flock.Flock
}

// Name creates and locks the owner's file on first use. Nobody knows the name before it is returned, so nobody can
// find the file unlocked.
func (o *owner) Name() (string, error) {
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

func (o *owner) isOwn(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lock != nil && o.name == name
}

// IsAlive also removes a dead owner's file. Several processes may call it at once.
func (o *owner) IsAlive(_ context.Context, _ store.Queryer, name string) (bool, error) {
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

// Await is IsAlive: the lock of a file leaves no doubt.
func (o *owner) Await(ctx context.Context, name string) (bool, error) {
	return o.IsAlive(ctx, nil, name)
}

// Fence reports whether the owner is dead. If so, it stays dead: nobody locks its file again.
func (o *owner) Fence(ctx context.Context, on store.Queryer, name string) (bool, error) {
	alive, err := o.IsAlive(ctx, on, name)
	return !alive && err == nil, err
}

// CheckOwner returns nil if name is this store's owner: it keeps its claims until it ends.
func (o *owner) CheckOwner(name string) error {
	if o.isOwn(name) {
		return nil
	}
	return store.ErrTakenOver
}

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

// removeIfExists removes a file, unless another process has.
func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
