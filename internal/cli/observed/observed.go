// Package observed holds the commands about the register of what was met of the
// service.
package observed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/observed"
	"github.com/waybill-cli/waybill/internal/render"
)

// entryJSON is an entry in our output.
type entryJSON struct {
	Kind       observed.Kind `json:"kind"`
	Name       string        `json:"name"`
	Source     string        `json:"source"` // empty for statuses and event kinds
	Count      int64         `json:"count"`  // answers and events
	FirstSeen  time.Time     `json:"firstSeen"`
	LastSeen   time.Time     `json:"lastSeen"`
	Documented bool          `json:"documented"`
	Unverified bool          `json:"unverified"` // met in deliveries alone that nothing verified
	Sample     string        `json:"sample"`
	StatusName string        `json:"statusName,omitempty"` // from `statuses` in the configuration
}

type listOptions struct {
	Kinds        []string
	Undocumented bool
}

// New returns the command that lists the register, and those below it.
func New(f *command.Factory) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "observed",
		GroupID: command.GroupRest,
		Short:   "List what was met of the service, and what is not documented",
		Long: `observed lists what waybill met in responses and deliveries: statuses, event kinds,
fields, headers, HTTP statuses, shapes of responses, and errors. Each has a count of
the responses and events that held it, when it was met first and last, a sample, and
whether the interface document has it.

  status       number; the sample has the names that the service gives it
  event        kind of event; the sample is the status that it came with
  field        source and path; [] is an array, * a name that may be an identifier
  header       of a response (answer) or a delivery
  http-status  source and number
  shape        source, names and types around the objects that are documented:
               <tracking>, <summary>, <detail>, <checkpoint>, <item>
  error        source, path and form of an error that is not null

Sources are create-v1, create-v2, query, api (your own requests) and delivery.
Standard headers and the status 200 count as documented. A field below one that is
not documented is not listed separately.

The register holds no values. Samples are masked: 0 for a digit, a or A for a
letter. Of each kind it keeps 500 entries for an account, as many for verified
deliveries and as many for deliveries that no scheme verified ("unverified").
Deliveries whose signature is wrong, and made-up events, do not count.

Responses are recorded while a command runs that has a store, deliveries when this
command or a prune runs.`,
		Example: command.Example("waybill observed", "waybill observed --undocumented --kind status,event", "waybill observed -o json --jq '.[] | select(.documented | not) | .name'"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runList(ctx, c, o)
		}),
	}
	words := make([]string, 0, len(observed.Kinds()))
	for _, k := range observed.Kinds() {
		words = append(words, string(k))
	}
	command.Choices(cmd.Flags(), &o.Kinds, "kind", "only those `KINDS`", words...)
	cmd.Flags().BoolVar(&o.Undocumented, "undocumented", false, "only what the interface document does not have")
	command.ColumnsFlag(cmd, columns())
	cmd.AddCommand(newDiff(f), newExport(f))
	return cmd
}

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	all, err := register(ctx, c)
	if err != nil {
		return err
	}
	return list(c, "Nothing observed yet: run a command that sends requests, or receive deliveries", all, func(e observed.Entry) bool {
		return !(o.Undocumented && e.Documented) && (len(o.Kinds) == 0 || contains(o.Kinds, string(e.Kind)))
	})
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// register returns all that was met for the account and in deliveries.
func register(ctx context.Context, c *command.Call) ([]observed.Entry, error) {
	db, err := c.ExistingStore(ctx)
	if err != nil || db == nil {
		return nil, err
	}
	progress := c.IO.Progress("Reading deliveries")
	err = db.Observer().CatchUp(ctx)
	progress.Stop()
	if errors.Is(err, inbox.ErrReadOnly) {
		c.IO.Note("Store %s is read-only: deliveries since the last `waybill observed` are missing", db.Path)
	} else if err != nil {
		return nil, err
	}
	all, notKept, err := read(ctx, db.Observed, c.Account(ctx))
	if err != nil {
		return nil, err
	}
	for _, kind := range observed.Kinds() {
		if n := notKept[kind]; n > 0 {
			c.IO.Warning("%s of kind %s not kept: there are %d entries of it already", command.Plural(n, "observation"), kind, observed.MaxEntries)
		}
	}
	return all, nil
}

// read returns what the registers of the account have, and how many of each kind they
// had no room for.
func read(ctx context.Context, from observed.Store, account string) (all []observed.Entry, notKept map[observed.Kind]int64, err error) {
	origins := []observed.Origin{{}, {Unverified: true}}
	if account != "" {
		origins = append(origins, observed.Origin{Account: account})
	}
	registers := make([][]observed.Entry, len(origins))
	for i, of := range origins {
		if registers[i], err = from.Observed(ctx, of); err != nil {
			return nil, nil, err
		}
	}
	all, notKept = observed.Sum(registers...)
	return all, notKept, nil
}

