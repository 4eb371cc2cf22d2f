package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
)

// RecoverRows marks unknown what was being sent by processes that ended, and warns of it.
func RecoverRows(ctx context.Context, s *app.Session, rows ledger.Queue) error {
	lost, err := rows.Recover(ctx)
	if lost > 0 {
		s.IO.Warning("another waybill ended or was cut off while sending %s; the outcome is unknown", Plural(lost, "row"))
	}
	return err
}

// OpenRun opens the store with the run of the ID, or the last. Without it the error is [ledger.ErrNoRun].
func OpenRun(ctx context.Context, s *app.Session, id string) (*app.Store, int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	last := strings.EqualFold(id, "last")
	if !last && (err != nil || n < 1) {
		return nil, 0, Usagef("run IDs are numbers, or `last`; list them with `waybill runs list`", "%q is not a run ID", id)
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return nil, 0, err
	}
	if db == nil {
		return nil, 0, fmt.Errorf("%w: %s", ledger.ErrNoRun, id)
	}
	if last {
		for run, err := range db.History.Runs(ctx, 1) {
			if err != nil {
				return nil, 0, err
			}
			n = run.ID
		}
	}
	if _, err := db.Queue.CountRows(ctx, n); err != nil {
		return nil, 0, err
	}
	ReadyRuns(ctx, s, db)
	return db, n, nil
}

// ReadyRuns marks unknown what ended processes were sending, unless the store is read-only. A failure is a warning.
func ReadyRuns(ctx context.Context, s *app.Session, db *app.Store) {
	if s.ReadOnly {
		return
	}
	if err := RecoverRows(ctx, s, db.Queue); err != nil {
		s.IO.Warning("rows of processes that ended still have the state sending: %v", err)
	}
}

// Ready is what a server prints as JSON once it accepts connections.
type Ready struct {
	Type string `json:"type"` // ready
	URL  string `json:"url"`
}

// AnnounceReady publishes the URL of a ready server: in file if one is named, and as a note or in JSON Lines.
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

// WriteReadyFile writes the URL of a server to a file, if one is named.
func WriteReadyFile(ctx context.Context, url, file string) error {
	if file == "" {
		return nil
	}
	f, err := NewAtomicFile(ctx, file)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write([]byte(url + "\n")); err != nil {
		return err
	}
	return f.Commit()
}

// ServerURL returns the URL of a server, without a slash at its end.
func ServerURL(addr, path string) string {
	return "http://" + addr + strings.TrimSuffix(path, "/")
}
