package sandbox

import (
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// parcel is one created tracking. Its journey is worked out when it is asked
// for, from the seed and the number.
type parcel struct {
	item    tracking.Item
	created int       // how often it was created
	at      time.Time // sandbox time of its creation
	real    time.Time // the clock's time of its creation
	instant bool      // made by v1: never Processing
	sent    int       // how many steps of its journey were sent as events
	due     time.Time // sandbox time of the next step that is to be sent; zero if not looked at yet
	changes []appliedChange
}

// state is what the sandbox remembers. Its methods want mu held.
type state struct {
	mu      sync.Mutex
	byKey   map[tracking.Key]int
	byRefer map[string][]int
	byNum   map[string][]int
	parcels []parcel
	counts  Requests
	made    int64
	offset  time.Duration // how far sandbox time is ahead of the clock
}

func newState() *state {
	s := &state{}
	s.reset()
	return s
}

func (s *state) reset() {
	s.byKey, s.byRefer, s.byNum = map[tracking.Key]int{}, map[string][]int{}, map[string][]int{}
	s.parcels, s.counts, s.made, s.offset = nil, Requests{}, 0, 0
}

func (s *state) now() time.Time { return time.Now().Add(s.offset).UTC() }

// store creates the items. Those that are there already are counted again.
func (s *state) store(items []tracking.Item, instant bool) {
	now := s.now()
	for _, it := range items {
		if i, ok := s.byKey[it.Key()]; ok {
			s.parcels[i].created++
			s.made++
			continue
		}
		i := len(s.parcels)
		s.parcels = append(s.parcels, parcel{item: it, created: 1, at: now, real: time.Now(), instant: instant})
		s.byKey[it.Key()] = i
		s.byRefer[it.ReferID] = append(s.byRefer[it.ReferID], i)
		s.byNum[it.Number] = append(s.byNum[it.Number], i)
		s.made++
	}
}

func (s *state) find(refer, number string) []parcel {
	list := s.byRefer[refer]
	if refer == "" {
		list = s.byNum[number]
	}
	found := make([]parcel, len(list))
	for i, j := range list {
		found[i] = s.parcels[j]
	}
	return found
}

// index returns the place of the first parcel with a referId, or with a number, or
// of all if both are empty.
func (s *state) index(refer, number string) (int, bool) {
	list := s.byRefer[refer]
	if refer == "" {
		list = s.byNum[number]
	}
	if refer == "" && number == "" && len(s.parcels) > 0 {
		list = []int{0}
	}
	if len(list) == 0 {
		return 0, false
	}
	return list[0], true
}
