package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/probe"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// probeJSON is what a probe learnt.
type probeJSON struct {
	Absent  absentJSON `json:"absent"`
	Number  numberJSON `json:"number"`
	Known   *tracked   `json:"known"`   // the tracking that was asked for; null if there was none
	SavedTo string     `json:"savedTo"` // configuration file; empty if nothing was written

	Assumptions []assumptionJSON `json:"assumptions"` // checked when a create met such an answer
}

type assumptionJSON struct {
	Name    string    `json:"name"`  // refused, conflict or throttled: the batch's answer
	Holds   bool      `json:"holds"` // the service stored none of its rows
	Checked time.Time `json:"checked"`
}

type absentJSON struct {
	ReferIDs   []string       `json:"referIds"` // random ones
	HTTPStatus int            `json:"httpStatus"`
	Message    string         `json:"message"` // as sent
	Look       string         `json:"look"`
	Recognised bool           `json:"recognised"`
	Why        string         `json:"why"`        // why not
	Suggestion map[string]any `json:"suggestion"` // entry of query.absent; null if none is needed, or none would do
	Proven     bool           `json:"proven"`     // the entry does not fit an answer that shows a tracking
}

type numberJSON struct {
	Configured string    `json:"configured"`
	Works      string    `json:"works"` // empty if none does
	Tried      []tryJSON `json:"tried"`
}

type tryJSON struct {
	Param  string `json:"param"`
	Known  string `json:"known"`
	Random string `json:"random"` // empty if it was not asked
}

type tracked struct {
	ReferID           string `json:"referId"`
	RawTrackingNumber string `json:"rawTrackingNumber"`
}

type probeOptions struct {
	Item tracking.Item
	Save bool
}

// NewProbe returns the command that finds out how the service behaves.
func NewProbe(f *command.Factory) *cobra.Command {
	var o probeOptions
	cmd := &cobra.Command{
		Use:     "probe",
		GroupID: command.GroupRest,
		Short:   "Find out how the service reports unknown trackings",
		Long: `probe sends queries only. It queries random identifiers to find out what the
response "no such tracking" looks like, and an existing tracking to find the
parameter for tracking numbers: the existing number must be found, a random one
must not. The existing tracking is an accepted row of the store, or the one you
name.

It also shows the assumptions of "waybill help rows" and whether they were checked.

--save writes the results to your configuration file, below the current profile:
query.absent and query.tracking_number_param.

Exit status: 0 if the settings match the results or were saved, 3 if there is no
existing tracking, 6 if a setting does not match or nothing was found.`,
		Example: command.Example("waybill probe", "waybill probe --refer-id ORD-1001 --tracking-number 1Z999AA10123456784", "waybill probe --save"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runProbe(ctx, c, o)
		}),
	}
	cmd.Flags().StringVar(&o.Item.ReferID, "refer-id", "", "referId (`ID`) of an existing tracking")
	cmd.Flags().StringVar(&o.Item.Number, "tracking-number", "", "its `NUMBER`")
	cmd.Flags().BoolVar(&o.Save, "save", false, "write the results to your configuration file")
	return cmd
}

func runProbe(ctx context.Context, c *command.Call, o probeOptions) error {
	if (o.Item.ReferID == "") != (o.Item.Number == "") {
		return command.Usagef("pass both, or neither", "--refer-id and --tracking-number must be used together")
	}
	known, err := knownItems(ctx, c, o.Item)
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	prober := probe.Prober{Service: client, Gate: c.Gate, NumberParam: c.Config.Query.TrackingNumberParam, Patience: cmp.Or(c.Config.Timeout, command.QueryTimeout)}
	p, err := prober.Probe(ctx, known)
	if err != nil && !errors.Is(err, probe.ErrNothingKnown) {
		return err
	}
	if o.Save {
		err = errors.Join(err, saveProbe(c, &p))
	}
	checked, e := checkedAssumptions(ctx, c.Session)
	if err := errors.Join(printProbe(c.Out, p, checked), err, e); err != nil {
		return err
	}
	return unfit(c, p)
}

// knownItems returns what may be known to the service: the item named, else
// accepted rows of the ledger.
func knownItems(ctx context.Context, c *command.Call, named tracking.Item) ([]tracking.Item, error) {
	if named.ReferID != "" {
		return []tracking.Item{named}, nil
	}
	store, err := c.StoreIfAny(ctx)
	if err != nil || store == nil {
		return nil, err
	}
	return probe.KnownItems(ctx, store.Trackings, c.Account(ctx))
}

func printProbe(out *command.Output, p probe.Result, checked []ledger.CheckedAssumption) error {
	if !out.Machine() {
		return out.Fields(append(probeFields(p), assumptionFields(checked)...))
	}
	j := probeToJSON(p)
	j.Assumptions = []assumptionJSON{}
	for _, c := range checked {
		j.Assumptions = append(j.Assumptions, assumptionJSON{string(c.Assumption), c.Holds, c.Checked.UTC()})
	}
	return out.Object(j)
}

// saveProbe writes what was proven, and is not set yet, into the user's
// configuration file.
func saveProbe(c *command.Call, p *probe.Result) error {
	var all []config.Assignment
	if a := p.Absent; a.Suggestion != nil && a.Proven {
		list := []map[string]any{}
		for _, known := range append(slices.Clone(c.Config.Query.Absent), *a.Suggestion) {
			list = append(list, config.AbsentEntry(known))
		}
		text, err := json.Marshal(list)
		if err != nil {
			return err
		}
		all = append(all, config.Assignment{Key: "query.absent", Value: string(text)})
	}
	if p.Number.Works != "" && p.Number.Works != p.Number.Configured {
		all = append(all, config.Assignment{Key: "query.tracking_number_param", Value: p.Number.Works})
	}
	if len(all) == 0 {
		return nil
	}
	var err error
	p.SavedTo, err = c.SetConfig(all...)
	return err
}

