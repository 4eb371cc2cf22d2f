package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/render"
)

func NewVersion(r *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: command.GroupRest,
		Short:   "Show the version",
		Example: command.Example("waybill version", "waybill version -o json"),
		Args:    cobra.NoArgs,
		RunE: r.RunE(func(context.Context, *app.Session, []string) error {
			return PrintVersion(r)
		}),
	}
}

func PrintVersion(r *command.Factory) error {
	info := buildinfo.Read()
	if r.Out.Machine() {
		return r.Out.Object(info)
	}
	return r.Out.Fields([]render.Field{
		{Name: "waybill", Value: info.Version},
		{Name: "Commit", Value: info.Commit},
		{Name: "Date", Value: info.Date},
		{Name: "Go", Value: info.Go},
		{Name: "Platform", Value: info.Platform},
	})
}
