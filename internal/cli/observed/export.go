package observed

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/observed"
)

// exportJSON is the file for the service's support.
type exportJSON struct {
	Program  string      `json:"program"`
	Exported time.Time   `json:"exported"`
	About    string      `json:"about"`
	Entries  []entryJSON `json:"entries"`
}

const aboutExport = "What a client met of the tracking service, and whether the interface document has it. Samples are masked: 0 for a digit, a or A for a letter."

// exportedJSON is what the command reports.
type exportedJSON struct {
	File         string `json:"file"`
	Entries      int    `json:"entries"`
	Undocumented int    `json:"undocumented"`
}

func newExport(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "export FILE",
		Short: "Write a redacted file for the service's support",
		Long: `export writes what was observed as JSON, to hand it to the service's support. The
file has names, types, counts, times and masked samples. It has no tracking numbers,
order numbers, addresses, keys, host or account. "-" is standard output.`,
		Example: command.Example("waybill observed export observed.json", "waybill observed export - | less"),
		Args:    command.Exactly(1, "FILE"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runExport(ctx, c, args[0])
		}),
	}
}

func runExport(ctx context.Context, c *command.Call, path string) (err error) {
	entries, err := register(ctx, c)
	if err != nil {
		return err
	}
	undocumented := map[observed.Kind]int{}
	done := exportedJSON{File: path, Entries: len(entries)}
	for _, e := range entries {
		if !e.Documented {
			undocumented[e.Kind]++
			done.Undocumented++
		}
	}
	text, err := json.MarshalIndent(newExportJSON(entries), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if path == command.StdinName {
		return c.Out.Bytes(text)
	}
	if err := command.RefuseExisting(path); err != nil {
		return err
	}
	file, err := command.NewAtomicFile(ctx, path)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err = file.Write(text); err == nil {
		err = file.Commit()
	}
	var kinds []string
	for _, kind := range observed.Kinds() {
		if n := undocumented[kind]; n > 0 {
			kinds = append(kinds, string(kind)+" "+command.Number(int64(n)))
		}
	}
	listed := ""
	if len(kinds) > 0 {
		listed = " (" + strings.Join(kinds, ", ") + ")"
	}
	if err != nil {
		return err
	}
	c.IO.Note("It has names, types, counts, times and masked samples; read it before you send it")
	return errors.Join(err, c.Out.Result(done, "Wrote %s, of which %s not documented%s, to %s",
		plural(done.Entries, "entry", "entries"), plural(done.Undocumented, "is", "are"), listed, path))
}

func newExportJSON(entries []observed.Entry) exportJSON {
	j := exportJSON{Program: buildinfo.UserAgent(), Exported: time.Now().UTC().Truncate(time.Second), About: aboutExport, Entries: []entryJSON{}}
	for _, e := range entries {
		j.Entries = append(j.Entries, toJSON(e, nil))
	}
	return j
}

// Export returns what export writes, of what was observed until its last command. It
// writes nothing to the store.
func Export(ctx context.Context, from observed.Store, account string) (any, error) {
	entries, _, err := read(ctx, from, account)
	return newExportJSON(entries), err
}

// plural returns n with a word for one or for several.
func plural(n int, one, several string) string {
	if n != 1 {
		one = several
	}
	return command.Number(int64(n)) + " " + one
}
