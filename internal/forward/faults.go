package forward

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// Faults are what goes wrong on purpose while deliveries are sent. The zero
// Faults are none. All that is left to chance follows from Seed alone, and
// each fault from a chance of its own: adding one changes no other.
type Faults struct {
	Duplicate int           // how many more times each delivery is sent
	Reorder   bool          // in an order by chance
	Drop      float64       // how likely each sending is left out, from 0 to 1
	Delay     time.Duration // the longest wait before each sending
	Corrupt   bool          // signatures are altered
	Seed      uint64
}

// Sending is one step of a plan.
type Sending struct {
	Index int           // of the delivery, from 0
	Copy  int           // 0 the first time, then 1, 2, …
	Wait  time.Duration // before it
}

// Plan returns what is sent of n deliveries, in order, and how many sendings
// were dropped. Without Reorder, more deliveries make the plan longer and
// change nothing of what came before.
func (f Faults) Plan(n int) (steps []Sending, dropped int) {
	drop, wait := f.random("drop"), f.random("delay")
	for i := range n {
		for c := range 1 + f.Duplicate {
			s := Sending{Index: i, Copy: c}
			if f.Delay > 0 {
				s.Wait = time.Duration(wait.Float64() * float64(f.Delay))
			}
			if drop.Float64() < f.Drop {
				dropped++
				continue
			}
			steps = append(steps, s)
		}
	}
	if f.Reorder {
		f.random("reorder").Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	return steps, dropped
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
