package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// NewSupport returns the commands for those who ask for help.
func NewSupport(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "support",
		GroupID: command.GroupRest,
		Short:   "Collect what support needs",
	}
	group.AddCommand(newBundle(f))
	return group
}

type bundleOptions struct {
	Out          string
	Yes, Offline bool
}

func newBundle(f *command.Factory) *cobra.Command {
	var o bundleOptions
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Write a ZIP file without secrets for support",
		Long: `bundle collects what support needs to find out why waybill does not work, lists it
with sizes, and writes it to a ZIP file that only you can read, once you agree. Check
its content before you send it.

It contains the result of "waybill doctor", which settings are set and where, with
text values masked, versions, the sizes of the store's tables, and how many requests
and deliveries failed with which status, and what "waybill observed export" writes.
It contains no secrets, no referIds, no tracking numbers, and no values that were
sent or received.

Without a terminal it is written with --yes only. An existing file is never replaced.`,
		Example: command.Example("waybill support bundle", "waybill support bundle --out bundle.zip --yes"),
		Args:    cobra.NoArgs,
	}
	cmd.RunE = f.RunAlways(func(ctx context.Context, c *command.Call, broken error) error {
		return runBundle(ctx, newExamination(f, c, broken, o.Offline), o)
	})
	command.OwnOutFlag(cmd, &o.Out, "write the ZIP to `FILE` (default waybill-support-TIME.zip)")
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "write without asking")
	cmd.Flags().BoolVar(&o.Offline, "offline", false, "connect to nothing")
	return cmd
}

// bundleJSON is the result: what was written where.
type bundleJSON struct {
	File    string      `json:"file"`
	Bytes   int64       `json:"bytes"`
	Entries []entryJSON `json:"entries"`
}

type entryJSON struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

func runBundle(ctx context.Context, x *examination, o bundleOptions) error {
	c := x.call
	if o.Out == "" {
		o.Out = "waybill-support-" + time.Now().UTC().Format("20060102-150405") + ".zip"
	}
	if err := refuseExisting(o.Out); err != nil {
		return err
	}
	progress := c.IO.Progress("Checking")
	entries, err := x.collect(ctx)
	progress.Stop()
	if err != nil {
		return err
	}
	j := bundleJSON{File: o.Out}
	c.IO.Note("The file contains:")
	for _, e := range entries {
		c.IO.Note("  %-14s %7s bytes  %s", e.name, command.Number(int64(len(e.data))), e.about)
		j.Entries = append(j.Entries, entryJSON{e.name, len(e.data)})
	}
	if err := agree(ctx, c, o); err != nil {
		return err
	}
	if j.Bytes, err = writeBundle(ctx, o.Out, entries); err != nil {
		return err
	}
	c.IO.Note("Check the file before you send it")
	return c.Out.Result(j, "Wrote %s (%s bytes)", o.Out, command.Number(j.Bytes))
}

// agree asks whether to write the file.
func agree(ctx context.Context, c *command.Call, o bundleOptions) error {
	if o.Yes {
		return nil
	}
	if !c.IO.Interactive() {
		return &command.ExitError{Code: command.Usage, Err: errors.New("nothing was written: there is no terminal to ask on"), Hint: "write it with --yes", Next: c.Repeat("--yes")}
	}
	agreed, err := c.IO.Confirm(ctx, "Write %s?", o.Out)
	if err == nil && !agreed {
		err = command.Usagef("run the command again to write the file", "nothing was written")
	}
	return err
}

// refuseExisting returns an error if there is something at the path.
func refuseExisting(path string) error {
	if path == command.StdinName {
		return command.Usagef("give --out FILE", "a ZIP file is not written to standard output")
	}
	return command.RefuseExisting(path)
}

// writeBundle writes the ZIP file and returns its size.
func writeBundle(ctx context.Context, path string, entries []entry) (int64, error) {
	f, err := command.NewAtomicFile(ctx, path) // 0600
	if err != nil {
		return 0, err
	}
	defer f.Discard()
	if err := zipEntries(f, entries); err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	info, err := os.Stat(f.Name())
	if err == nil {
		err = refuseExisting(path) // another program may have made it
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Commit()
}
