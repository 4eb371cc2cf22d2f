package command

import (
	"context"
	"strings"

	"github.com/waybill-cli/waybill/internal/render"
)

// Ready tells that a server takes connections.
type Ready struct {
	Type string `json:"type"` // ready
	URL  string `json:"url"`
}

// AnnounceReady says where a server can be reached, once connections are
// accepted: in the ready file if one was asked for, and as a line on stderr, or
// on stdout with JSON Lines.
func (c *Call) AnnounceReady(ctx context.Context, what, url, file string) error {
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
	if c.Out.Format() == render.JSONL {
		return c.Out.Object(Ready{"ready", url})
	}
	c.IO.Note("%s ready: %s", what, url)
	return nil
}

// ServerURL is the address of a server as a URL: no trailing slash but for an
// empty path.
func ServerURL(addr, path string) string {
	path = strings.TrimSuffix(path, "/")
	return "http://" + addr + path
}
