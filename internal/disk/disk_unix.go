//go:build unix

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// TempVariable is the environment variable that names the folder of temporary files.
const TempVariable = "TMPDIR"

// Temp returns a new file in the folder for temporary files that only the user can read. It disappears once it is
// closed, however the process ends.
func Temp() (*os.File, error) {
	f, err := os.CreateTemp("", "waybill-*") // 0600
	if err != nil {
		return nil, &TempError{err}
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, &TempError{errors.Join(err, f.Close())}
	}
	return f, nil
}

// Writable reports whether the user may write a file, or create files in a folder. It opens nothing.
func Writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// Free returns how many bytes the user may still write in folder, and false if the system does not report it.
func Free(folder string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // their types differ by system
}

const (
	groupWrites = 0o020
	allWrite    = 0o002
	mostLinks   = 40 // as on Linux
)

// ownerOf returns the user ID of a file's owner, 0 if the system does not report it.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return 0
}

// trusted reports whether a file belongs to the user or to root, who can change any file.
func trusted(info fs.FileInfo) bool {
	uid := ownerOf(info)
	return uid == os.Geteuid() || uid == 0
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "user " + u.Username
	}
	return "user " + strconv.Itoa(uid)
}

// sharedGroup returns the group that may also write a file, or "" if it is the user's own group, which has the user's
// name.
func sharedGroup(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&groupWrites == 0 {
		return ""
	}
	gid := strconv.Itoa(int(st.Gid))
	g, err := user.LookupGroupId(gid)
	if err != nil {
		return "group " + gid
	}
	if me, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && me.Gid == gid && me.Username == g.Name {
		return ""
	}
	return "group " + g.Name
}

// Foreign returns a [*ForeignError] for a file that belongs to another user and lies in a
// folder where others may write: it may be there to catch what is written to it.
func Foreign(path string, info fs.FileInfo) error {
	if ownerOf(info) == os.Geteuid() {
		return nil
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if trusted(folder) && folder.Mode()&allWrite == 0 && sharedGroup(folder) == "" {
		return nil
	}
	return &ForeignError{Path: path, Owner: userName(ownerOf(info))}
}

// Resolve returns the target of a path, existing or not, without symbolic links. A link on the way for which
// [Foreign] returns an error is an error, unless root made it.
func Resolve(path string) (string, error) {
	at := "/"
	if !filepath.IsAbs(path) {
		folder, err := os.Getwd()
		if err != nil {
			return "", err
		}
		at = folder
	}
	rest := strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(rest, func(s string) bool { return s != "" }):
			if _, err := os.Stat(path); err == nil {
				return path, nil // a link in /proc to something without a name
			}
			return next, nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if err := Foreign(next, info); err != nil && !trusted(info) {
			return "", err
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

// Open opens a file for reading. Unlike [os.Open] it does not wait for a FIFO's writer.
func Open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) }

// ChangersOf returns who can change the open file of info, or replace it at path. A nil info means a file that is still
// to be created. In a folder where users can remove only their own files, such as /tmp, nobody else can replace it.
func ChangersOf(path string, info fs.FileInfo) Changers {
	target, err := path, error(nil)
	if info != nil {
		if c := changers(info, "it"); c.Text != "" {
			return c
		}
		target, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return Changers{} // a shell's pipe has no folder
	}
	folder, err := os.Stat(filepath.Dir(target))
	if err != nil {
		return Changers{}
	}
	c := changers(folder, "its folder")
	if c.Folder = true; c.Text == "" || folder.Mode()&fs.ModeSticky != 0 && !c.Owner {
		return Changers{}
	}
	return c
}

func changers(info fs.FileInfo, what string) Changers {
	group := sharedGroup(info)
	switch {
	case info.Mode()&allWrite != 0:
		return Changers{Text: "everybody can write to " + what}
	case group != "" && (ownerOf(info) == os.Geteuid() || member(info)):
		return Changers{Text: group + " can write to " + what, Group: true}
	case !trusted(info):
		return Changers{Text: what + " belongs to " + userName(ownerOf(info)), Owner: true}
	case group != "":
		return Changers{Text: group + " can write to " + what}
	}
	return Changers{}
}

func member(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	groups, err := os.Getgroups()
	return ok && err == nil && (int(st.Gid) == os.Getegid() || slices.Contains(groups, int(st.Gid)))
}

// ForeignOwner names another user who owns a file in a folder that is not theirs.
func ForeignOwner(path string, info fs.FileInfo) Changers {
	folder, err := os.Stat(filepath.Dir(path))
	if trusted(info) || err == nil && ownerOf(folder) == ownerOf(info) {
		return Changers{}
	}
	return Changers{Text: "it belongs to " + userName(ownerOf(info)), Owner: true}
}
