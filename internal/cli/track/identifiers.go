package track

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// identifiers are the parts of names of statuses and carriers, as foldIdentifier folds
// them, and whether the store has a reference or a number that is the same. Its zero
// value masks nothing.
type identifiers map[string]bool

// maxWords is how many words of a name one identifier may have.
const maxWords = 12

// findIdentifiers finds which parts of the names of statuses and carriers are identifiers
// of any account of the store.
func (r *reporter) findIdentifiers(ctx context.Context) error {
	r.identifiers = identifiers{}
	for _, g := range r.groups {
		for _, name := range []string{g.Status, g.StatusLabel, g.StatusTrack, g.Carrier} {
			for _, p := range partsOf(name) {
				r.identifiers[foldIdentifier(name[p.start:p.end])] = false
			}
		}
	}
	accounts, err := r.db.History.AccountNames(ctx)
	if err != nil {
		return err
	}
	for _, account := range append(accounts, r.call.Account(ctx)) {
		for st, err := range r.db.Trackings.Statuses(ctx, account, ledger.Filter{}) {
			if err != nil {
				return err
			}
			r.identifiers.mark(st.Item.ReferID)
			r.identifiers.mark(st.Item.Number)
		}
	}
	return nil
}

func (ids identifiers) mark(name string) {
	folded := foldIdentifier(name)
	if _, wanted := ids[folded]; wanted {
		ids[folded] = true
	}
}

// foldIdentifier returns the letters and digits of an identifier, in one case and without
// accents, those of full width as the others: #ORD-100 is ord/100.
func foldIdentifier(s string) string {
	return tracking.FoldNumber(strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return r
	}, norm.NFKD.String(s)))
}

// namePart is a part of a name: words that stand side by side.
type namePart struct{ start, end int }

// partsOf returns the parts of a name that can mean nothing but a tracking: those with a
// digit and at least 4 characters, and those of at least 8. Of two that begin at one
// place, the longer is first.
func partsOf(name string) (parts []namePart) {
	var words []namePart
	inside := false
	for i, r := range name {
		if is := unicode.IsLetter(r) || unicode.IsDigit(r); is && !inside {
			words = append(words, namePart{i, len(name)})
			inside = true
		} else if !is && inside {
			words[len(words)-1].end = i
			inside = false
		}
	}
	for i, first := range words {
		for _, last := range slices.Backward(words[i:min(i+maxWords, len(words))]) {
			text := name[first.start:last.end]
			if n := len([]rune(text)); n >= 8 || n >= 4 && strings.ContainsFunc(text, unicode.IsDigit) {
				parts = append(parts, namePart{first.start, last.end})
			}
		}
	}
	return parts
}

// maskText returns a name with a mask in place of each identifier in it.
func (ids identifiers) maskText(name string) string {
	if len(ids) == 0 {
		return name
	}
	var b strings.Builder
	at := 0
	for _, p := range partsOf(name) {
		if p.start < at || !ids[foldIdentifier(name[p.start:p.end])] {
			continue
		}
		b.WriteString(name[at:p.start] + redact.Mask)
		at = p.end
	}
	return b.String() + name[at:]
}

// maskStatus masks the names of a status.
func (ids identifiers) maskStatus(c ledger.StatusCount) ledger.StatusCount {
	c.Status, c.StatusLabel, c.StatusTrack = ids.maskText(c.Status), ids.maskText(c.StatusLabel), ids.maskText(c.StatusTrack)
	return c
}
