package track

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
)

// Condition ends a wait. The zero value holds once a tracking is processed. At most one of status, event and change is
// set.
type Condition struct {
	text   string // as typed; "processed" for create --wait
	status string // the tracking has this status
	event  string // a verified event of this kind has arrived
	change bool   // the tracking differs from its first result

	one       bool                 // one tracking of a result suffices
	names     view.StatusFormatter // configured names of statuses
	orProblem bool                 // a status shown as a problem fails like an error
}

func parseCondition(names view.StatusFormatter, flag, s string) (Condition, error) {
	c := Condition{text: s, change: s == "change"}
	switch word, value, _ := strings.Cut(s, "="); {
	case word == "status" && value != "":
		c.status, c.names = value, names
	case word == "event" && value != "":
		c.event = value
	case s != "processed" && !c.change:
		hint := fmt.Sprintf("use %[1]s processed, %[1]s status=X (a status number or name), "+
			"%[1]s event=X (a kind such as router.delivered) or %[1]s change", flag)
		return c, command.Usagef(hint, "%s %q is not understood", flag, s)
	}
	return c, nil
}

// done returns the word for a tracking that meets the condition.
func (c Condition) done(names view.StatusFormatter) string {
	switch {
	case c.status != "":
		return statusWords(names, c.status)
	case c.event != "":
		return "with event " + c.event
	case c.change:
		return "changed"
	}
	return "processed"
}

// notYet returns the words for a tracking that does not meet the condition.
func (c Condition) notYet(names view.StatusFormatter) string {
	switch {
	case c.event != "":
		return "without event " + c.event + " yet"
	case c.change:
		return "unchanged"
	}
	if done := c.done(names); done != "processed" {
		return "not " + done + " yet"
	}
	return "still processing"
}

// statusWords returns the configured name of the status of --for, else its plain words.
func statusWords(names view.StatusFormatter, status string) string {
	if own, ok := names.Custom("", status, ""); ok {
		return own
	}
	if _, err := strconv.ParseFloat(status, 64); err == nil {
		return "in status " + status
	}
	return view.PlainStatus(status)
}

// isMetBy reports whether a tracking meets a condition on its state. If the tracking is in error, only that counts.
func (c Condition) isMetBy(t query.Tracking) bool {
	named := c.names.Matches(c.status, t.Phase, t.Status, t.StatusLabel, t.StatusTrack)
	return t.Phase == ledger.InError && named ||
		t.Phase == ledger.Processed && (c.status == "" || named || t.HasStatus(c.status))
}

// failed returns an error if a tracking of a result is in error and so can't meet the condition any more. It returns
// nil if the condition is any change.
func (c Condition) failed(names view.StatusFormatter, res query.Result) error {
	i := slices.IndexFunc(res.Trackings, func(t query.Tracking) bool {
		return t.Phase == ledger.InError || c.orProblem && t.Phase == ledger.Processed && names.PhaseStyle(t) == term.Bad
	})
	if i < 0 || c.change {
		return nil
	}
	t := res.Trackings[i]
	text := view.ErrorText(t.Error)
	if t.Phase == ledger.Processed {
		text = names.Phase(t)
	}
	return fmt.Errorf("%w: %s", query.ErrInError, text)
}

// Met reports whether every tracking of a result meets a condition on its state. Parcels without a response and
// rejected rows have no status; they do not prevent the condition of being processed.
func (c Condition) Met(res query.Result) bool {
	processed := 0
	for _, t := range res.Trackings {
		switch {
		case c.isMetBy(t):
			processed++
		case t.Phase == query.Rejected:
		case t.Phase == query.Undecided && c.status == "":
		default:
			return false
		}
	}
	return processed > 0
}

type conditionCheck struct {
	Condition
	db       *app.Store // nil if there is none
	followed int64      // number of the last event applied to results
}

func newConditionCheck(ctx context.Context, c *command.Call, cond Condition) (check conditionCheck, err error) {
	check.Condition = cond
	if cond.event == "" {
		return check, nil
	}
	if check.db, err = c.StoreIfAny(ctx); err == nil && check.db != nil {
		check.followed, _, err = check.db.Events.Followed(ctx)
	}
	return check, err
}

func (c conditionCheck) meets(ctx context.Context, t *query.Target, res query.Result) (bool, error) {
	switch {
	case c.event != "":
		return c.eventCame(ctx, res)
	case c.change:
		return t.Changed(res), nil
	case c.one:
		return slices.ContainsFunc(res.Trackings, c.isMetBy), nil
	}
	return c.Met(res), nil
}

// eventCame reports whether a verified event of the kind arrived for every tracking of a result, or for one.
func (c conditionCheck) eventCame(ctx context.Context, res query.Result) (bool, error) {
	if c.db == nil {
		return false, nil
	}
	count := 0
	for _, t := range res.Trackings {
		came, err := c.eventCameAbout(ctx, t)
		if err != nil || came && c.one {
			return came, err
		}
		if came {
			count++
		} else if !c.one && t.Phase != query.Rejected {
			return false, nil
		}
	}
	return count > 0, nil
}

func (c conditionCheck) eventCameAbout(ctx context.Context, t query.Tracking) (bool, error) {
	if t.Number != "" {
		q := inbox.Query{
			Kind: c.event, TrackingNumber: t.Number, Before: c.followed + 1, Limit: 1,
			Verified: inbox.Counting(), Genuine: true, Marks: []inbox.Mark{inbox.Current},
		}
		for _, err := range c.db.Inbox.Events(ctx, q) {
			return err == nil, err
		}
	}
	if t.Event == 0 { // events without a number may be about the routerId
		return false, nil
	}
	e, err := c.db.Inbox.Event(ctx, t.Event)
	if errors.Is(err, inbox.ErrNoEvent) { // pruned
		return false, nil
	}
	return e.Kind == c.event && err == nil, err
}
