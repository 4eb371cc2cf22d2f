package listen

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/inspect"
	"github.com/waybill-cli/waybill/internal/forward"
)

type uiOptions struct {
	On         bool
	Addr, File string
}

func (o *uiOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.On, "ui", false, "show what arrives as a live page in a browser, and print its URL")
	inspect.AddrFlag(cmd, &o.Addr)
	cmd.Flags().StringVar(&o.File, "ui-file", "", "write the page's URL to `FILE`")
	command.Section(cmd.Flags(), "Page", "ui", "ui-addr", "ui-file")
}

// check refuses flags about a page that is not asked for.
func (o *uiOptions) check(c *command.Call) error {
	for _, name := range []string{"ui-addr", "ui-file"} {
		if !o.On && c.Cmd.Flags().Changed(name) {
			return command.Usagef("add --ui", "--%s is of use with --ui only", name)
		}
	}
	return nil
}

// open opens the page of a listener; nil if it is not asked for. It sends again to what
// the listener forwards to.
func (o *uiOptions) open(ctx context.Context, s *server, allowTarget bool, listener string) (*inspect.Page, error) {
	if !o.On {
		return nil, nil //nolint:nilnil // no page is an answer
	}
	var targets []forward.Target
	if s.forwarding != nil {
		targets = s.forwarding.targets
	}
	return inspect.Open(ctx, o.Addr, inspect.Options{
		Call: s.call, Targets: targets, AllowTarget: allowTarget, Listener: listener, Arrivals: s.receiver.Subscribe(),
	})
}
