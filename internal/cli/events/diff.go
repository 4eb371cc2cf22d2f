package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/replay"
)

type difference struct {
	Path string          `json:"path"` // JSON pointer, as --set takes it
	A    json.RawMessage `json:"a,omitempty"`
	B    json.RawMessage `json:"b,omitempty"`
}

func newDiff(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show in which members two events differ",
		Long: `diff prints each member in which two events differ: its path, its value in A and its
value in B. An ID is one that events show takes. The exit status is 0 if the events
are equal, and 6 if they differ. White space and the order of members do not count.`,
		Example: command.Example("waybill events diff 12 13", "waybill events diff 12.1 12.2 -o json"),
		Args:    command.Exactly(2, "the numbers or eventIds of two events; `waybill events list` shows them"),
		RunE:    f.RunE(runDiff),
	}
	command.ColumnsFlag(cmd, differenceColumns(nil))
	return cmd
}

func runDiff(ctx context.Context, c *command.Call, ids []string) error {
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var values [2]any
	for i, id := range ids {
		e, err := replay.FindEvent(ctx, db.Received(), id)
		if err == nil && e.Raw == nil {
			err = fmt.Errorf("event %q: %w", id, replay.ErrPruned)
		}
		if err != nil {
			return err
		}
		dec := json.NewDecoder(bytes.NewReader(c.SecretMasker()(e.Raw)))
		dec.UseNumber()
		if err := dec.Decode(&values[i]); err != nil {
			return command.Usagef("compare the bytes of `waybill events show ID --raw`", "event %s is not JSON", e.ID())
		}
	}
	all := differences(nil, "", values[0], values[1])
	listing := command.Listing[difference]{Out: c.Out, Empty: "The events are equal", Columns: differenceColumns(c.Out)}
	if err := listing.PrintAll(all); err != nil || len(all) == 0 {
		return err
	}
	err = errors.New("the events differ in " + command.Plural(len(all), "member"))
	return &command.ExitError{Code: command.Partial, Err: err}
}

type absent struct{}

func differences(all []difference, path string, a, b any) []difference {
	objectA, isA := a.(map[string]any)
	objectB, isB := b.(map[string]any)
	if isA && isB {
		names := maps.Clone(objectA)
		maps.Copy(names, objectB)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			all = differences(all, path+"/"+jsonscan.Escape(name), memberOf(objectA, name), memberOf(objectB, name))
		}
		return all
	}
	listA, isA := a.([]any)
	listB, isB := b.([]any)
	if isA && isB {
		for i := range max(len(listA), len(listB)) {
			all = differences(all, path+"/"+strconv.Itoa(i), elementOf(listA, i), elementOf(listB, i))
		}
		return all
	}
	if d := (difference{path, literal(a), literal(b)}); !bytes.Equal(d.A, d.B) {
		all = append(all, d)
	}
	return all
}

func memberOf(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return absent{}
}

func elementOf(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// literal returns a value as JSON, or nil if it is absent.
func literal(v any) json.RawMessage {
	if v == (absent{}) {
		return nil
	}
	b, _ := jsonscan.Marshal(v) // v was parsed from JSON
	return b
}

// differenceColumns returns the columns for out, which may be nil if only names are needed.
func differenceColumns(out *command.Output) []command.Column[difference] {
	return []command.Column[difference]{
		{Name: "PATH", Cell: func(d difference) string { return d.Path }},
		{Name: "A", Flex: true, Cell: func(d difference) string { return shown(d.A, d.B, out) }},
		{Name: "B", Flex: true, Cell: func(d difference) string { return shown(d.B, d.A, out) }},
	}
}

// shownBefore is the number of equal bytes that people see before the difference of two long values.
const shownBefore = 8

// shown returns a value. For people it starts shortly before the difference, since a terminal may cut the end.
func shown(value, other json.RawMessage, out *command.Output) string {
	same := 0
	for same < min(len(value), len(other)) && value[same] == other[same] {
		same++
	}
	if !out.ForPeople() || same <= shownBefore {
		return string(value)
	}
	return "…" + strings.ToValidUTF8(string(value[same-shownBefore:]), "")
}
