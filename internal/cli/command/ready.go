package command

import (
	"context"
	"strings"

	"github.com/waybill-cli/waybill/internal/render"
)

// Ready is what a server prints as JSON once it accepts connections.
type Ready struct {
	Type string `json:"type"` // ready
	URL  string `json:"url"`
}

// AnnounceReady publishes the URL of a server that accepts connections: in file if
// one is named, and as a note, or a result in JSON Lines.
func (c *Call) AnnounceReady(ctx context.Context, what, url, file string) error {
	if err := WriteReadyFile(ctx, url, file); err != nil {
		return err
	}
	if c.Out.Format() == render.JSONL {
		return c.Out.Object(Ready{"ready", url})
	}
	c.IO.Note("%s ready: %s", what, url)
	return nil
}

// WriteReadyFile writes the URL of a server that accepts connections, if a file is
// named.
func WriteReadyFile(ctx context.Context, url, file string) error {
	if file != "" {
		f, err := NewAtomicFile(ctx, file)
		if err != nil {
			return err
		}
		defer f.Discard()
		if _, err := f.Write([]byte(url + "\n")); err != nil {
			return err
		}
		if err := f.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// ServerURL returns the URL of a server, without a slash at its end.
func ServerURL(addr, path string) string {
	path = strings.TrimSuffix(path, "/")
	return "http://" + addr + path
}
