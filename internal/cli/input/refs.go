package input

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Flags are the flags that say how files are read, in addition to the settings.
type Flags struct {
	tracking.Rules
	Format, Sheet string
	SaveMap       string // name under which the mapping is saved; empty for none
	From          string // file of REFs; empty for none
}

// AddRows adds the flags of commands that read rows to create.
func (o *Flags) AddRows(cmd *cobra.Command) {
	f := cmd.Flags()
	command.SettingFlags(cmd, "map", "carrier-map", "encoding", "strip-spaces")
	f.StringVar(&o.SaveMap, "save-map", "", "save the mapping of --map as `NAME`, for --map @NAME")
	o.add(cmd)
	const odd = "accept-odd-values"
	f.BoolVar(&o.AcceptOdd, odd, false, "accept values that look damaged by a spreadsheet or like placeholders")
	command.Section(f, command.InputSection, "save-map", odd)
}

// AddFrom adds the flags of commands that read REFs from a file.
func (o *Flags) AddFrom(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.From, "from", "", "read REFs from `FILE`: XLSX, CSV, JSON, JSONL or one a line (- for standard input)")
	command.Section(f, command.InputSection, "from")
	o.add(cmd, intake.List)
	command.SettingFlags(cmd, "map", "encoding", "strip-spaces")
}

func (o *Flags) add(cmd *cobra.Command, formats ...intake.Format) {
	all := []intake.Format{intake.Auto, intake.XLSX, intake.CSV, intake.TSV, intake.JSON, intake.JSONL}
	all = append(all, formats...)
	words := command.Texts(len(all), func(i int) string { return string(all[i]) })
	f := cmd.Flags()
	command.Choice(f, &o.Format, "format", string(intake.Auto), "read the input as `FORMAT`", words...)
	f.StringVar(&o.Sheet, "sheet", "", "read the sheet `NAME` of a workbook, or its number from 1")
	command.Section(f, command.InputSection, "format", "sheet")
}

// Options returns the options for reading files with these flags and the settings.
func (o *Flags) Options(c *command.Call) intake.Options {
	return intake.Options{
		Map: c.Config.Map, Encoding: c.Config.Encoding, StripSpaces: c.Config.StripSpaces, Carriers: c.Config.Carriers,
		Format: intake.Format(o.Format), Sheet: o.Sheet, Rules: o.Rules, Own: c.Config.KeepColumns,
	}
}

// CheckSaveMap returns an error for an invalid --save-map, before anything is read.
func (o *Flags) CheckSaveMap(c *command.Call) error {
	if err := command.CheckNotEmpty(c.Cmd, "save-map"); err != nil || o.SaveMap == "" {
		return err
	}
	if len(c.Config.Map) == 0 {
		return command.Usagef("add --map FIELD=HEADER, such as --map referId='Order No'", "--save-map without --map")
	}
	return config.CheckMapName(o.SaveMap)
}

// KeepMap saves the mapping of the call if --save-map is set. Call it once a header has matched the mapping.
func (o *Flags) KeepMap(c *command.Call) error {
	if o.SaveMap == "" {
		return nil
	}
	path, err := c.EditUser(edit.Change{Key: "maps." + o.SaveMap, Value: c.Config.Map})
	if err == nil {
		c.IO.Note("Mapping saved in %s: use it with --map @%s", path, o.SaveMap)
	}
	return err
}

// Refs are the REFs of an input that was checked as a whole and has no bad rows.
type Refs struct {
	*Input

	Count int64 // rows, repeats included
}

// OpenRefs opens and checks the whole file of --from in constant memory. The caller closes it.
func (o *Flags) OpenRefs(ctx context.Context, c *command.Call) (*Refs, error) {
	in, err := OpenFiles(ctx, c, []string{o.From})
	if err != nil {
		return nil, err
	}
	in.Options = o.Options(c)
	in.Options.Refs, in.Options.Carriers = true, nil
	checked, err := in.Check(ctx, nil)
	switch {
	case err != nil:
	case checked.Invalid > 0:
		err = checked.Refuse("nothing was queried", "fix the rows, or pass --run ID for the rows that a run sent", "")
	case checked.Valid == 0:
		const hint = "write one REF per line, or add a first line with the names of the columns, such as referId"
		err = command.Inputf(hint, "%s: no REFs", o.From)
	default:
		noteMissing(c, checked.Summaries)
		return &Refs{in, checked.Valid}, nil
	}
	in.Close()
	return nil, err
}

func noteMissing(c *command.Call, sums []SourceSummary) {
	for _, s := range sums {
		NoteSheet(c.IO, s)
		WarnHidden(c.IO, s)
		read := command.Quoted(cmp.Or(s.ReferID, s.Number))
		for _, name := range s.Missing {
			c.IO.Note("%s: no column %s; REFs are read from %s", s.Name, command.Quoted(name), read)
		}
	}
}

// All yields the REFs in order, repeats included. It may be called again. An input that became unreadable is an error.
func (r *Refs) All(ctx context.Context) iter.Seq2[intake.Record, error] {
	return func(yield func(intake.Record, error) bool) {
		for rec, err := range r.again(ctx, r.Sources[0]) {
			if !yield(rec, err) || err != nil {
				return
			}
		}
		if err := r.Unchanged(); err != nil && ctx.Err() == nil {
			yield(intake.Record{}, err)
		}
	}
}
