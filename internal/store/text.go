package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// checkText returns an error that matches [ledger.ErrText] if a text, after its name, can't be kept.
func checkText(namesAndTexts ...string) error {
	for i := 1; i < len(namesAndTexts); i += 2 {
		if s := namesAndTexts[i]; !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%s %q: %w", namesAndTexts[i-1], s, ledger.ErrText)
		}
	}
	return nil
}

// matchable returns a text that every database can compare: one that none keeps equals nothing.
func matchable(s string) string {
	if checkText("", s) == nil {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, lastText), "\x00", lastText)
}

// matchables returns the arguments of a query with texts that every database can compare.
func matchables(args []any) []any {
	all := slices.Clone(args)
	for i, arg := range all {
		if s, ok := arg.(string); ok {
			all[i] = matchable(s)
		}
	}
	return all
}

// clean returns s with what cannot be kept replaced. It is for texts that only
// describe: refusing them would lose the outcome they came with.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// Most of a text that an index holds, in bytes: a server has no longer entries than 2,704.
const (
	maxKey   = 1024 // longer than any identifier of a row, see [tracking.Item.Validate]
	maxLabel = 512
)

// foldKey returns the folded number of an event, or its hash if it is long: no other number folds to that.
func foldKey(number string) string {
	folded := tracking.FoldNumber(number)
	if len(folded) > maxKey {
		return fmt.Sprintf("-%x", sha256.Sum256([]byte(folded)))
	}
	return folded
}

// minPacked is how long a text is at least that is worth compressing: a block of
// flate costs more time than the rest of keeping a shorter one.
const minPacked = 2560 // bytes

// gzipMagic begins what was compressed.
const gzipMagic = "\x1f\x8b"

// packer compresses what the service sent. It is safe for concurrent use.
type packer struct{ writers sync.Pool }

// pack compresses raw, unless it is short. It returns nil for nil.
func (p *packer) pack(raw []byte) ([]byte, error) {
	if raw == nil || 0 < len(raw) && len(raw) < minPacked && !bytes.HasPrefix(raw, []byte(gzipMagic)) {
		return raw, nil
	}
	w, ok := p.writers.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // there is such a level
	}
	defer p.writers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

func unpack(packed []byte) ([]byte, error) {
	if !bytes.HasPrefix(packed, []byte(gzipMagic)) {
		return packed, nil
	}
	var raw []byte
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		raw, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, fmt.Errorf("read a kept answer: %w", err)
	}
	return raw, nil
}
