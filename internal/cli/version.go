package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/render"
)

func (r *runner) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: groupRest,
		Short:   "Show the version",
		Example: example("waybill version", "waybill version -o json"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(context.Context, *app.Session, []string) error {
			return r.printVersion()
		}),
	}
}

func (r *runner) printVersion() error {
	info := buildinfo.Read()
	if r.out.machine() {
		return r.out.object(info)
	}
	return r.out.fields([]render.Field{
		{Name: "waybill", Value: info.Version},
		{Name: "Commit", Value: info.Commit},
		{Name: "Date", Value: info.Date},
		{Name: "Go", Value: info.Go},
		{Name: "Platform", Value: info.Platform},
	})
}
