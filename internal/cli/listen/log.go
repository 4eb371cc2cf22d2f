package listen

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
)

// logHandler writes log records to stderr as messages: the text, and after it
// each value behind its name. Warnings and errors are warnings, the rest is
// written under -v; an error of the store goes to the warnings about the store.
// Groups are not supported.
type logHandler struct {
	io       *term.IO
	warnings *storeWarnings
	attrs    []slog.Attr
}

// Enabled is part of [slog.Handler].
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle is part of [slog.Handler].
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	var cause error
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			cause = err
		} else {
			b.WriteString("; " + a.Key + ": " + a.Value.String())
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	switch {
	case cause != nil && r.Level == slog.LevelWarn:
		h.warnings.warn(b.String(), cause)
		return nil
	case cause != nil && command.As[*store.Error](cause):
		h.warnings.warn("", cause) // what follows is for the user, however often the cause was reported
	case errors.Is(cause, context.DeadlineExceeded):
		b.WriteString(": no answer in time")
	case cause != nil:
		b.WriteString(": " + cause.Error())
	}
	write := h.io.Detail
	if r.Level >= slog.LevelWarn {
		write = h.io.Warning
	}
	write("%s", b.String())
	return nil
}

// WithAttrs is part of [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.io, h.warnings, append(append([]slog.Attr{}, h.attrs...), attrs...)}
}

// WithGroup is part of [slog.Handler].
func (h *logHandler) WithGroup(string) slog.Handler { return h }
