package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
)

// standingJSON is a line of the list in our output.
type standingJSON struct {
	ReferID              string          `json:"referId"`
	TrackingNumber       string          `json:"trackingNumber"`
	CarrierCode          string          `json:"carrierCode,omitempty"`
	State                ledger.State    `json:"state"` // of the row; empty if not created here
	Run                  string          `json:"run,omitempty"`
	Reason               string          `json:"reason,omitempty"`
	Phase                ledger.Phase    `json:"phase,omitempty"`
	Status               json.RawMessage `json:"status"`
	StatusLabel          string          `json:"statusLabel"`
	StatusTrack          string          `json:"statusTrack"`
	LatestEvent          string          `json:"latestEvent"`
	LatestCheckpointTime string          `json:"latestCheckpointTime,omitempty"`
	LearntAt             *time.Time      `json:"learntAt"`           // null if the service was never asked
	LearntFrom           ledger.Source   `json:"learntFrom"`         // query, create or event
	AsOf                 *time.Time      `json:"asOf,omitempty"`     // of an event: when it was so, if earlier
	SharedBy             int64           `json:"sharedBy,omitempty"` // of an event about several trackings: how many
	Foreign              bool            `json:"foreign,omitempty"`  // the ledger does not hold it: only events tell of it
}

func newStandingJSON(st ledger.Standing) standingJSON {
	j := standingJSON{
		ReferID: st.Item.ReferID, TrackingNumber: st.Item.Number, CarrierCode: st.Item.CarrierCode,
		State: st.State, Reason: st.Reason, Status: literal(""), Foreign: notCreatedHere(st),
	}
	if st.Run != 0 {
		j.Run = strconv.FormatInt(st.Run, 10)
	}
	if seen := st.Sighting; seen != nil {
		at := seen.Seen.UTC()
		j.Phase, j.Status, j.StatusLabel, j.StatusTrack = seen.Phase, literal(seen.Status), seen.StatusLabel, seen.StatusTrack
		j.LatestEvent, j.LatestCheckpointTime, j.LearntAt, j.LearntFrom = seen.LatestEvent, seen.LatestTime, &at, seen.Source
		j.AsOf, j.SharedBy = timeOrNull(seen.AsOf), seen.Shared
		if j.CarrierCode == "" {
			j.CarrierCode = seen.CarrierCode
		}
	}
	return j
}

// notCreatedHere reports whether the ledger does not hold a tracking.
func notCreatedHere(st ledger.Standing) bool { return st.State == "" && st.Item.ReferID == "" }

