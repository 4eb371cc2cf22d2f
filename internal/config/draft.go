package config

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/waybill-cli/waybill/internal/disk"
)

// ErrChanged says that the user file is no more what it was when a draft of it
// was opened.
var ErrChanged = errors.New("changed by another program meanwhile")

// lockWait is how long others may take to replace the user file.
const lockWait = 10 * time.Second

// lockPause is how long to wait before the lock is tried again.
const lockPause = 5 * time.Millisecond

// Draft is a change of the user file that is being made.
type Draft struct {
	Path string // of the user file
	Old  []byte // what it holds; nil if there is no such file

	loader *loader
}

// OpenDraft reads the user file, valid or not. It refuses one that others may
// change. The error is a [*KeyError].
func OpenDraft(src Sources) (*Draft, error) {
	l, err := newLoader(src)
	if err != nil {
		return nil, err
	}
	d := &Draft{Path: l.paths.User, loader: l}
	if d.Path == "" {
		return nil, wrong("no user file: there is no home folder", "pass --config FILE").at("", Origin{Level: FromUser})
	}
	fault := refuseForeignLinks(d.Path)
	if fault == nil && l.paths.UserExists {
		var info fs.FileInfo
		if d.Old, info, fault = readSettings(d.Path); fault == nil {
			fault = refuseChangers(d.Path, disk.ChangersOf(d.Path, info))
		}
	}
	if fault != nil {
		return nil, fault.at("", Origin{Level: FromUser, File: d.Path})
	}
	return d, nil
}

// Check says why [Load] would refuse data in place of the user file, in a
// [*KeyError] that names file. Every profile is checked.
func (d *Draft) Check(data []byte, file string) error {
	made, err := d.read(data, file)
	if err != nil {
		return err
	}
	for _, name := range append([]string{DefaultProfile}, slices.Sorted(maps.Keys(made.profiles))...) {
		if err := d.decided(made, name, file); err != nil {
			return err
		}
	}
	return nil
}

// read decodes data as the user file, which errors name as file.
func (d *Draft) read(data []byte, file string) (userFile, error) {
	made := userFile{layer{}, map[string]layer{}}
	o := Origin{Level: FromUser, File: file}
	root, fault := parse(data)
	switch {
	case fault != nil:
		return made, fault.at("", o)
	case root == nil:
		return made, nil
	}
	return made, d.loader.fillUser(made, root, o)
}

// decided says what is wrong with the settings of a profile together. Flags and environment count for what they allow.
func (d *Draft) decided(made userFile, profile, file string) error {
	if _, err := made.profile(made.profileName(nil, nil), file); err != nil {
		return err
	}
	flags, err := d.loader.flags()
	if err != nil {
		return err
	}
	env, err := d.loader.environment()
	if err != nil {
		return err
	}
	allowed := layer{}
	for _, from := range []layer{env, flags} {
		if v, ok := from["insecure_http"]; ok {
			allowed["insecure_http"] = v
		}
	}
	_, err = d.loader.decide([]layer{made.top, made.profiles[profile], allowed})
	return err
}

// Replace puts data in the place of the user file, 0600, whole or not at all. A
// link is followed, so that it stays one. The error is a [*KeyError], also where
// it is [ErrChanged].
func (d *Draft) Replace(data []byte) error {
	err := d.replace(data)
	if err == nil {
		return nil
	}
	return (&KeyError{Message: "not written: " + cause(err), Hint: "check the folder and its permissions", Err: err}).at("", Origin{Level: FromUser, File: d.Path})
}

func (d *Draft) replace(data []byte) error {
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o700); err != nil {
		return err
	}
	unlock, err := lockBeside(d.Path)
	if err != nil {
		return err
	}
	defer unlock()
	target, err := disk.Resolve(d.Path)
	if err != nil {
		return err
	}
	switch now, err := os.ReadFile(target); {
	case errors.Is(err, fs.ErrNotExist) && d.Old == nil:
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || d.Old == nil || !bytes.Equal(now, d.Old):
		return ErrChanged
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".config.*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// lockBeside takes the lock of those that replace a file. It leaves nothing
// behind where an open file can be removed.
func lockBeside(path string) (unlock func(), err error) {
	path += ".lock"
	for end := time.Now().Add(lockWait); ; {
		l := flock.New(path, flock.SetPermissions(0o600))
		locked, err := l.TryLock()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		if locked {
			mine, errMine := l.Stat()
			now, errNow := os.Stat(path)
			if errMine == nil && errNow == nil && os.SameFile(mine, now) { // else its last holder removed it
				return func() {
					_ = os.Remove(path) // one that stays does no harm
					_ = l.Close()
				}, nil
			}
		}
		_ = l.Close() // another holds it, or it is the lock of a file that is gone
		if time.Now().After(end) {
			return nil, errors.New("another program holds the lock " + path)
		}
		<-time.After(lockPause)
	}
}
