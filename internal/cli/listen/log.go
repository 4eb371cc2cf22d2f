package listen

import (
	"context"
	"log/slog"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

// logHandler writes log records to stderr as messages: the text, and after it
// each value behind its name. Warnings and errors are warnings, the rest is
// written under -v. Groups are not supported.
type logHandler struct {
	io    *term.IO
	attrs []slog.Attr
}

// Enabled is part of [slog.Handler].
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle is part of [slog.Handler].
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		b.WriteString("; " + a.Key + ": " + a.Value.String())
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	write := h.io.Detail
	if r.Level >= slog.LevelWarn {
		write = h.io.Warning
	}
	write("%s", b.String())
	return nil
}

// WithAttrs is part of [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.io, append(append([]slog.Attr{}, h.attrs...), attrs...)}
}

// WithGroup is part of [slog.Handler].
func (h *logHandler) WithGroup(string) slog.Handler { return h }