// list prints those entries that keep takes.
func list(c *command.Call, empty string, all []observed.Entry, keep func(observed.Entry) bool) error {
	names := view.NewStatusNames(c.Config.Statuses)
	l := command.Listing[observed.Entry]{Out: c.Out, Empty: empty, Columns: columns(), JSON: func(e observed.Entry) any { return toJSON(e, names) }}
	return l.PrintAll(c.IO, keepAll(all, keep))
}

func keepAll(all []observed.Entry, keep func(observed.Entry) bool) []observed.Entry {
	var kept []observed.Entry
	for _, e := range all {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

func toJSON(e observed.Entry, names view.StatusNames) entryJSON {
	j := entryJSON{
		Kind: e.Kind, Name: e.Name, Source: e.Source(), Count: e.Count, FirstSeen: e.First.UTC(), LastSeen: e.Last.UTC(),
		Documented: e.Documented, Unverified: e.Unverified, Sample: e.Sample,
	}
	if e.Kind == observed.Status {
		label, _, _ := strings.Cut(e.Sample, ",")
		j.StatusName, _ = names.Own(e.Name, label, "")
	}
	return j
}

func columns() []command.Column[observed.Entry] {
	return []command.Column[observed.Entry]{
		{Column: render.Column{Name: "KIND", CSV: "kind"}, Cell: func(e observed.Entry) string { return string(e.Kind) }},
		{Column: render.Column{Name: "NAME", CSV: "name", Flex: true}, Cell: func(e observed.Entry) string { return e.Name }},
		{Column: render.Column{Name: "COUNT", CSV: "count", Right: true}, Count: func(e observed.Entry) int64 { return e.Count }},
		{Column: render.Column{Name: "FIRST", CSV: "firstSeen", Rank: 3}, Time: func(e observed.Entry) time.Time { return e.First }},
		{Column: render.Column{Name: "LAST", CSV: "lastSeen", Rank: 2}, Time: func(e observed.Entry) time.Time { return e.Last }},
		{Column: render.Column{Name: "DOCUMENTED", CSV: "documented"}, Cell: func(e observed.Entry) string { return yes(e.Documented) }},
		{Column: render.Column{Name: "VERIFIED", CSV: "unverified", Rank: 4}, CSVCell: func(e observed.Entry) string { return yes(e.Unverified) }, Cell: func(e observed.Entry) string {
			if e.Unverified {
				return "unverified"
			}
			return ""
		}},
		{Column: render.Column{Name: "SAMPLE", CSV: "sample", Flex: true, Rank: 1}, Cell: func(e observed.Entry) string { return e.Sample }},
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func newDiff(f *command.Factory) *cobra.Command {
	var since string
	var all, fail bool
	cmd := &cobra.Command{
		Use:   "diff --since TIME",
		Short: "List what is new since a time and not documented",
		Long: `diff lists what was met first since a time and is not documented: a change of the
service. With --all it also lists what is documented and was met first.

Exit status with --fail-on-new: 6 if anything is listed.`,
		Example: command.Example("waybill observed diff --since 24h", "waybill observed diff --since 2026-11-20 --fail-on-new -o jsonl"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runDiff(ctx, c, since, all, fail)
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "met first since a `TIME`: RFC 3339, a date, or an age")
	cmd.Flags().BoolVar(&all, "all", false, "also what is documented")
	cmd.Flags().BoolVar(&fail, "fail-on-new", false, "exit with 6 if there is anything")
	command.ColumnsFlag(cmd, columns())
	return cmd
}

func runDiff(ctx context.Context, c *command.Call, since string, all, fail bool) error {
	if since == "" {
		return command.Usagef("such as --since 24h", "missing flag: --since")
	}
	from, err := command.ParseSince("--since", since)
	if err != nil {
		return err
	}
	if from.After(time.Now()) {
		return command.Usagef("such as --since 24h", "--since %q is in the future: nothing can be new since then", since)
	}
	entries, err := register(ctx, c)
	if err != nil {
		return err
	}
	isNew := func(e observed.Entry) bool { return !e.First.Before(from) && (all || !e.Documented) }
	n := len(keepAll(entries, isNew))
	if err := list(c, "Nothing new", entries, isNew); err != nil || n == 0 || !fail {
		return err
	}
	return &command.ExitError{
		Code: command.Partial, Err: fmt.Errorf("%s since %s", command.Plural(n, "new observation"), render.LocalTime(from)),
		Hint: "`waybill observed export FILE` makes a file for the service's support",
	}
}