// checkedAssumptions returns what the store knows of the account's assumptions.
func checkedAssumptions(ctx context.Context, s *app.Session) ([]ledger.CheckedAssumption, error) {
	db, err := s.StoreIfAny(ctx)
	if db == nil || err != nil {
		return nil, err
	}
	return db.Accounts.Assumptions(ctx, s.Account(ctx))
}

func assumptionFields(checked []ledger.CheckedAssumption) []render.Field {
	var fields []render.Field
	for _, a := range []struct {
		assumption ledger.Assumption
		name       string
	}{
		{ledger.RefusedNotStored, "Batch refused (400, 422)"},
		{ledger.ConflictNotStored, "Batch refused (409)"},
		{ledger.ThrottledNotStored, "Batch throttled (429)"},
	} {
		value := "not checked yet; assumed: nothing is stored"
		for _, c := range checked {
			switch {
			case c.Assumption != a.assumption:
			case c.Holds:
				value = "nothing is stored (checked " + c.Checked.Local().Format(time.RFC3339) + ")"
			default:
				value = "rows may be stored, so each is checked (found " + c.Checked.Local().Format(time.RFC3339) + ")"
			}
		}
		fields = append(fields, render.Field{Name: a.name, Value: value})
	}
	return fields
}

// unfit returns the error of settings that don't fit what was found, or nil.
func unfit(c *command.Call, p probe.Result) error {
	var open, lost []string
	switch a := p.Absent; {
	case a.Recognised, a.Proven && p.SavedTo != "":
	case a.Proven:
		open = append(open, "query.absent")
	case a.Suggestion != nil:
		lost = append(lost, `the response "no such tracking" is not proven; probe again when a tracking has a status`)
	default:
		lost = append(lost, `"no such tracking" is not recognised: `+a.Why)
	}
	switch n := p.Number; {
	case n.Works == "":
		lost = append(lost, "no parameter finds a tracking by its number")
	case n.Works != n.Configured && p.SavedTo == "":
		open = append(open, "query.tracking_number_param")
	}
	e := &command.ExitError{Code: command.Partial}
	switch {
	case len(open)+len(lost) == 0:
		return nil
	case len(open) > 0:
		lost = append(lost, "set as shown: "+strings.Join(open, ", "))
		e.Next = c.Repeat("--save")
	default:
		e.Hint = "print the responses with --debug and ask the service's support; until then, rows with unknown outcome stay unknown"
	}
	e.Err = errors.New(strings.Join(lost, "; "))
	return e
}

func probeToJSON(p probe.Result) probeJSON {
	j := probeJSON{
		Absent: absentJSON{
			ReferIDs: p.Absent.ReferIDs[:], HTTPStatus: p.Absent.Status, Message: p.Absent.Message, Look: p.Absent.Fingerprint,
			Recognised: p.Absent.Recognised, Why: p.Absent.Why, Proven: p.Absent.Proven,
		},
		Number:  numberJSON{Configured: p.Number.Configured, Works: p.Number.Works, Tried: []tryJSON{}},
		SavedTo: p.SavedTo,
	}
	if p.Absent.Suggestion != nil {
		j.Absent.Suggestion = config.AbsentEntry(*p.Absent.Suggestion)
	}
	for _, t := range p.Number.Tried {
		j.Number.Tried = append(j.Number.Tried, tryJSON(t))
	}
	if p.Known != (tracking.Item{}) {
		j.Known = &tracked{p.Known.ReferID, p.Known.Number}
	}
	return j
}

func probeFields(p probe.Result) []render.Field {
	var fields []render.Field
	add := func(name, format string, args ...any) {
		fields = append(fields, render.Field{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	add("No such tracking", "%s", p.Absent.Fingerprint)
	add("Status", "%s", strconv.Itoa(p.Absent.Status))
	if p.Absent.Message != "" {
		add("Message", "%s", p.Absent.Message)
	}
	if p.Absent.Recognised {
		add("Recognised", "yes")
	} else {
		add("Recognised", "no: %s", p.Absent.Why)
	}
	if e := p.Absent.Suggestion; e != nil {
		text, err := json.Marshal(config.AbsentEntry(*e))
		if err != nil {
			text = []byte(err.Error())
		}
		proof := ""
		if !p.Absent.Proven {
			proof = " (unproven: no tracking with a status to compare with)"
		}
		add("query.absent needs", "- %s%s", text, proof)
	}
	if p.Known != (tracking.Item{}) {
		add("Known tracking", "%s, %s", p.Known.ReferID, p.Known.Number)
	}
	for _, t := range p.Number.Tried {
		random := ""
		if t.Random != "" {
			random = "; random number: " + t.Random
		}
		add("By "+t.Param, "known number: %s%s", t.Known, random)
	}
	switch n := p.Number; {
	case n.Works == "":
	case n.Works == n.Configured:
		add("Number parameter", "%s, as configured", n.Works)
	default:
		add("Number parameter", "%s; configured: %s", n.Works, n.Configured)
	}
	if p.SavedTo != "" {
		add("Saved to", "%s", p.SavedTo)
	}
	return fields
}
