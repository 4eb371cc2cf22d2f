package track

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// Page is what `list` prints, for a program that shows it elsewhere.
type Page struct {
	Trackings []view.Listed // the first ones
	Summary   *view.Summary // of all that match; nil if there are more than Trackings, see [ReadSummary]
	Notes     []string      // what `list` would note
	Next      string        // the command that shows more, empty for none
	Export    string        // the command that writes all that match
}

// Limits of a [Page].
const (
	PageRows = 200  // trackings, unless more are asked for
	MaxRows  = 2000 // trackings
	maxValue = 1024 // bytes of a parameter
)

// ReadPage returns the trackings that are asked for by the flags of `list` that say
// which, in which order and how many, given as parameters of a URL. It reads the
// store alone, as list does.
func ReadPage(ctx context.Context, c *command.Call, params url.Values) (*Page, error) {
	l, o, err := openPage(ctx, c, params)
	if err != nil {
		return nil, err
	}
	words := l.words
	if sort := o.Sort.String(); sort != "" {
		words = append(words, "--sort", sort)
	}
	p := &Page{
		Trackings: []view.Listed{}, Summary: l.summary, Notes: []string{},
		Export: c.CommandLine(slices.Concat([]string{"list"}, words, []string{"-o", "csv", "--out", "trackings.csv"})...),
	}
	if l.db == nil {
		p.Notes = append(p.Notes, nothingListed(c.Account(ctx)))
		return p, nil
	}
	return p, l.fill(ctx, p)
}

// ReadSummary returns the summary of all trackings that [ReadPage] is asked for with
// these parameters. It may read all of them.
func ReadSummary(ctx context.Context, c *command.Call, params url.Values) (*view.Summary, error) {
	l, _, err := openPage(ctx, c, params)
	if err != nil || l.db == nil {
		return view.NewSummary(nil), err
	}
	return view.SummaryOf(ctx, c, l.db, c.Account(ctx), l.filter)
}

// openPage returns the list that parameters ask for.
func openPage(ctx context.Context, c *command.Call, params url.Values) (*listing, listOptions, error) {
	var o listOptions
	if err := o.set(params); err != nil {
		return nil, o, err
	}
	db, filter, err := o.read(ctx, c)
	if err != nil {
		return nil, o, err
	}
	filter.Limit, filter.Order, filter.Descending = o.Limit, o.Sort.by, o.Sort.descending
	l := &listing{call: c, filter: filter, words: o.words(), db: db, names: view.NewStatusNames(c.Config.Statuses)}
	l.summary = view.NewSummary(l.names)
	return l, o, nil
}

// fill reads the rows of a page.
func (l *listing) fill(ctx context.Context, p *Page) error {
	unused, err := catchUp(ctx, l.db, func(int64) {})
	if err != nil {
		return err
	}
	if unused != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("Received events are not used: %v", unused))
	}
	now := time.Now()
	for line, err := range l.rows(ctx) {
		if err != nil {
			return err
		}
		p.Trackings = append(p.Trackings, l.names.Listed(line, now))
	}
	if err := l.beside.load(ctx, l.db); err != nil {
		return err
	}
	switch {
	case len(p.Trackings) == 0:
		why, next, err := l.whyEmpty(ctx)
		p.Notes, p.Next = append(p.Notes, why), next
		return err
	case l.more:
		p.Summary = nil
	}
	p.Notes = append(p.Notes, l.beside.texts(l.names)...)
	return nil
}

// set reads parameters by the flags of the same names. Empty ones count as not given.
func (o *listOptions) set(params url.Values) error {
	const hint = "the parameters are named as the flags of `waybill list`"
	flags := pflag.NewFlagSet("list", pflag.ContinueOnError)
	o.register(flags)
	o.Limit = PageRows
	for name, values := range params {
		if flags.Lookup(name) == nil {
			return command.Usagef(hint, "unknown parameter %s", command.Quoted(name))
		}
		if len(values) > maxPatterns {
			return command.Usagef(hint, "more than %d times %s", maxPatterns, name)
		}
		for _, value := range values {
			if len(value) > maxValue {
				return command.Usagef(hint, "%s is longer than %d bytes", name, maxValue)
			}
			if value == "" {
				continue
			}
			if err := flags.Set(name, value); err != nil {
				if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
					err = command.Usagef(hint, "--%s %s", name, command.InvalidValue(invalid))
				}
				return err
			}
		}
	}
	if o.Limit < 1 || o.Limit > MaxRows {
		return command.Usagef("narrow the list with a filter, or write all of it with -o csv", "limit must be 1 to %d, not %d", MaxRows, o.Limit)
	}
	return nil
}

// Choices are values that filters and --sort take, as far as the store has some.
type Choices struct {
	Status  []string `json:"status"`
	State   []string `json:"state"`
	Carrier []string `json:"carrier"`
	Run     []string `json:"run"`
	Sort    []string `json:"sort"`
}

// maxChoices is how many values are offered for a filter.
const maxChoices = 100

// ReadChoices returns values for the parameters of [ReadPage]. It reads no tracking.
func ReadChoices(ctx context.Context, c *command.Call) (Choices, error) {
	all := Choices{Status: []string{}, State: view.RowStates(), Carrier: []string{}, Run: []string{}, Sort: new(sortKey).Choices()}
	db, err := c.ExistingStore(ctx)
	if err != nil || db == nil {
		return all, err
	}
	account := c.Account(ctx)
	counts, err := db.Statistics.SeenStatuses(ctx, account)
	if err != nil {
		return all, err
	}
	seen := view.NewSummary(view.NewStatusNames(c.Config.Statuses))
	for _, count := range counts {
		seen.AddCount(count)
	}
	for _, s := range seen.JSON().ByStatus {
		all.Status = append(all.Status, s.Name)
	}
	carriers, err := db.Statistics.SeenCarriers(ctx, account)
	if err != nil {
		return all, err
	}
	all.Carrier = append(all.Carrier, carriers[:min(len(carriers), maxChoices)]...)
	all.Status = all.Status[:min(len(all.Status), maxChoices)]
	var latest []ledger.Run
	if latest, err = db.Statistics.LatestRuns(ctx, account, maxChoices); err != nil {
		return all, err
	}
	for _, run := range latest {
		all.Run = append(all.Run, runName(run.ID))
	}
	return all, nil
}
