package input

import (
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/intake"
)

// Flags say how files are read, beside the settings.
type Flags struct {
	Format, Sheet string
	AcceptOdd     bool   // of rows
	SaveMap       string // of rows: name for the mapping; empty for none
	From          string // of REFs: the file; empty for none
}

// AddRows adds the flags of commands that read rows to be created.
func (o *Flags) AddRows(cmd *cobra.Command) {
	f := cmd.Flags()
	command.SettingFlags(cmd, "map", "carrier-map", "encoding", "strip-spaces")
	f.StringVar(&o.SaveMap, "save-map", "", "save the mapping of --map as `NAME`, for --map @NAME")
	o.add(cmd)
	f.BoolVar(&o.AcceptOdd, "accept-odd-values", false, "accept values that look damaged by a spreadsheet or like placeholders")
	command.Section(f, command.InputSection, "save-map", "accept-odd-values")
}

// AddFrom adds the flags of commands that read REFs from a file.
func (o *Flags) AddFrom(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.From, "from", "", "read REFs from `FILE`: XLSX, CSV, JSON, JSONL or one a line (- for standard input)")
	command.Section(cmd.Flags(), command.InputSection, "from")
	o.add(cmd, intake.List)
	command.SettingFlags(cmd, "map", "encoding", "strip-spaces")
}

// add adds the flags of all that read files; formats are those beside the common ones.
func (o *Flags) add(cmd *cobra.Command, formats ...intake.Format) {
	var words []string
	for _, f := range append([]intake.Format{intake.Auto, intake.XLSX, intake.CSV, intake.TSV, intake.JSON, intake.JSONL}, formats...) {
		words = append(words, string(f))
	}
	f := cmd.Flags()
	command.Choice(f, &o.Format, "format", string(intake.Auto), "read the input as `FORMAT`", words...)
	f.StringVar(&o.Sheet, "sheet", "", "read the sheet `NAME` of a workbook, or its number from 1")
	command.Section(f, command.InputSection, "format", "sheet")
}

// Options returns how a call with these flags reads files.
func (o *Flags) Options(c *command.Call) intake.Options {
	return intake.Options{
		Map: c.Config.Map, Encoding: c.Config.Encoding, StripSpaces: c.Config.StripSpaces, Carriers: c.Config.Carriers,
		Format: intake.Format(o.Format), Sheet: o.Sheet, AcceptOdd: o.AcceptOdd,
	}
}

// CheckSaveMap refuses a name that can't be saved, before anything is read.
func (o *Flags) CheckSaveMap(c *command.Call) error {
	if err := command.CheckNotEmpty(c.Cmd, "save-map"); err != nil || o.SaveMap == "" {
		return err
	}
	if len(c.Config.Map) == 0 {
		return command.Usagef("add --map FIELD=HEADER, such as --map referId='Order No'", "--save-map without --map")
	}
	return config.CheckMapName(o.SaveMap)
}

// KeepMap saves the mapping of the call if a name for it was given. It is to be called
// once a header fits.
func (o *Flags) KeepMap(c *command.Call) error {
	if o.SaveMap == "" {
		return nil
	}
	path, err := c.EditUser(config.Change{Key: "maps." + o.SaveMap, Value: c.Config.Map})
	if err == nil {
		c.IO.Note("Mapping saved in %s: use it with --map @%s", path, o.SaveMap)
	}
	return err
}
