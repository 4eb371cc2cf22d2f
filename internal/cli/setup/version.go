package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/render"
)

// NewVersion returns the command version.
func NewVersion(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Long:    "version shows which build of waybill this is.",
		Example: command.Example("waybill version", "waybill version -o json"),
		RunE:    f.RunE(PrintVersion),
	}
}

// PrintVersion prints the version and build information.
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
