// Package disk provides file system information that the standard library lacks: how much space is free, and who
// besides the user may change a file. It creates files that leave nothing behind.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ForeignError reports that a file belongs to another user, in a folder where others may write.
type ForeignError struct {
	Path  string
	Owner string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to %s, in a folder that other users can write to", e.Path, e.Owner)
}

// TempError reports that a temporary file or folder could not be created.
type TempError struct{ Err error }

func (e *TempError) Error() string { return "temporary file: " + e.Err.Error() }
func (e *TempError) Unwrap() error { return e.Err }

// Changers says who besides the user and root can change or replace a file. The zero value means nobody.
type Changers struct {
	Text   string // such as `everybody may write it`
	Group  bool   // a group that the user belongs to
	Owner  bool   // another user owns it
	Folder bool   // the file's folder is the problem
}

// RemoveAll removes path and everything below it. Unlike [os.RemoveAll] it removes one file at a time: on a Windows
// without POSIX deletes, such as Wine, os.RemoveAll fails.
func RemoveAll(path string) (err error) {
	var found []string
	_ = filepath.WalkDir(path, func(name string, _ fs.DirEntry, _ error) error {
		found = append(found, name)
		return nil
	})
	for _, name := range slices.Backward(found) {
		if gone := os.Remove(name); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

const (
	spillParts = 256
	spillBlock = 8 << 10 // bytes of a part held in memory
)

// Spill stores records by key, in parts: all records of a key are in one part. Up to one block of a part is in
// memory; further blocks go to an unnamed file. The zero value is empty. It is not safe for concurrent use.
type Spill struct {
	parts [spillParts]spillPart
	file  *os.File // nil while everything is in memory
	end   int64
}

type spillPart struct {
	buffer []byte
	blocks []span // in the file
}

type span struct{ at, size int64 }

// Add stores a record under a key. Callers must be able to separate the records.
func (s *Spill) Add(key uint64, record ...byte) error {
	p := &s.parts[key%spillParts]
	p.buffer = append(p.buffer, record...)
	if len(p.buffer) < spillBlock {
		return nil
	}
	if s.file == nil {
		f, err := Temp()
		if err != nil {
			return err
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(p.buffer, s.end); err != nil {
		return err
	}
	size := int64(len(p.buffer))
	p.blocks = append(p.blocks, span{s.end, size})
	s.end += size
	p.buffer = p.buffer[:0]
	return nil
}

// Parts calls do with the records of one part after another, in the order in which they were added. They are valid
// until do returns.
func (s *Spill) Parts(do func(records []byte) error) error {
	var all []byte
	for i := range s.parts {
		p := &s.parts[i]
		all = all[:0]
		for _, b := range p.blocks {
			from := len(all)
			all = append(all, make([]byte, b.size)...)
			if _, err := s.file.ReadAt(all[from:], b.at); err != nil && err != io.EOF {
				return err
			}
		}
		if err := do(append(all, p.buffer...)); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the stored records.
func (s *Spill) Close() {
	_ = s.file.Close() // nobody reads it again; nil while everything was in memory
	*s = Spill{}
}
