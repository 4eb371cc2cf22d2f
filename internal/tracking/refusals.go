package tracking

import (
	"cmp"
	"slices"
)

// Refusals returns the rows of items that an answer to a create names together with a sign of error. A row that the
// answer does not name has the outcome of its batch.
//
// An object decides at most one row: the one with exactly its referId and number, else the only one that it can mean.
// If it can mean several, or has only the referId or the number of some, these are ambiguous.
//
// blanket says that all of several rows are listed as refused, some without a reason: an answer that repeats the
// request beside its error looks like that. The rows without a reason are left out.
//
// Assumed: refusals of single rows in an answer to a create are not shown.
func (b *Body) Refusals(items []Item) (rows []RefusedRow, blanket bool) {
	if !b.JSON() {
		return nil, false
	}
	r := refusals{items: items}
	r.walk(b.root, neutral)
	return r.rows()
}

type refusals struct {
	items     []Item
	exact     index // by referId and number
	folded    index // the same with folded numbers
	decided   map[int]bool
	found     []refusal
	byHalf    map[Key][]int  // rows by referId alone, and by folded number alone
	ambiguous map[int]string // reasons by row
}

type refusal struct {
	RefusedRow
	explicit bool // the object itself has a sign of error or a reason
}

// index finds a row by referId and number, or by one of them with the other one empty.
type index map[Key]int

const severalRows = -1

func (x index) add(k Key, i int) {
	if _, twice := x[k]; twice {
		i = severalRows
	}
	x[k] = i
}

func (x index) row(k Key) (int, bool) {
	i, ok := x[k]
	return i, ok && i != severalRows
}

func refusedUnder(name string) bool {
	return slices.Contains([]string{"failed", "failures", "rejected", "refused", "invalid", "errors", "error"}, name)
}

// scope says what a part of an answer means for rows that it names without a sign of error.
type scope int

const (
	neutral  scope = iota // nothing
	refusing              // they are refused: the part is in a member such as "failed"
)

func (r *refusals) walk(v *value, in scope) {
	switch v.kind {
	case list:
		for _, item := range v.items {
			r.walk(item, in)
		}
	case object:
		if r.decides(v, in) {
			return
		}
		for _, m := range v.members {
			if refusedUnder(m.name) {
				r.walk(m.value, refusing)
			} else {
				r.walk(m.value, in)
			}
		}
	}
}

func names(v *value) (refer, number string) {
	refer, number = v.str(FieldReferID), cmp.Or(v.str(FieldNumber), v.str("trackingNumber"))
	if item := v.get("item"); refer == "" && number == "" && item != nil && item.kind == object {
		return names(item)
	}
	return refer, number
}

// decides records what v says about rows, and reports whether it names exactly one.
func (r *refusals) decides(v *value, in scope) bool {
	refer, number := names(v)
	if refer == "" && number == "" {
		return false
	}
	r.prepare()
	i, ok := r.exact.row(Key{refer, number})
	if !ok {
		i, ok = r.folded.row(Key{refer, FoldNumber(number)})
	}
	own := rowError(v)
	if in == neutral && !own {
		return ok
	}
	why := errorText(v, 0)
	if !ok {
		r.addAmbiguous(refer, FoldNumber(number), why)
	} else if !r.decided[i] {
		r.decided[i] = true
		r.found = append(r.found, refusal{RefusedRow{Key: r.items[i].Key(), Reason: why}, own || why != ""})
	}
	return ok
}

// prepare builds the indexes once an object names a row. Most answers name none.
func (r *refusals) prepare() {
	if r.exact != nil {
		return
	}
	r.exact, r.folded = make(index, 3*len(r.items)), make(index, 2*len(r.items))
	r.decided, r.ambiguous = make(map[int]bool), make(map[int]string)
	r.byHalf = make(map[Key][]int, 2*len(r.items))
	for i, it := range r.items {
		bare := FoldNumber(it.Number)
		r.exact.add(it.Key(), i)
		r.exact.add(Key{Number: it.Number}, i)
		r.exact.add(Key{ReferID: it.ReferID}, i)
		r.folded.add(Key{it.ReferID, bare}, i)
		r.folded.add(Key{Number: bare}, i)
		for _, half := range []Key{{ReferID: it.ReferID}, {Number: bare}} {
			r.byHalf[half] = append(r.byHalf[half], i)
		}
	}
}

func rowError(v *value) bool {
	words := []string{
		"rejected", "refused", "failed", "invalid", "error", "REJECTED", "REFUSED", "FAILED", "INVALID", "ERROR",
	}
	isFalse := func(name string) bool { return v.literal(name) == "false" }
	return signOfError(v) || slices.ContainsFunc([]string{"accepted", "created", "ok"}, isFalse) ||
		// A number in `status` is the status of the tracking, not of an error.
		slices.Contains(words, v.str("status")) || slices.Contains(words, v.str("result"))
}

// addAmbiguous records the rows that have the referId or the number, each once.
func (r *refusals) addAmbiguous(refer, bare, why string) {
	for _, half := range []Key{{ReferID: refer}, {Number: bare}} {
		for _, i := range r.byHalf[half] {
			r.ambiguous[i] = why
		}
		delete(r.byHalf, half)
	}
}

// rows returns the refused rows, without those that are refused only because all are.
func (r *refusals) rows() (rows []RefusedRow, blanket bool) {
	for i := range r.items {
		if why, ok := r.ambiguous[i]; ok && !r.decided[i] {
			row := RefusedRow{Key: r.items[i].Key(), Reason: why, Ambiguous: true}
			r.found = append(r.found, refusal{row, why != ""})
		}
	}
	all := len(r.items) > 1 && len(r.found) == len(r.items)
	for _, f := range r.found {
		if all && !f.explicit {
			blanket = true
			continue
		}
		f.Reason = cmp.Or(f.Reason, "the service refused this row without saying why")
		rows = append(rows, f.RefusedRow)
	}
	return rows, blanket
}
