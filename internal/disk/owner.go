package disk

import "fmt"

// ForeignError says that another user put a file where others may write.
type ForeignError struct {
	Path  string
	Owner string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to %s, in a folder where others may write", e.Path, e.Owner)
}
