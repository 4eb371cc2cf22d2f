package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/render"
)

// NewVersion returns the command that shows the version.
func NewVersion(f *command.Factory) *cobra.Command {
	var bill bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Long: `version shows which build of waybill this is.

--sbom prints its software bill of materials (CycloneDX 1.6, JSON): every module that
is linked into this binary, with version and checksum, as the build recorded them.`,
		GroupID: command.GroupRest,
		Example: command.Example("waybill version", "waybill version -o json", "waybill version --sbom --out waybill.cdx.json"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			if bill {
				return printSBOM(c)
			}
			return PrintVersion(ctx, c, args)
		}),
	}
	cmd.Flags().BoolVar(&bill, "sbom", false, "print the software bill of materials as CycloneDX JSON")
	return cmd
}

func printSBOM(c *command.Call) error {
	if c.Out.IsCSV() {
		return command.Usagef("leave -o csv out", "--sbom prints JSON only")
	}
	bill, err := buildinfo.ReadSBOM()
	if err != nil {
		return err
	}
	return c.Out.Object(bill)
}

// PrintVersion prints the version and how the program was built.
func PrintVersion(_ context.Context, c *command.Call, _ []string) error {
	info := buildinfo.Read()
	if c.Out.Machine() {
		return c.Out.Object(info)
	}
	return c.Out.Fields([]render.Field{
		{Name: "waybill", Value: info.Version},
		{Name: "Commit", Value: info.Commit},
		{Name: "Date", Value: info.Date},
		{Name: "Go", Value: info.Go},
		{Name: "Platform", Value: info.Platform},
	})
}
