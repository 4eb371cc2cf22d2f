package cli

import (
	"context"
	"strings"

	"github.com/waybill-cli/waybill/internal/render"
)

// readyJSON tells that a server takes connections.
type readyJSON struct {
	Type string `json:"type"` // ready
	URL  string `json:"url"`
}

// announceReady says where a server can be reached, once connections are
// accepted: in the ready file if one was asked for, and as a line on stderr, or
// on stdout with JSON Lines.
func (r *runner) announceReady(ctx context.Context, what, url, file string) error {
	if file != "" {
		f, err := newWholeFile(ctx, file)
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
	if r.out.Format() == render.JSONL {
		return r.out.object(readyJSON{"ready", url})
	}
	r.app.IO.Note("%s ready: %s", what, url)
	return nil
}

// serverURL is the address of a server as a URL: no trailing slash but for an
// empty path.
func serverURL(addr, path string) string {
	path = strings.TrimSuffix(path, "/")
	return "http://" + addr + path
}
