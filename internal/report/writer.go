package report

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

// markup is HTML. A constant becomes one by itself, a text from outside does not.
type markup string

// writer writes HTML: markup as it is, and all else escaped.
type writer struct{ bytes.Buffer }

func (w *writer) html(m markup) *writer {
	w.WriteString(string(m))
	return w
}

// escapes are the characters that end a text or the value of an attribute.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// text writes a text, or the value of an attribute between quotes: with escapes of what
// controls, reorders or hides text, as elsewhere.
func (w *writer) text(s string) *writer {
	_, _ = escapes.WriteString(w, term.Visible(s)) // a buffer has no errors
	return w
}

// num writes a coordinate, to one hundredth.
func (w *writer) num(f float64) *writer {
	w.WriteString(strconv.FormatFloat(float64(int64(f*100+0.5))/100, 'f', -1, 64))
	return w
}
