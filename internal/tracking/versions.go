package tracking

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
	"time"
)

// Version is what one answer or event said of a shipment.
type Version struct {
	Tracking
	Learnt time.Time
	// Event says that it is from an event, which may come late, and may leave out
	// what is older than its oldest checkpoint.
	//
	// Assumed: that a delivery holds the whole timeline is not shown.
	Event bool
}

// VersionLog compares the versions of one tracking, given to it in the order in
// which they were learnt. The zero VersionLog is empty.
type VersionLog struct {
	entries []Entry   // present ones, and those removed
	last    Version   // the last one that counted; its Learnt is zero if there was none
	latest  time.Time // the latest checkpoint that any version had
	back    []Anomaly // of the tracking as a whole, those that hold now
	marked  map[mark]bool
}

// mark is one anomaly of a checkpoint by itself.
type mark struct {
	content [6]string
	kind    AnomalyKind
	message string
}

// Change is what a version changed.
type Change struct {
	First bool // there was none before
	// Older says that one of the two is an event, and the version is still
	// processing or older by the service's own times. It changes nothing.
	Older bool

	Before    Tracking // the version before, for its status
	Status    bool     // the status changed
	Added     []Checkpoint
	Removed   []Checkpoint
	Rewritten []Rewrite
	Anomalies []Anomaly // StatusBack and TimeBack, where this version brought them
	Marked    []Entry   // checkpoints with an anomaly of their own that no version had before
}

// Rewrite is a checkpoint that was replaced by another of the same time.
type Rewrite struct{ Was, Is Checkpoint }

// None reports whether a version changed nothing.
func (c Change) None() bool {
	return !c.First && !c.Older && !c.Status && len(c.Added)+len(c.Removed)+len(c.Rewritten)+len(c.Anomalies) == 0
}

// Add compares a version with those before it.
//
// Assumed: no order of statuses is shown, but that delivered is the last one.
func (l *VersionLog) Add(v Version) Change {
	c := Change{First: l.last.Learnt.IsZero(), Before: l.last.Tracking}
	if !c.First && (v.Event || l.last.Event) && (v.Processing && !v.Known() || v.Times().Compare(l.last.Times()) < 0) {
		c.Older = true
		return c
	}
	if v.Known() && v.status() == [3]string{} { // it does not say
		v.Status, v.StatusLabel, v.StatusTrack = l.last.Status, l.last.StatusLabel, l.last.StatusTrack
	}
	c.Status = !c.First && v.status() != l.last.status()
	c.Anomalies = l.compareState(v)
	if v.Known() {
		l.compareTimeline(v, &c)
		c.Marked = l.newMarks(v)
	}
	l.last = v
	return c
}

// newMarks returns the checkpoints of a version that have an anomaly of their own
// for the first time.
func (l *VersionLog) newMarks(v Version) (found []Entry) {
	for _, e := range Entries(v.Checkpoints, v.Learnt) {
		for _, a := range e.Anomalies {
			m := mark{e.content(), a.Kind, a.Message}
			if l.marked[m] {
				continue
			}
			if l.marked == nil {
				l.marked = map[mark]bool{}
			}
			l.marked[m] = true
			found = append(found, Entry{e.Checkpoint, []Anomaly{a}})
		}
	}
	return found
}

// compareState updates what cannot be right in the tracking as a whole, and
// returns what is new of it.
func (l *VersionLog) compareState(v Version) []Anomaly {
	held := l.back
	l.back = nil
	keep := func(kind AnomalyKind, begins bool, message string) {
		if i := slices.IndexFunc(held, func(a Anomaly) bool { return a.Kind == kind }); i >= 0 {
			l.back = append(l.back, held[i])
		} else if begins {
			l.back = append(l.back, Anomaly{Kind: kind, Message: message, Since: v.Learnt})
		}
	}
	if !v.Delivered() {
		keep(StatusBack, l.last.Delivered(), "was "+cmp.Or(l.last.StatusLabel, l.last.StatusTrack, l.last.Status))
	}
	at := v.Times().Checkpoint
	if at.Before(l.latest) {
		keep(TimeBack, !at.IsZero(), "latest checkpoint was at "+l.latest.Format(time.RFC3339))
	} else {
		l.latest = at
	}
	return slices.DeleteFunc(slices.Clone(l.back), func(a Anomaly) bool {
		return slices.ContainsFunc(held, func(h Anomaly) bool { return h.Kind == a.Kind })
	})
}

// compareTimeline puts the checkpoints of a version in place of the present ones.
// One of the same content is the same; then one of the same time is rewritten.
func (l *VersionLog) compareTimeline(v Version, c *Change) {
	left := newPool(v.Checkpoints)
	var open []int // present entries that the version does not have as they are
	for i, e := range l.entries {
		if e.Removed() {
			continue
		}
		if is, ok := left.takeSame(e.Checkpoint); ok {
			l.entries[i].Checkpoint = is
		} else {
			open = append(open, i)
		}
	}
	back := l.restore(left)
	oldest := v.oldest()
	for _, i := range open {
		e := &l.entries[i]
		was := e.Checkpoint
		if is, ok := left.takeSameTime(was); ok {
			e.Checkpoint = is
			r := Rewrite{was, is}
			e.Anomalies = append(e.Anomalies, Anomaly{Kind: Rewritten, Message: "was: " + r.Difference(), Since: v.Learnt, Was: &was})
			c.Rewritten = append(c.Rewritten, r)
		} else if at := readTime(was.UTC); !v.Event || !oldest.IsZero() && at.After(oldest) {
			e.Anomalies = append(e.Anomalies, Anomaly{Kind: Removed, Message: "removed", Since: v.Learnt})
			c.Removed = append(c.Removed, was)
		}
	}
	c.Added = left.rest()
	for _, added := range c.Added {
		l.entries = append(l.entries, Entry{Checkpoint: added})
	}
	c.Added = append(c.Added, back...)
}

