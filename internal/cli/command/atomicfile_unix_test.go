//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/waybill-cli/waybill/internal/disk"
)

// stranger is a user that is not the one who runs the tests. Only root can
// make files of another.
const stranger = 12345

// shared returns a folder where others may write: all, or a group.
func shared(t *testing.T, mode os.FileMode) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, mode)); err != nil {
		t.Fatal(err)
	}
	if mode&0o002 == 0 {
		_ = os.Chown(folder, -1, stranger) // without being root, give says so
	}
	return folder
}

// give gives a file or link to another user.
func give(t *testing.T, path string) bool {
	t.Helper()
	err := os.Lchown(path, stranger, stranger)
	if errors.Is(err, os.ErrPermission) {
		t.Log("only root can give files away: nothing is shown here")
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// What another user put where others may write is not written to: not through
// a link, into a FIFO, or in the place of a file.
func TestAtomicFileRefusesWhatAnotherUserLaidOut(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, os.ModeSticky | 0o777, 0o770} {
		folder := shared(t, mode)
		victim := filepath.Join(t.TempDir(), "victim")
		if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		link, dangling, fifo, file := filepath.Join(folder, "link"), filepath.Join(folder, "dangling"), filepath.Join(folder, "fifo"), filepath.Join(folder, "file")
		inner := filepath.Join(folder, "inner")
		if err := errors.Join(os.Symlink(victim, link), os.Symlink(victim+"-new", dangling), syscall.Mkfifo(fifo, 0o666),
			os.WriteFile(file, nil, 0o666), os.Symlink(filepath.Dir(victim), inner)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{link, dangling, fifo, file, inner} {
			if !give(t, path) {
				return
			}
		}
		for _, path := range []string{link, dangling, fifo, file, filepath.Join(inner, "victim")} {
			w, err := NewAtomicFile(t.Context(), path)
			if err == nil {
				w.Discard()
			}
			if foreign := (*disk.ForeignError)(nil); !errors.As(err, &foreign) || !As[*UsageError](err) {
				t.Errorf("mode %v: %s: %v", mode, filepath.Base(path), err)
			}
		}
		if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// The user's own links stay links, and what others have where only the user
// writes is the user's affair.
func TestAtomicFileFollowsOwnLinks(t *testing.T) {
	folder := shared(t, os.ModeSticky|0o777)
	target := filepath.Join(t.TempDir(), "target")
	link := filepath.Join(folder, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	whole(t, link, "new", true)
	if b, err := os.ReadFile(target); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if !give(t, target) {
		return
	}
	whole(t, link, "again", true)
	if b, err := os.ReadFile(target); err != nil || string(b) != "again" {
		t.Errorf("%q, %v", b, err)
	}
}

// A FIFO that nobody reads is left with the context.
func TestAtomicFileOpensNoSilentFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := stoppedContext(t)
	if _, err := NewAtomicFile(ctx, fifo); !errors.Is(err, stop) {
		t.Errorf("%v; want the cause of the context's end", err)
	}
}

// stoppedContext returns a context that has ended, and why.
func stoppedContext(t *testing.T) (context.Context, error) {
	t.Helper()
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	return ctx, stopped
}
