package doctor

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

type examination struct {
	call   *command.Call
	broken error // why the settings can't be used, nil if they can
	options

	free  func(folder string) (int64, bool) // see [disk.Free]
	limit time.Duration                     // for one check
	read  time.Duration                     // for reading the store

	writable func(path string) bool // see [disk.Writable]
}

type options struct {
	offline bool   // skip network checks
	probing bool   // find out undocumented behaviour of the service
	ref     string // REF of the tracking to probe with; empty for any
	bundle  string // path of a ZIP file to write; empty for none
}

type part struct {
	check string
	run   func(context.Context) []finding
}

// New returns the command doctor.
func New(f *command.Factory) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "doctor [REF]",
		Short: "Check settings, service, store and webhooks",
		Long: `doctor checks what waybill depends on and prints one line for each check: ok,
warning, problem or not checked, with the remedy. It changes nothing, works without
settings, and takes at most 15 seconds, with --probe two minutes.

  configuration  files, their permissions, and where each value comes from
  api-key        where the key comes from, and whether the service accepts it (access)
  connection     the service's host, proxy, TLS certificate and clock
  store          version, permissions, free space; whether its tables are sound
  responses      what is proven of the responses to create, see "waybill help rows"
  webhooks       secret, signature scheme, listeners that run, and their targets
  version        of waybill, and what the terminal can show

The service gets one request without the key and one query for a random referId.
Listeners get a HEAD request; targets get a connection and no request.

--probe sends queries only. It queries random identifiers to find out what the
response "no such tracking" looks like, and an existing tracking to find the
parameter for tracking numbers: the existing number must be found, a random one
must not. The existing tracking is REF, or else an accepted row of the store. A
setting that does not match is a problem, with the command that sets it.

--bundle writes what was found to a ZIP file for those who help, without keys and
secrets. An existing file is not replaced.

Exit status: 0 without problems, 1 with at least one. Warnings do
not change it.`,
		Example: command.Example("waybill doctor", "waybill doctor --offline", "waybill doctor --probe ORD-1001",
			"waybill doctor --bundle found.zip", "waybill doctor -o json --jq '.[] | select(.status == \"problem\")'"),
		Args: command.Between(0, 1, "REF"),
	}
	cmd.RunE = f.RunAlways(func(ctx context.Context, c *command.Call, args []string, broken error) error {
		if len(args) > 0 {
			o.ref = args[0]
		}
		return runDoctor(ctx, newExamination(c, broken, o))
	})
	cmd.Flags().BoolVar(&o.probing, "probe", false, "find out how the service reports unknown trackings")
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "write what was found to `FILE`, a ZIP file without secrets")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "skip network checks")
	return cmd
}

func newExamination(c *command.Call, broken error, o options) *examination {
	c.ReadOnly = true
	x := &examination{
		call: c, broken: broken, options: o,
		free: disk.Free, writable: disk.Writable, limit: 12 * time.Second, read: 5 * time.Second,
	}
	if o.probing {
		x.limit = 2 * time.Minute
	}
	return x
}

func runDoctor(ctx context.Context, x *examination) error {
	switch {
	case x.probing && x.offline:
		return command.Usagef("remove one of them", "--probe and --offline exclude each other")
	case x.ref != "" && !x.probing:
		return command.Usagef("run `waybill doctor --probe REF`", "a REF is for --probe")
	case x.call.Cmd.Flags().Changed("bundle"):
		if err := errors.Join(command.CheckNotEmpty(x.call.Cmd, "bundle"), checkBundle(x.bundle)); err != nil {
			return err
		}
	}
	progress := x.call.IO.Progress("Checking")
	all, err := x.run(ctx)
	progress.Stop()
	if err != nil {
		return err
	}
	if err := printAll(x.call, all); err != nil {
		return err
	}
	if x.bundle != "" {
		if err := x.writeBundle(ctx, x.bundle, all); err != nil {
			return err
		}
	}
	return problems(all)
}

