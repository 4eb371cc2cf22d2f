package events

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const targetHeader = "target-header"

// TargetHeaderFlag adds --target-header.
func TargetHeaderFlag(cmd *cobra.Command, headers *[]string) {
	cmd.Flags().StringArrayVar(headers, targetHeader, nil, "send header NAME of `[URL=>]NAME=env:VAR` "+
		"with the value of env:VAR or file:PATH; URL=> limits it to one target")
}

// AllowTargetFlag adds --allow-target.
func AllowTargetFlag(cmd *cobra.Command, allow *bool) {
	cmd.Flags().BoolVar(allow, "allow-target", false, "allow targets at link-local addresses and metadata services")
}

// ForwardUnverifiedFlag adds --forward-unverified.
func ForwardUnverifiedFlag(cmd *cobra.Command, unverified *bool) {
	cmd.Flags().BoolVar(unverified, "forward-unverified", false, "send deliveries that did not verify too")
}

// AddTargetHeaders adds the headers of --target-header to targets. With several targets, each value must name its
// target, since it may hold a secret.
func AddTargetHeaders(c *command.Call, values []string, targets []forward.Target) error {
	const hint = "such as --" + targetHeader + " Authorization=env:APP_TOKEN"
	isOther := func(t forward.Target) bool { return t.URL.String() != targets[0].URL.String() }
	for _, value := range values {
		to, field, hasURL := strings.Cut(value, "=>")
		if !hasURL {
			to, field = "", value
		}
		name, place, ok := strings.Cut(field, "=")
		if !ok {
			return command.Usagef(hint, "--%s must be NAME=env:VAR or NAME=file:PATH", targetHeader)
		}
		if err := forward.CheckHeader(name); err != nil {
			return command.Usagef(hint, "--%s: %w", targetHeader, err)
		}
		if !hasURL && slices.ContainsFunc(targets, isOther) {
			return command.Usagef("write URL=>"+name+"=env:VAR",
				"--%s %s does not say which of several targets gets it", targetHeader, name)
		}
		gets := func(t forward.Target) bool { return !hasURL || sameURL(to, t.URL) }
		if !slices.ContainsFunc(targets, gets) {
			return command.Usagef("write the URL exactly as in the target",
				"--%s %s names no target of this command: %s", targetHeader, name, forward.ShowAddress(to))
		}
		secret, err := config.ReadSecret(place, c.Getenv)
		if err != nil {
			return command.Usagef(hint, "--%s %s: %w", targetHeader, name, err)
		}
		for i := range targets {
			if gets(targets[i]) {
				targets[i].Headers = append(targets[i].Headers, webhook.Field{Name: name, Value: secret.Reveal()})
			}
		}
	}
	return nil
}

func sameURL(text string, u *url.URL) bool {
	other, err := forward.ParseURL(strings.TrimSpace(text))
	return err == nil && other.String() == u.String()
}

// TargetHeadersOf returns the values of --target-header for a command with only this target.
func TargetHeadersOf(t forward.Target, values []string) []string {
	var own []string
	for _, value := range values {
		to, field, hasURL := strings.Cut(value, "=>")
		switch {
		case !hasURL:
			own = append(own, value)
		case sameURL(to, t.URL):
			own = append(own, field)
		}
	}
	return own
}

// TargetPolicy says whether a command may send to link-local addresses and metadata services.
type TargetPolicy struct{ Allow bool }

// NewForwardClient returns a client for targets. The caller closes it.
func NewForwardClient(s *app.Session, policy TargetPolicy) (*forward.Client, error) {
	roots, err := api.Certificates(s.Config.CAFile)
	if err != nil {
		return nil, err
	}
	return forward.NewClient(forward.ClientOptions{
		Timeout: s.Config.RequestTimeout, Roots: roots, AllowForbidden: policy.Allow, InFlight: s.InFlightCounter(),
	}), nil
}

// AddTarget adds the target of a flag unless it is forbidden or present already.
func (p TargetPolicy) AddTarget(all []forward.Target, t forward.Target, flag string) ([]forward.Target, error) {
	if t.Forbidden() && !p.Allow {
		return nil, command.Usagef("add --allow-target if this is intended",
			"--%s %s is a link-local address or a metadata service", flag, t.Show())
	}
	if slices.ContainsFunc(all, func(other forward.Target) bool { return other.Key() == t.Key() }) {
		return nil, command.Usagef("name it once", "--%s %s appears twice", flag, t.Show())
	}
	return append(all, t), nil
}

// WarnUnencrypted warns about targets that receive deliveries unencrypted.
func WarnUnencrypted(io *term.IO, targets []forward.Target) {
	warned := map[string]bool{}
	for _, t := range targets {
		if t.Unencrypted() && !warned[t.Show()] {
			warned[t.Show()] = true
			io.Warning("deliveries go to %s unencrypted", t.Show())
		}
	}
}

func computer(l inbox.Listener) string {
	name, _, _ := strings.Cut(l.Host, "/")
	return name
}

func isSentTo(running []inbox.Listener, sink int64) bool {
	return slices.ContainsFunc(running, func(l inbox.Listener) bool { return slices.Contains(l.Sinks, sink) })
}

func runningListener(ctx context.Context, c *command.Call) (*url.URL, error) {
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	var here, others []string
	if db != nil {
		running, err := db.Listeners.RunningListeners(ctx)
		if err != nil {
			return nil, err
		}
		for _, l := range running {
			if app.IsThisComputer(l.Host) {
				here = append(here, l.URL)
			} else {
				others = append(others, computer(l))
			}
		}
	}
	slices.Sort(here)
	slices.Sort(others)
	switch {
	case len(here) == 1:
		c.IO.Note("Sending to the listener at %s", here[0])
		return forward.ParseURL(here[0])
	case len(here) > 1:
		return nil, command.Usagef("choose one with --to URL",
			"several listeners run on this store: %s", strings.Join(here, ", "))
	case len(others) > 0:
		return nil, command.Usagef("give --to URL, with an address that this computer reaches",
			"the listeners of this store run on other computers: %s", strings.Join(slices.Compact(others), ", "))
	}
	return nil, command.Usagef("start `waybill listen` in another terminal, or give --to URL",
		"nothing to send to: no listener runs on this store")
}

// OtherComputers returns the other computers whose listeners send to the sink, and whether a listener here does.
func OtherComputers(running []inbox.Listener, sink int64) (names []string, here bool) {
	for _, l := range running {
		switch {
		case !slices.Contains(l.Sinks, sink):
		case app.IsThisComputer(l.Host):
			here = true
		default:
			names = append(names, computer(l))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), here
}

// requireHere returns an error for a loopback target of another computer: only listeners there can send to it.
func requireHere(ctx context.Context, db *app.Store, targets []forward.Target) error {
	running, err := db.Listeners.RunningListeners(ctx)
	if err != nil {
		return err
	}
	sinks, err := db.Outbox.Sinks(ctx)
	if err != nil {
		return err
	}
	for _, t := range targets {
		for _, k := range sinks {
			names, here := OtherComputers(running, k.ID)
			if t.IsLoopback() && k.URL == t.URL.String() && !here && len(names) > 0 {
				return command.Usagef("run this command there, or give --to URL",
					"target %s is on another computer: %s", t.Show(), strings.Join(names, ", "))
			}
		}
	}
	return nil
}
