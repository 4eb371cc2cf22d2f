package listen

import (
	"errors"
	"io"
	"sync/atomic"
)

// Bounds of the memory that bodies take.
const (
	freeBody  = 16 << 10 // bytes of each body that are not counted
	heldAtAll = 64 << 20 // bytes of all bodies beyond that, or of two of the greatest if that is more
)

// errNoRoom says that too much is waiting to be stored already.
var errNoRoom = errors.New("too many bodies at once")

// room is how many bytes of bodies may still be held. A body holds its share
// until it is stored, so that many large ones at once are told to come again
// instead of taking all memory; small ones are not counted.
type room struct{ left atomic.Int64 }

func (r *room) take(n int64) bool {
	if n > 0 && r.left.Add(-n) < 0 {
		r.left.Add(n)
		return false
	}
	return true
}

// body is a request's body on its way in.
type body struct {
	bytes []byte
	room  *room
	held  int64 // bytes taken of room
}

// readAll reads to the end. size is how long the sender says it is, -1 for
// unknown. No more is set aside at first than a usual delivery needs: a slow
// sender may announce much and send nothing.
func (b *body) readAll(from io.Reader, size int64) error {
	if size < 0 {
		size = 0
	}
	b.bytes = make([]byte, 0, min(size, freeBody)+1) // one more, to meet the end
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
	more := max(0, int64(size)-freeBody) - b.held
	if !b.room.take(more) {
		return errNoRoom
	}
	b.held += more
	grown := make([]byte, len(b.bytes), size)
	copy(grown, b.bytes)
	b.bytes = grown
	return nil
}

// release gives the room back. It may be called more than once.
func (b *body) release() {
	b.room.left.Add(b.held)
	b.held = 0
}
