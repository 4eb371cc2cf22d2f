package input

import (
	"os"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/intake"
)

// RejectsFile is a file for bad rows. The zero value, if none was asked for, does
// nothing.
type RejectsFile struct {
	File *command.AtomicFile
	Rows *intake.Rejects
}

// Commit puts the file in its place.
func (f *RejectsFile) Commit() error {
	if f.File == nil {
		return nil
	}
	return f.File.Commit()
}

// Discard removes the file unless it was put in its place.
func (f *RejectsFile) Discard() {
	if f.File != nil {
		f.File.Discard()
	}
}

// SameFile reports whether two paths name one file.
func SameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