func (x *examination) run(ctx context.Context) ([]finding, error) {
	parts := []part{
		{"configuration", x.configuration},
		{"api-key", x.apiKey},
		{"connection", x.connection},
		{"access", x.access},
		{"store", x.store},
		{"webhooks", x.webhooks},
	}
	if x.probing {
		parts = append(parts, part{"probe", x.probe})
	}
	if x.broken != nil { // all parts but the first need settings
		for i, p := range parts[1:] {
			f := found(settingsUnusable, "the configuration is not usable")
			f.Check = p.check
			parts[1+i].run = func(context.Context) []finding { return []finding{f} }
		}
	}
	parts = append(parts, part{"version", x.version}, part{"terminal", x.terminal})
	results := make([][]finding, len(parts))
	group, ctx := errgroup.WithContext(ctx)
	for i, p := range parts {
		group.Go(func() (err error) {
			results[i], err = x.runPart(ctx, p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(results...)
	for i, f := range all {
		if words, ours := strings.CutPrefix(f.NextCommand, "waybill "); ours && f.NextCommand == f.kind.next {
			all[i].NextCommand = x.call.CommandLine(strings.Fields(words)...)
		}
	}
	return all, nil
}

// runPart runs the checks of a part, and gives up after x.limit.
func (x *examination) runPart(ctx context.Context, p part) ([]finding, error) {
	limited, cancel := context.WithTimeout(ctx, x.limit)
	defer cancel()
	findings, err := term.Await(limited, func() ([]finding, error) { return p.run(limited), nil })
	if err == nil {
		return findings, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	late := found(timedOut, "took longer than %s", x.limit)
	late.Check = p.check
	return []finding{late}, nil
}

func problems(all []finding) error {
	n, next := 0, ""
	for _, f := range all {
		if f.Status == problem {
			n++
		}
		if next == "" && (f.Status == problem || f.kind == configMissing) {
			next = f.NextCommand
		}
	}
	if n == 0 {
		return nil
	}
	err := command.FoundError(command.Plural(n, "problem") + " found")
	return &command.ExitError{Code: command.Failed, Err: err, Hint: "follow the hints of the problems", Next: next}
}

func printAll(c *command.Call, all []finding) error {
	if c.Out.Machine() || c.Out.IsCSV() {
		w := command.Listing[finding]{Out: c.Out, Columns: []command.Column[finding]{
			{Name: "CHECK", Cell: func(f finding) string { return f.Check }},
			{Name: "STATUS", Cell: func(f finding) string { return string(f.Status) }},
			{Name: "MESSAGE", Cell: func(f finding) string { return f.Message }},
			{Name: "HINT", Cell: func(f finding) string { return f.Hint }},
			{Name: "NEXT COMMAND", Cell: func(f finding) string { return f.NextCommand }},
		}}
		return w.PrintAll(all)
	}
	for _, f := range all {
		if err := printFinding(c.Out.Out(), f); err != nil {
			return err
		}
	}
	return nil
}

// printFinding prints a finding and its remedy. On a terminal, all but the command is wrapped.
func printFinding(w *term.Writer, f finding) error {
	const room = 28 // columns for status and check
	lines := render.Wrap(term.Visible(f.Message), w.Width()-room)
	if f.Hint != "" {
		lines = append(lines, render.Wrap("hint: "+term.Visible(f.Hint), w.Width()-room)...)
	}
	if f.NextCommand != "" {
		lines = append(lines, "next: "+f.NextCommand)
	}
	err := w.Printf("%s  %s  %s\n", w.Style(f.style(), fmt.Sprintf("%-11s", f.words())), fmt.Sprintf("%-13s", f.Check),
		lines[0])
	for _, line := range lines[1:] {
		err = errors.Join(err, w.Printf("%*s%s\n", room, "", line))
	}
	return err
}

const readme = `This file was made by "waybill doctor --bundle" for those who help with waybill.
doctor.json is what doctor found: versions, addresses of the service, of listeners and
targets, paths of files, and which settings are set. Keys, secrets and passwords are
masked as ***, and the home folder is written as ~.
`

func checkBundle(path string) error {
	if path == command.StdinName {
		return command.Usagef("give --bundle FILE", "a ZIP file is not written to standard output")
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return command.Existsf("use another file, or remove that one", "%s exists", path)
	}
	return nil
}

// writeBundle writes the findings to a ZIP file that only the user can read.
func (x *examination) writeBundle(ctx context.Context, path string, all []finding) error {
	found, err := jsonscan.Marshal(all)
	if err != nil {
		return err
	}
	f, err := command.NewAtomicFile(ctx, path) // 0600
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := writeZIP(f, x.withoutSecrets(append(render.Indented(found), '\n'))); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := checkBundle(path); err != nil { // another program may have created it
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	x.call.IO.Note("Wrote %s; check the file before you send it", path)
	return nil
}

// withoutSecrets removes secrets, and the home folder, which often has the user's name.
func (x *examination) withoutSecrets(b []byte) []byte {
	b = x.call.Redactor().Bytes(b)
	quoted, err := json.Marshal(x.call.Sources().Home)
	if home := bytes.Trim(quoted, `"`); err == nil && len(home) > 1 {
		b = bytes.ReplaceAll(b, home, []byte("~"))
	}
	return b
}

func writeZIP(w io.Writer, found []byte) error {
	z := zip.NewWriter(w)
	for _, file := range []struct {
		name string
		data []byte
	}{{"README.txt", []byte(readme)}, {"doctor.json", found}} {
		part, err := z.CreateHeader(&zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: time.Now()})
		if err == nil {
			_, err = part.Write(file.data)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}