// restore makes removed entries present again that are in the pool, and returns
// them.
func (l *VersionLog) restore(left *pool) (back []Checkpoint) {
	for i, e := range l.entries {
		if !e.Removed() {
			continue
		}
		if is, ok := left.takeSame(e.Checkpoint); ok {
			back = append(back, is)
			l.entries[i].Checkpoint = is
			l.entries[i].Anomalies = slices.DeleteFunc(e.Anomalies, func(a Anomaly) bool { return a.Kind == Removed })
		}
	}
	return back
}

// Entries returns the present checkpoints and those removed, newest first, each
// with what cannot be right in it.
func (l *VersionLog) Entries() []Entry { return marked(l.entries, l.last.Learnt) }

// Checkpoints returns the present checkpoints, newest first.
func (l *VersionLog) Checkpoints() []Checkpoint {
	var present []Checkpoint
	for _, e := range l.entries {
		if !e.Removed() {
			present = append(present, e.Checkpoint)
		}
	}
	return Timeline(present)
}

// Anomalies returns what cannot be right in the tracking as a whole.
func (l *VersionLog) Anomalies() []Anomaly { return l.back }

// pool are checkpoints that are taken out one by one.
type pool struct {
	all       []Checkpoint
	taken     []bool
	byContent map[[6]string][]int
	byTime    map[string][]int
}

func newPool(cs []Checkpoint) *pool {
	p := &pool{cs, make([]bool, len(cs)), map[[6]string][]int{}, map[string][]int{}}
	for i, c := range cs {
		p.byContent[c.content()] = append(p.byContent[c.content()], i)
		if at := c.instant(); at != "" {
			p.byTime[at] = append(p.byTime[at], i)
		}
	}
	return p
}

func (p *pool) takeSame(c Checkpoint) (Checkpoint, bool) {
	return takeFrom(p, p.byContent, c.content())
}

func (p *pool) takeSameTime(c Checkpoint) (Checkpoint, bool) {
	return takeFrom(p, p.byTime, c.instant())
}

// takeFrom takes the first checkpoint of a key that was not taken yet.
func takeFrom[K comparable](p *pool, by map[K][]int, key K) (Checkpoint, bool) {
	for len(by[key]) > 0 {
		i := by[key][0]
		by[key] = by[key][1:]
		if !p.taken[i] {
			p.taken[i] = true
			return p.all[i], true
		}
	}
	return Checkpoint{}, false
}

// rest returns what was not taken.
func (p *pool) rest() []Checkpoint {
	var left []Checkpoint
	for i, c := range p.all {
		if !p.taken[i] {
			left = append(left, c)
		}
	}
	return left
}

// Difference says what the checkpoint was where it is something else now.
func (r Rewrite) Difference() string {
	var was []string
	for _, pair := range [...][2]string{
		{r.Was.Event, r.Is.Event}, {r.Was.City, r.Is.City}, {r.Was.State, r.Is.State}, {r.Was.ZIP, r.Is.ZIP}, {r.Was.Local, r.Is.Local},
	} {
		if pair[0] != pair[1] {
			was = append(was, cmp.Or(pair[0], "empty"))
		}
	}
	return strings.Join(was, ", ")
}

// Delivered reports whether the status is the one of a delivered shipment.
//
// Interface: States and transitions.
func (t Tracking) Delivered() bool { return t.HasStatus("1") || t.HasStatus("delivered") }

func (t Tracking) status() [3]string { return [3]string{t.Status, t.StatusLabel, t.StatusTrack} }

// oldest returns the time of the oldest checkpoint, zero if there is none that
// can be read.
func (t Tracking) oldest() time.Time {
	var oldest time.Time
	for _, c := range t.Checkpoints {
		if at := readTime(c.UTC); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

// Digest returns a short value that two answers about a tracking share if they
// say the same of its status and timeline, in whatever order the checkpoints
// are. It is empty if the tracking says nothing of a shipment.
func (t Tracking) Digest() []byte {
	if !t.Known() {
		return nil
	}
	var lines []string
	for _, c := range t.Checkpoints {
		content := c.content()
		lines = append(lines, strings.Join(content[:], "\x00"))
	}
	slices.Sort(lines)
	lines = append(lines, t.Status, t.StatusLabel, t.StatusTrack, t.StatusSummary, t.LatestEvent, t.LatestTime, t.Error)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\x00\x00")))
	return sum[:digestSize]
}

const digestSize = 16 // bytes

// Digest is [Tracking.Digest] for all trackings of an answer, in whatever order
// they are.
func (a Answer) Digest() []byte {
	var parts []string
	for _, t := range a.Trackings {
		if d := t.Digest(); d != nil {
			parts = append(parts, t.ReferID+"\x00"+FoldNumber(t.Number)+"\x00"+string(d))
		}
	}
	if parts == nil {
		return nil
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00\x00")))
	return sum[:digestSize]
}
