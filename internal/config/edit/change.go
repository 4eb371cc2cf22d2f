// Package edit changes the user file of settings. Everything in it that is not changed stays, comments too. A change
// that [config.Load] would refuse is not written, and one by another program at the same time is not lost.
package edit

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
)

// Change sets or removes a setting in the user file.
type Change struct {
	Key string // of a setting, or of one name in a setting, such as carriers.UPS
	// A string in the form of the environment variable, a [config.Secret], a []string, a map[string]string or a
	// [webhook.Scheme]; nil removes the key, known or not.
	Value any
}

// Set changes a profile in the user file and returns the file's path. The profile in force can be set only in
// [config.DefaultProfile]. The file is created if missing, 0600 in a 0700 folder, and replaced atomically. A change
// that [config.Load] would refuse is an error.
//
// A secret as a string is refused: secrets must not be on command lines. The error is a [*config.KeyError].
func Set(src config.Sources, profile string, changes ...Change) (string, error) {
	keys := make([]string, len(changes))
	nodes := make([]*yaml.Node, len(changes))
	for {
		f, err := config.OpenUserFile(src)
		if err != nil {
			return "", err
		}
		for i, c := range changes {
			v, err := f.Value(c.Key, c.Value)
			if err != nil {
				return "", err
			}
			keys[i], nodes[i] = c.Key, nodeOf(v)
		}
		data, err := edited(f.Data, profile, changes, nodes)
		if err != nil {
			return "", cmp.Or(f.Fault, refuse(f, err.Error(), "edit the file by hand", nil))
		}
		if err := f.CheckChange(data, profile, keys...); err != nil {
			return "", err
		}
		if err := Replace(f, data); !errors.Is(err, ErrChanged) {
			return f.Path, err
		}
	}
}

// ErrChanged reports that the user file has changed since it was opened.
var ErrChanged = errors.New("changed by another program meanwhile")

// lockWait is how long to wait while another program replaces the user file.
const lockWait = 10 * time.Second

const lockPause = 5 * time.Millisecond

// Replace atomically replaces the user file with data, mode 0600. It follows a symbolic link, which stays. The error is
// a [*config.KeyError]; it wraps [ErrChanged] if the file has changed since it was opened.
func Replace(f config.UserFile, data []byte) error {
	if err := replace(f, data); err != nil {
		return refuse(f, "not written: "+config.Cause(err), "check the folder and its permissions", err)
	}
	return nil
}

// refuse returns a [*config.KeyError] about the whole user file.
func refuse(f config.UserFile, message, hint string, cause error) error {
	o := config.Origin{Level: config.FromUser, File: f.Path}
	return &config.KeyError{Origin: o, File: f.Path, Message: message, Hint: hint, Err: cause}
}

func replace(old config.UserFile, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(old.Path), 0o700); err != nil {
		return err
	}
	unlock, err := lockBeside(old.Path)
	if err != nil {
		return err
	}
	defer unlock()
	target, err := disk.Resolve(old.Path)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(target)
	isMissing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isMissing {
		return err
	}
	if isMissing != (old.Data == nil) || !bytes.Equal(now, old.Data) {
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

// edited applies changes, whose values are nodes, to a user file. It keeps empty lines unless that would alter a value.
func edited(old []byte, profile string, changes []Change, nodes []*yaml.Node) ([]byte, error) {
	made, err := encoded(old, profile, changes, nodes)
	if err != nil || !bytes.Contains(old, []byte("\n\n")) {
		return made, err
	}
	spaced, err := encoded(markBlank(old), profile, changes, nodes)
	spaced = regexp.MustCompile(`(?m)^ *`+blankMark+`$`).ReplaceAll(spaced, nil)
	spaced = append(bytes.TrimRight(spaced, "\n"), '\n')
	if err == nil && sameValues(made, spaced) {
		return spaced, nil
	}
	return made, nil
}

func sameValues(a, b []byte) bool {
	var x, y any
	return yaml.Unmarshal(a, &x) == nil && yaml.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// blankMark replaces an empty line, which the encoder would drop.
const blankMark = "#\u00a0empty"

// markBlank marks the empty lines of a YAML text, indented like the line after them.
func markBlank(text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	indent := ""
	for i, line := range slices.Backward(lines[:len(lines)-1]) { // the last line does not end in a newline
		if content := strings.TrimLeft(line, " "); strings.TrimSpace(line) != "" {
			indent = line[:len(line)-len(content)]
		} else {
			lines[i] = indent + blankMark
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// encoded does what edited does, but drops empty lines.
func encoded(old []byte, profile string, changes []Change, nodes []*yaml.Node) ([]byte, error) {
	doc, root, err := config.ParseYAML(old)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if doc == nil {
		root = &yaml.Node{Kind: yaml.MappingNode}
		doc = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}
		if text := bytes.TrimSpace(old); bytes.HasPrefix(text, []byte("#")) {
			out.Write(append(text, '\n')) // only comments
		}
	}
	for i, c := range changes {
		place := config.Place(profile, c.Key)
		if c.Value == nil {
			remove(root, place, len(place)-len(config.Place(config.DefaultProfile, c.Key)))
		} else {
			put(root, place, nodes[i])
		}
	}
	if len(root.Content) == 0 {
		if text := comments(doc.HeadComment, root.HeadComment, doc.FootComment); text != "" {
			out.WriteString(text + "\n")
		}
		return out.Bytes(), nil
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	var want, got any
	err = errors.Join(enc.Encode(doc), enc.Close(), doc.Decode(&want))
	if err != nil || yaml.Unmarshal(out.Bytes(), &got) != nil || !reflect.DeepEqual(want, got) {
		return nil, errors.New("can't be written to the file unchanged")
	}
	return out.Bytes(), nil
}
