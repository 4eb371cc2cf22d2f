// Package disk says what the file system knows and the standard library does
// not show: how much room is left, who besides the user may change a file. It
// makes files that leave nothing behind.
package disk

import (
	"fmt"
)

// ForeignError says that another user put a file where others may write.
type ForeignError struct {
	Path  string
	Owner string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to %s, in a folder that other users can write to", e.Path, e.Owner)
}

// Changers says who besides the user and root can change a file or put another
// in its place. The zero value stands for nobody.
type Changers struct {
	Text   string // such as `everybody may write it`
	Group  bool   // they are a group that the user belongs to
	Owner  bool   // another user owns it
	Folder bool   // it is about the file's folder
}
