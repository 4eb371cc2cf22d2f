package intake_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
)

// result is all that reading an input gave, in a form that is easy to compare.
type result struct {
	Good     []string // "line ref|number|carrier", or "line REF" for a text alone
	Problems []string // "line:column header: message", notes with "note" in front
	Err      string   // how opening or reading ended, if not by the end of the input
}

// readAll reads a whole input and its summary.
func readAll(t testing.TB, name, text string, o intake.Options) (result, intake.Summary) {
	t.Helper()
	var res result
	in, err := intake.Open(name, strings.NewReader(text), o)
	if err != nil {
		res.Err = err.Error()
		return res, intake.Summary{}
	}
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return res, in.Summary()
		}
		if err != nil {
			res.Err = err.Error()
			return res, in.Summary()
		}
		if rec.File != name {
			t.Errorf("record of file %q, want %q", rec.File, name)
		}
		for _, p := range rec.Problems {
			kind := ""
			if p.Note {
				kind = "note "
			}
			if p.Hint == "" {
				t.Errorf("no hint for %q", p.Message)
			}
			res.Problems = append(res.Problems, fmt.Sprintf("%s%d:%d %s: %s", kind, p.Line, p.Column, p.Header, p.Message))
		}
		switch {
		case !rec.Good():
		case rec.Ref != "":
			res.Good = append(res.Good, fmt.Sprintf("%d %s", rec.Line, rec.Ref))
		default:
			res.Good = append(res.Good, fmt.Sprintf("%d %s|%s|%s", rec.Line, rec.Item.ReferID, rec.Item.Number, rec.Item.CarrierCode))
		}
	}
}

// hint returns what an error tells its reader to do.
func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
