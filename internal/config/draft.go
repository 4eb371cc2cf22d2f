package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/waybill-cli/waybill/internal/disk"
)

// ErrChanged reports that the user file has changed since its draft was opened.
var ErrChanged = errors.New("changed by another program meanwhile")

// lockWait is how long to wait while another program replaces the user file.
const lockWait = 10 * time.Second

const lockPause = 5 * time.Millisecond

// Draft is a pending change of the user file.
type Draft struct {
	Path string // of the user file
	Old  []byte // its content; nil if there is no such file

	loader *loader
	made   userFile // decoded from Old
	fault  error    // why Old is invalid
}

// OpenDraft reads the user file, valid or not. It refuses a file that others may change. The error is a [*KeyError].
func OpenDraft(src Sources) (*Draft, error) {
	l, err := newLoader(src)
	if err != nil {
		return nil, err
	}
	d := &Draft{Path: l.paths.User, loader: l}
	if d.Path == "" {
		return nil, at(wrong("no user file: there is no home folder", "pass --config FILE"), "", Origin{Level: FromUser})
	}
	data, info, err := l.readUser()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := l.refuseUserChangers(info); err != nil {
		return nil, err
	}
	d.Old = data
	d.made, d.fault = l.decodeUser(d.Old, d.Path)
	return d, nil
}

// Profile returns the profile in force; an error if the file does not have it. Other faults of the file are ignored.
func (d *Draft) Profile() (string, error) {
	if len(d.made.profiles) == 0 {
		return "", d.fault
	}
	name, _, err := d.made.chosen(d.loader.environment, d.loader.flags)
	return name, err
}

// Has reports whether the file sets a key, known or not, in a profile.
func (d *Draft) Has(profile, key string) bool {
	_, n, _ := parse(d.Old) // nil if the text is not valid
	for _, name := range placeOf(profile, key) {
		i := find(n, name)
		if i < 0 {
			return false
		}
		n = n.Content[i+1]
	}
	return true
}

// Text returns the value of a key in a profile of the file, as it is displayed; empty if it is not set.
func (d *Draft) Text(profile, key string) string {
	if v, ok := d.made.profiles[profile][key]; ok {
		return text(v.v)
	}
	return ""
}

// Holds reports whether the file sets a key in a profile to this secret.
func (d *Draft) Holds(profile, key string, secret Secret) bool {
	has, isSecret := d.made.profiles[profile][key].v.(Secret)
	return isSecret && has.Reveal() == secret.Reveal()
}

// shortestHidden is the minimum length, in bytes, of secrets that [Draft.Hide] hides: shorter text may occur elsewhere.
const shortestHidden = 8

// Hide replaces secrets in data with marks, for a copy that outlives this process. restore puts the secrets back.
func (d *Draft) Hide(data []byte) (hidden []byte, restore func([]byte) []byte) {
	var forth, back []string
	for _, name := range d.made.names() {
		for _, v := range d.made.profiles[name] {
			s, isSecret := v.v.(Secret)
			if text := s.Reveal(); isSecret && len(text) >= shortestHidden && !slices.Contains(forth, text) {
				mark := fmt.Sprintf("kept-secret-%d", len(forth)/2+1)
				forth, back = append(forth, text, mark), append(back, mark, text)
			}
		}
	}
	restore = func(edited []byte) []byte { return []byte(strings.NewReplacer(back...).Replace(string(edited))) }
	hidden = []byte(strings.NewReplacer(forth...).Replace(string(data)))
	if !bytes.Equal(restore(hidden), data) { // it already contains a mark
		return data, func(edited []byte) []byte { return edited }
	}
	return hidden, restore
}

// Check returns why [Load] would refuse data as the user file: a [*KeyError] that names file. It checks every profile.
func (d *Draft) Check(data []byte, file string) error {
	made, err := d.loader.decodeUser(data, file)
	if err != nil {
		return err
	}
	for _, name := range made.names() {
		if err := d.decided(made, name); err != nil {
			return err
		}
	}
	return nil
}

// decided checks the combined settings of a profile. Of flags and environment, only insecure_http counts.
func (d *Draft) decided(made userFile, profile string) error {
	if _, _, err := made.chosen(); err != nil {
		return err
	}
	layers := []layer{made.profiles[DefaultProfile], made.profiles[profile]}
	for _, from := range []layer{d.loader.environment, d.loader.flags} {
		if v, ok := from["insecure_http"]; ok {
			layers = append(layers, layer{"insecure_http": v})
		}
	}
	_, err := d.loader.decide(layers)
	return err
}

// Replace atomically replaces the user file with data, mode 0600. It follows a symbolic link, which stays. The error is
// a [*KeyError]; it wraps [ErrChanged] if the file has changed since [OpenDraft].
func (d *Draft) Replace(data []byte) error {
	err := d.replace(data)
	if err != nil {
		err = &KeyError{Message: "not written: " + cause(err), Hint: "check the folder and its permissions", Err: err}
	}
	return at(err, "", Origin{Level: FromUser, File: d.Path})
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

// lockBeside takes the lock for replacing a file. unlock removes the lock file where an open file can be removed.
func lockBeside(path string) (unlock func(), err error) {
	path += ".lock"
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("remove " + path + ": it is no regular file, so it can't be the lock of the user file")
	}
	for end := time.Now().Add(lockWait); ; {
		l := flock.New(path, flock.SetPermissions(0o600))
		locked, err := l.TryLock()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		if locked {
			mine, errMine := l.Stat()
			now, errNow := os.Stat(path)
			if errMine == nil && errNow == nil && os.SameFile(mine, now) { // otherwise its last holder removed it
				return func() {
					_ = os.Remove(path) // a leftover does no harm
					_ = l.Close()
				}, nil
			}
		}
		_ = l.Close() // another process holds it, or the file is gone
		if time.Now().After(end) {
			return nil, errors.New("another program holds the lock " + path)
		}
		<-time.After(lockPause)
	}
}
