package track

import (
	"maps"
	"slices"

	"github.com/waybill-cli/waybill/internal/query"
)

// maxHeld is how many results wait for one that comes before them. If there are
// more, they go first.
const maxHeld = 256

// inOrder passes results on in the order in which they were asked for.
type inOrder struct {
	pass func(query.Ending) error
	next int64 // place of the result that is due
	held map[int64]query.Ending
}

func newInOrder(pass func(query.Ending) error) *inOrder {
	return &inOrder{pass: pass, held: map[int64]query.Ending{}}
}

func (o *inOrder) add(e query.Ending) error {
	if e.Target.Pos > o.next {
		o.held[e.Target.Pos] = e
		if len(o.held) > maxHeld {
			return o.flush()
		}
		return nil
	}
	if err := o.pass(e); err != nil || e.Target.Pos < o.next {
		return err
	}
	for o.next++; ; o.next++ {
		e, ok := o.held[o.next]
		if !ok {
			return nil
		}
		delete(o.held, o.next)
		if err := o.pass(e); err != nil {
			return err
		}
	}
}

func (o *inOrder) flush() error {
	for _, pos := range slices.Sorted(maps.Keys(o.held)) {
		e := o.held[pos]
		delete(o.held, pos)
		o.next = pos + 1
		if err := o.pass(e); err != nil {
			return err
		}
	}
	return nil
}
