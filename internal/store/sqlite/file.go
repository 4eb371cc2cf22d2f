// Package sqlite keeps a store in one SQLite file: it is the engine below package
// store. Locks on files beside the store show which processes are alive.
package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/store"
)

type file struct {
	path      string
	readers   *sql.DB
	revisions *sql.DB // one connection, which counts the commits of all others
	writer    connector
	owner     owner
	readOnly  error
	made      bool
}

// Open opens the store at path, and creates it with its folder if there is none. A store with other tables, of a newer
// version or of a development build, is refused and left unchanged. If the user can't write it, it is opened for
// reading, see [store.DB.Writable]. Symbolic links are followed. A file that has several names, or is mounted without
// its folder, is refused: other users of it would have another log and other locks.
func Open(ctx context.Context, path string, o store.Options) (*store.DB, error) {
	f, shared, err := openFile(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return store.New(f.engine(shared)), nil
}

// openFile is Open for the file alone. It also returns who shares the file.
func openFile(ctx context.Context, path string, o store.Options) (*file, string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, "", fail(path, "open", err)
	}
	path, err = resolvePath(path, o.MustExist || o.ReadOnly)
	if err != nil {
		return nil, "", fail(path, "open", err)
	}
	readOnly := !disk.Writable(path) || !disk.Writable(filepath.Dir(path))
	shared, err := whoShares(path, readOnly)
	if err != nil {
		return nil, "", fail(path, "open", err)
	}
	opener := openWritable
	if readOnly || o.ReadOnly {
		opener = openReadOnly
	}
	f, err := opener(ctx, path)
	return f, shared, err
}

func openWritable(ctx context.Context, path string) (*file, error) {
	readers := connect(path, readerSettings()...)
	readers.SetMaxIdleConns(idleReaders)
	f := newFile(path, readers)
	var err error
	if f.made, err = f.writer.prepare(ctx); err != nil {
		return nil, errors.Join(fail(path, "open", err), f.close())
	}
	return f, nil
}

func newFile(path string, readers *sql.DB) *file {
	readers.SetMaxOpenConns(maxReaders)
	pool := connect(path, "busy_timeout(5)", "synchronous(FULL)", fmt.Sprintf("cache_size(-%d)", writerCache))
	pool.SetMaxOpenConns(1)
	revisions := connect(path, readerSettings()...)
	revisions.SetMaxOpenConns(1)
	return &file{
		path: path, readers: readers, revisions: revisions, owner: owner{folder: path + ".owners"},
		writer: connector{pool: pool, readers: readers, identity: identity{path: path}},
	}
}

func (f *file) close() error {
	err := errors.Join(f.readers.Close(), f.revisions.Close(), f.writer.pool.Close())
	return errors.Join(fail(f.path, "close", err), f.owner.release())
}

func (f *file) engine(shared string) store.Engine {
	boot := bootID()
	return store.Engine{
		Place: f.path, New: f.made, Shared: shared,
		ReadOnly:  f.readOnly,
		Connector: &f.writer, Readers: f.readers, Owners: &f.owner,
		Clock:       store.Clock{ID: func() string { return boot }, Now: store.Uptime},
		Rewrite:     func(query string) string { return query },
		Read:        f.read,
		Revision:    f.revision,
		LockStaging: f.lockStaging,
		Present:     f.writer.identity.check,
		Check:       f.check,
		Upkeep:      f.upkeep(),
		Fail:        func(op string, err error) error { return fail(f.path, op, err) },
		Close:       f.close,
	}
}

// bootID identifies the current boot of this machine; empty if it or [store.Uptime] is unknown.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || runtime.GOOS != "linux" {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func (f *file) read(_ context.Context, ask func() (again bool, err error)) error {
	if f.readOnly != nil {
		return readUnchanged(f.path, func() error { _, err := ask(); return err })
	}
	_, err := ask()
	return err
}

