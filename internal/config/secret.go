package config

import (
	"fmt"
	"io"
)

// masked is what stands for a secret wherever one would be shown.
const masked = "***"

// Secret is a text that does not show itself: formatted, marshalled or logged
// it is `***`, or nothing when it is empty. [Secret.Reveal] gives the text.
//
// The text stands behind a pointer, so that even a formatter that cannot call
// methods, as for an unexported field, prints an address and not the text.
type Secret struct {
	text *string // nil if empty
}

// NewSecret returns s as a Secret.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{text: &s}
}

// Reveal returns the text itself. Whoever calls it must not print, log or store it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns `***`, or nothing for no text.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return masked
}

// Format writes [Secret.String] for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// An error of the writer behind f is reported by whoever owns it.
	_, _ = io.WriteString(f, s.String())
}

// MarshalText gives [Secret.String]; JSON, YAML and slog use it. It never fails.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
