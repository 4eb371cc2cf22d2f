package listen

import (
	"errors"
	"io"
	"sync/atomic"
)

const (
	uncountedBody = 16 << 10 // bytes of each body that are not counted
	minBodyBudget = 64 << 20 // bytes of all bodies beyond that, or of two of the greatest if that is more
)

// errNoMemory says that too many bytes wait to be stored already.
var errNoMemory = errors.New("too many bodies at once")

// memBudget limits the bytes of all bodies in memory. A body holds its share
// until it is stored. Beyond the limit the sender is asked to try again. The
// first 16 KiB of a body are not counted.
type memBudget struct{ left atomic.Int64 }

func (r *memBudget) reserve(n int64) bool {
	if n > 0 && r.left.Add(-n) < 0 {
		r.left.Add(n)
		return false
	}
	return true
}

type body struct {
	bytes    []byte
	budget   *memBudget
	reserved int64 // bytes of the budget
}

// readAll reads to the end. size is the length that the sender announced, -1
// for none. At first it allocates what a usual delivery needs: a slow sender
// may announce much and send nothing.
func (b *body) readAll(from io.Reader, size int64) error {
	if size < 0 {
		size = 0
	}
	b.bytes = make([]byte, 0, min(size, uncountedBody)+1) // one more, to meet the end
	for {
		if len(b.bytes) == cap(b.bytes) {
			if err := b.grow(max(2*cap(b.bytes), 512)); err != nil {
				return err
			}
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (b *body) grow(size int) error {
	more := max(0, int64(size)-uncountedBody) - b.reserved
	if !b.budget.reserve(more) {
		return errNoMemory
	}
	b.reserved += more
	grown := make([]byte, len(b.bytes), size)
	copy(grown, b.bytes)
	b.bytes = grown
	return nil
}

// release returns the bytes to the budget. It may be called more than once.
func (b *body) release() {
	b.budget.left.Add(b.reserved)
	b.reserved = 0
}