// revision is for [store.Engine]. For a file that can't be locked, it consists of times and sizes.
func (f *file) revision(ctx context.Context) (text string, err error) {
	if f.readOnly == nil {
		err = f.revisions.QueryRowContext(ctx, "PRAGMA data_version").Scan(&text)
		return text, err
	}
	for _, path := range []string{f.path, f.path + "-wal"} {
		info, err := os.Stat(path)
		if err == nil {
			text += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return text, nil
}

func (f *file) check(ctx context.Context) error {
	var found []string
	err := store.EachRow(ctx, f.read, f.readers, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		if err == nil && line != "ok" {
			found = append(found, line)
		}
		return err
	}, "PRAGMA integrity_check(20)")
	if err == nil && len(found) > 0 {
		err = &store.Error{Kind: store.ErrCorrupt, Path: f.path, Op: "read", Err: errors.New(strings.Join(found, "; "))}
	}
	return fail(f.path, "read", err)
}

const maxLinks = 40

// resolvePath returns the store's path without symbolic links, and creates the file if needed, readable by the user
// alone. SQLite puts its log beside it, where the locks of owners must be too. A link that another user created in a
// folder that others can write to is an error.
func resolvePath(path string, mustExist bool) (string, error) {
	_, err := disk.Resolve(path)
	if foreign, ok := errors.AsType[*disk.ForeignError](err); ok {
		return path, &store.Error{Kind: store.ErrExposed, Path: path, Op: "open", Err: foreign}
	}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return resolveFile(path, mustExist)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path, &store.Error{Kind: store.ErrNotStore, Path: path, Op: "open", Err: errors.New("too many symbolic links")}
}

// resolveFile is resolvePath for a path that is not a link itself.
func resolveFile(path string, mustExist bool) (string, error) {
	folder := filepath.Dir(path)
	if !mustExist {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return path, err
		}
	}
	if name := networkFS(folder); name != "" {
		return path, &store.Error{Kind: store.ErrNetworkFS, Path: path, Op: "open", Err: errors.New(name)}
	}
	folder, err := filepath.EvalSymlinks(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mustExist:
		return path, &store.Error{Kind: store.ErrNotThere, Path: path, Op: "open"}
	case err != nil:
		return path, err
	}
	path = filepath.Join(folder, filepath.Base(path))
	// An existing file is not opened here: closing it would release the locks that another store in this process holds on
	// it.
	info, err := os.Stat(path)
	switch {
	case err == nil:
		return path, checkFile(path, info)
	case !errors.Is(err, fs.ErrNotExist):
		return path, err
	case mustExist:
		return path, &store.Error{Kind: store.ErrNotThere, Path: path, Op: "open"}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return path, nil // another process was faster
	}
	if err != nil {
		return path, err
	}
	return path, f.Close()
}

// checkFile requires a regular file whose log and locks everybody finds beside it.
func checkFile(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &store.Error{Kind: store.ErrNotStore, Path: path, Op: "open", Err: errors.New("not a regular file")}
	}
	several, err := hasHardLinks(path, info)
	if err != nil {
		return err
	}
	if several {
		return &store.Error{Kind: store.ErrLinked, Path: path, Op: "open"}
	}
	mounted, err := isFileMount(path)
	if err != nil {
		return fmt.Errorf("read the mount points: %w", err)
	}
	if mounted {
		return &store.Error{Kind: store.ErrMounted, Path: path, Op: "open"}
	}
	return nil
}

// longestMount limits a line of the list of mounts, in bytes: an overlay names many folders.
const longestMount = 1 << 20

// isFileMount reports whether the file is mounted without its folder: then the log and the locks beside path are not
// the ones beside the file itself.
func isFileMount(path string) (bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // macOS and Windows mount folders only, and not every sandbox has it
	}
	if err != nil {
		return false, err
	}
	mounted, err := isMountPoint(f, path)
	return mounted, errors.Join(err, f.Close())
}

// isMountPoint looks up a path in the kernel's list of mounts, whose fifth field is the mount point.
func isMountPoint(mounts io.Reader, path string) (bool, error) {
	path = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
	lines := bufio.NewScanner(mounts)
	lines.Buffer(nil, longestMount)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, lines.Err()
}

