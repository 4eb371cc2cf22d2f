package forward

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Faults are what goes wrong on purpose while deliveries are sent. The zero
// Faults are none. All that is left to chance follows from Seed alone.
type Faults struct {
	Duplicate int  // how many more times each delivery is sent
	Reorder   bool // in an order by chance
	Corrupt   bool // signatures are altered
	Seed      uint64
}

// Sending is one step of a plan.
type Sending struct {
	Index int // of the delivery, from 0
	Copy  int // 0 the first time, then 1, 2, …
}

// Plan returns what is sent of n deliveries, in order.
func (f Faults) Plan(n int) (steps []Sending) {
	for i := range n {
		for c := range 1 + f.Duplicate {
			steps = append(steps, Sending{Index: i, Copy: c})
		}
	}
	if f.Reorder {
		f.random("reorder").Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	return steps
}

// Pick returns a function that chooses from 0 to n-1 for one sending, always
// alike.
func (f Faults) Pick(s Sending) func(n int) int {
	return f.random(fmt.Sprintf("corrupt %d %d", s.Index, s.Copy)).IntN
}

// random returns a source of chance for one purpose.
func (f Faults) random(purpose string) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", f.Seed, purpose))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]))) //nolint:gosec // faults are no secret
}
