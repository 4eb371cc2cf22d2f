package listen

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
)

const (
	ackStored    = "stored"
	ackForwarded = "forwarded"
)

type forwardOptions struct {
	To, Headers                   []string
	Unverified, Skip, AllowTarget bool
	From, Ack                     string
}

func (o *forwardOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.To, "forward-to", nil, "forward verified deliveries to `[FILTER=>]URL`, or a port of this computer; may be repeated")
	events.TargetHeaderFlag(cmd, &o.Headers)
	events.ForwardUnverifiedFlag(cmd, &o.Unverified)
	f.StringVar(&o.From, "from", "", "begin forwarding at `WHERE`: a delivery's number, a time, an age, or beginning")
	f.BoolVar(&o.Skip, "skip-backlog", false, "drop deliveries that are not forwarded yet")
	command.Choice(f, &o.Ack, "ack", ackStored, "`WHEN` to answer a delivery: stored, or forwarded (passes on the target's status; one target only)", ackStored, ackForwarded)
	events.AllowTargetFlag(cmd, &o.AllowTarget)
	command.Section(f, "Forwarding", "forward-to", "target-header", "forward-unverified", "from", "skip-backlog", "ack", "allow-target")
}

func (o forwardOptions) targets() ([]forward.Target, error) {
	var all []forward.Target
	for _, text := range o.To {
		t, err := forward.ParseTarget(text)
		if err != nil {
			return nil, command.Usagef("such as --forward-to 3000 or --forward-to 'event=router.delivered=>https://app.test/hook'", "--forward-to %s: %w", command.Quoted(showTarget(text)), err)
		}
		if t.Forbidden() && !o.AllowTarget {
			return nil, command.Usagef("add --allow-target if this is intended", "--forward-to %s is a link-local address or a metadata service", t.Show())
		}
		for _, other := range all {
			if other.Key() == t.Key() {
				return nil, command.Usagef("name it once", "--forward-to %s appears twice", t.Show())
			}
		}
		all = append(all, t)
	}
	switch {
	case o.Ack == ackForwarded && len(all) != 1:
		return nil, command.Usagef("give one --forward-to", "--ack forwarded needs exactly one target, not %d", len(all))
	case len(all) == 0 && (o.Unverified || o.Skip || o.AllowTarget || o.From != "" || len(o.Headers) > 0):
		return nil, command.Usagef("add --forward-to URL", "there is no target to forward to")
	case o.Skip && o.From != "":
		return nil, command.Usagef("leave one of them out", "--skip-backlog and --from exclude each other")
	}
	_, err := parseFrom(o.From)
	return all, err
}

// showTarget is a value of --forward-to without what may be a token.
func showTarget(text string) string {
	if filter, address, ok := strings.Cut(text, "=>"); ok {
		return filter + "=>" + forward.ShowAddress(address)
	}
	return forward.ShowAddress(text)
}

// parseFrom reads where a sink begins; nil for where it stopped, or now.
func parseFrom(text string) (*inbox.StartPosition, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil is a place of its own
	}
	if text == "beginning" {
		return &inbox.StartPosition{}, nil
	}
	if n, _, ok := replay.ParseNumber(text); ok && n > 0 {
		return &inbox.StartPosition{Delivery: n}, nil
	}
	since, err := command.ParseSince("--from", text)
	if err != nil {
		return nil, command.Usagef("a delivery's number, a time such as 2026-11-20T08:00:00Z, an age such as 48h, or beginning", "--from %q is not a place to start", text)
	}
	return &inbox.StartPosition{Since: since}, nil
}