// whoShares says who shares the store on purpose: a group, or everybody who can write to its folder. It is an error if
// others can change the store, or own files beside it that SQLite would read; but a store that is only read may belong
// to another user.
func whoShares(path string, readOnly bool) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	who := disk.ChangersOf(path, info)
	if who.Owner && readOnly {
		return "another user owns it and can write to it", nil
	}
	if !who.Group {
		for _, suffix := range []string{"-wal", "-shm", "-journal", ".staging.lock", ".owners"} {
			beside, err := os.Lstat(path + suffix)
			if err == nil {
				err = disk.Foreign(path+suffix, beside)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", &store.Error{Kind: store.ErrExposed, Path: path, Op: "open", Err: err}
			}
		}
	}
	if who.Text != "" && !who.Group && !who.Folder {
		return "", &store.Error{Kind: store.ErrExposed, Path: path, Op: "open", Err: errors.New(who.Text)}
	}
	return who.Text, nil
}

// Beside returns the path of the database that a file belongs to by its name, as a log, lock or copy; "" if there is
// none.
func Beside(path string) string {
	name := regexp.MustCompile(`(?i)^(.+?)(-wal|-shm|-journal|\.staging\.lock|\.owners(/[^/]+)?|\.copying)$`)
	parts := name.FindStringSubmatch(filepath.ToSlash(path))
	if parts == nil {
		return ""
	}
	return filepath.FromSlash(parts[1])
}

// IsDatabase reports whether a file contains a database or a write-ahead log.
func IsDatabase(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // opening a FIFO blocks
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, 16)
	n, _ := f.Read(head)
	begin := string(head[:n])
	isLog := strings.HasPrefix(begin, "\x37\x7f\x06\x82") || strings.HasPrefix(begin, "\x37\x7f\x06\x83")
	return begin == "SQLite format 3\x00" || isLog
}

// identity detects that another file took the place of the opened one. An open file keeps its number on the disk, so a
// stat is enough. Connections that are opened later compare the store's own id.
type identity struct {
	path string
	file atomic.Pointer[fs.FileInfo] // nil until the store is opened

	// The rest belongs to the connection that writes.
	log fs.FileInfo // log of that connection, nil if there is none
	id  int64       // 0 until read
}

func (i *identity) recordFile() error {
	info, err := statFile(i.path)
	if err == nil {
		i.file.Store(&info)
	}
	return err
}

func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		os.SameFile(info, info) // makes Windows read the file's number now
	}
	return info, err
}

// check returns an error that matches [store.ErrGone] unless path still leads to the opened file. It costs a stat.
func (i *identity) check() error {
	file := i.file.Load()
	if file == nil {
		return nil
	}
	return i.compare(i.path, *file)
}

func (i *identity) checkLog() error {
	err := i.check()
	if err == nil && i.log != nil {
		err = i.compare(i.path+"-wal", i.log)
	}
	return err
}

func (i *identity) compare(path string, was fs.FileInfo) error {
	gone := func(how string) error {
		return &store.Error{Kind: store.ErrGone, Path: i.path, Op: "use", Err: errors.New(path + how)}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone(" no longer exists")
	case err == nil && !os.SameFile(was, info):
		return gone(" was replaced by another file")
	}
	return err
}

// checkConnection compares the store of a new connection with the first one's, inside a transaction.
func (i *identity) checkConnection(ctx context.Context, conn *sql.Conn) error {
	log, err := statFile(i.path + "-wal")
	if err != nil {
		return err
	}
	var id int64
	if err := conn.QueryRowContext(ctx, "SELECT value FROM counters WHERE name = 'identity'").Scan(&id); err != nil {
		return err
	}
	if i.id != 0 && id != i.id {
		return &store.Error{Kind: store.ErrGone, Path: i.path, Op: "use", Err: errors.New("replaced by another store")}
	}
	i.log, i.id = log, id
	return nil
}