func (r *runner) list() *cobra.Command {
	var o struct {
		Status, Run, Since, Stale string
		Limit                     int
	}
	cmd := &cobra.Command{
		Use:     "list",
		GroupID: groupOps,
		Short:   "List what is known of your trackings",
		Long: `list shows what this computer knows: every tracking created from here, its last
known status, and when and from where that was learnt: from the service's answers
or from verified events. It asks the service nothing; "waybill show" does.

Numbers that came with verified events and were not created here follow at the
end. Events that did not verify change nothing; they are pointed out beside.`,
		Example: example("waybill list", "waybill list --status delivered", "waybill list --stale 48h -o json"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(ctx context.Context, s *app.Session, _ []string) error {
			f := ledger.Filter{Status: o.Status, Limit: o.Limit}
			var err error
			if f.SeenSince, err = parseSince("--since", o.Since); err != nil {
				return err
			}
			if f.StaleSince, err = parseSince("--stale", o.Stale); err != nil {
				return err
			}
			if o.Run != "" {
				if _, f.Run, err = openRun(ctx, s, o.Run); err != nil {
					return err
				}
			}
			return r.printList(ctx, s, f)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Status, "status", "", "only trackings with this status `X`: number, label or track")
	f.StringVar(&o.Run, "run", "", "only trackings of run `ID`")
	f.StringVar(&o.Since, "since", "", "only those heard of since a `TIME`: RFC 3339, a date, or an age such as 48h")
	f.StringVar(&o.Stale, "stale", "", "only accepted ones not delivered and not heard of for an `AGE` such as 48h")
	f.IntVar(&o.Limit, "limit", 0, "at most `N` (0 for all)")
	return cmd
}

func (r *runner) printList(ctx context.Context, s *app.Session, f ledger.Filter) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return err
	}
	n := newNames(s.Config.Statuses)
	width := r.out.Out().Width()
	narrow := width > 0 && width < stateFrom
	w := listing[ledger.Standing]{
		out: r.out, empty: nothingListed(s.Account(ctx)),
		json: func(st ledger.Standing) any { return newStandingJSON(st) },
		columns: []render.Column{
			{Name: "REFERENCE", ID: true},
			{Name: "NUMBER", ID: true},
			{Name: "STATE", From: stateFrom},
			{Name: "LATEST EVENT", Flex: true, From: 80},
			{Name: "STATUS", Flex: true},
			{Name: "LEARNT", From: 130},
			{Name: "FROM", From: 140},
		},
		cells: func(st ledger.Standing) []string { return n.standingCells(st, narrow) },
	}
	if db == nil {
		return w.print(s.IO, nil)
	}
	var beside claims
	err = w.print(s.IO, func(yield func(ledger.Standing, error) bool) {
		for st, err := range db.Standings(ctx, s.Account(ctx), f) {
			beside.add(st.Unverified)
			if !yield(st, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return beside.tell(ctx, s.IO, n, db)
}

// nothingListed says which account nothing is known of: one store may hold
// several.
func nothingListed(account string) string {
	if account == "" {
		return "no account is set, so nothing is known: set WAYBILL_BASE_URL or --account"
	}
	return fmt.Sprintf("nothing is known yet of account %s; create trackings with `waybill create`", account)
}

// toldClaims is how many events that did not verify are told beside a list.
const toldClaims = 3

// claims are events that did not verify, about trackings of a list.
type claims struct {
	seqs []int64 // the first of them
	more int     // further ones
}

// add adds an event by its number, 0 for none.
func (c *claims) add(seq int64) {
	switch {
	case seq == 0 || slices.Contains(c.seqs, seq):
	case len(c.seqs) < toldClaims:
		c.seqs = append(c.seqs, seq)
	default:
		c.more++
	}
}

// tell tells of them beside the list, so that nobody takes them for what is known.
func (c *claims) tell(ctx context.Context, io *term.IO, n names, db *store.DB) error {
	for _, seq := range c.seqs {
		e, err := db.Event(ctx, seq)
		if err != nil {
			return err
		}
		io.Note("%s: an unverified event changes nothing: %s", e.TrackingNumber, n.claim(e))
	}
	if len(c.seqs) > 0 {
		also := ""
		switch {
		case c.more == 1:
			also = "1 more tracking has unverified events; "
		case c.more > 1:
			also = fmt.Sprintf("%d more trackings have unverified events; ", c.more)
		}
		io.Note("%s`waybill events list --verified no` and `--verified unknown` list them", also)
	}
	return nil
}

// stateFrom is the narrowest terminal that shows the state of rows.
const stateFrom = 90

// standingCells are the cells of a line of the list. On a narrow terminal, which
// has no room for the state, the status says what is odd about that.
func (n names) standingCells(st ledger.Standing, narrow bool) []string {
	cells := []string{st.Item.ReferID, st.Item.Number, string(st.State), st.Reason, "", "", ""}
	if st.State != ledger.Accepted {
		cells[4] = string(st.State) // a narrow terminal shows no other
	}
	if seen := st.Sighting; seen != nil {
		cells[4] = n.status(seen.Status, seen.StatusLabel, seen.StatusTrack)
		if seen.Phase != ledger.Processed {
			cells[4] = string(seen.Phase)
		}
		if seen.LatestEvent != "" {
			cells[3] = seen.LatestEvent
		}
		cells[5], cells[6] = render.LocalTime(seen.Seen), string(seen.Source)
		if seen.Shared > 1 {
			cells[6] = fmt.Sprintf("event, of %d with this number", seen.Shared)
		}
	}
	if notCreatedHere(st) {
		cells[2] = "not created here"
		if narrow {
			cells[4] += ", " + cells[2]
		}
	}
	return cells
}

// parseSince reads a point in time: RFC 3339, a date in the machine's zone, or
// an age.
func parseSince(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	if d, err := config.ParseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, usagef("such as 2026-11-20, 2026-11-20T08:00:00Z or 48h", "%s %q is neither a time nor an age", flag, s)
}
