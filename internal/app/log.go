package app

import (
	"context"
	"log/slog"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

// logger returns a log that ends up on stderr: what went wrong as a warning,
// the rest for those who asked for more.
func (s *Session) logger() *slog.Logger { return slog.New(&teller{io: s.IO}) }

// teller tells log records in the form of messages: the text, and after it
// each value behind its name. Groups are left out: nobody uses them here.
type teller struct {
	io    *term.IO
	attrs []slog.Attr
}

// Enabled is part of [slog.Handler].
func (t *teller) Enabled(context.Context, slog.Level) bool { return true }

// Handle is part of [slog.Handler].
func (t *teller) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	tell := func(a slog.Attr) bool {
		b.WriteString("; " + a.Key + ": " + a.Value.String())
		return true
	}
	for _, a := range t.attrs {
		tell(a)
	}
	r.Attrs(tell)
	say := t.io.Detail
	if r.Level >= slog.LevelWarn {
		say = t.io.Warning
	}
	say("%s", b.String())
	return nil
}

// WithAttrs is part of [slog.Handler].
func (t *teller) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &teller{t.io, append(append([]slog.Attr{}, t.attrs...), attrs...)}
}

// WithGroup is part of [slog.Handler].
func (t *teller) WithGroup(string) slog.Handler { return t }
