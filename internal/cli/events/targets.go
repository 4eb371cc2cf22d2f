package events

import (
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// targetHeader is the flag for headers that targets get.
const targetHeader = "target-header"

// TargetHeaderFlag adds the flag to a command.
func TargetHeaderFlag(cmd *cobra.Command, headers *[]string) {
	cmd.Flags().StringArrayVar(headers, targetHeader, nil, "send header NAME of `[URL=>]NAME=env:VAR` with the value of env:VAR or file:PATH; URL=> limits it to one target")
}

// AllowTargetFlag adds --allow-target.
func AllowTargetFlag(cmd *cobra.Command, allow *bool) {
	cmd.Flags().BoolVar(allow, "allow-target", false, "allow targets at link-local addresses and metadata services")
}

// ForwardUnverifiedFlag adds --forward-unverified.
func ForwardUnverifiedFlag(cmd *cobra.Command, unverified *bool) {
	cmd.Flags().BoolVar(unverified, "forward-unverified", false, "send deliveries that did not verify too")
}

// AddTargetHeaders adds headers to targets as the values of the flag say. Where
// there are several targets, each value names the one that gets the header: it
// may hold a secret.
func AddTargetHeaders(c *command.Call, values []string, targets []forward.Target) error {
	const hint = "such as --" + targetHeader + " Authorization=env:APP_TOKEN"
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
		for _, t := range targets {
			if !hasURL && t.URL.String() != targets[0].URL.String() {
				return command.Usagef("write URL=>"+name+"=env:VAR", "--%s %s does not say which of several targets gets it", targetHeader, name)
			}
		}
		gets := func(t forward.Target) bool { return !hasURL || sameURL(to, t.URL) }
		if !slices.ContainsFunc(targets, gets) {
			return command.Usagef("write the URL exactly as in the target", "--%s %s names no target of this command: %s", targetHeader, name, forward.ShowAddress(to))
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

// TargetHeadersOf returns the values of the flag for a command with that target alone.
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

// ShowTargetHeader is a value of the flag without what may be a token.
func ShowTargetHeader(value string) string {
	if to, field, ok := strings.Cut(value, "=>"); ok {
		return forward.ShowAddress(to) + "=>" + field
	}
	return value
}

// NewForwardClient returns a client for targets. allow lets it dial link-local
// addresses and metadata services too. The caller closes it.
func NewForwardClient(s *app.Session, allow bool) (*forward.Client, error) {
	roots, err := api.Certificates(s.Config.CAFile)
	if err != nil {
		return nil, err
	}
	return forward.NewClient(forward.ClientOptions{Timeout: s.Config.RequestTimeout, Roots: roots, AllowForbidden: allow, InFlight: s.InFlightCounter()}), nil
}

// WarnUnencrypted warns of targets that get deliveries unencrypted.
func WarnUnencrypted(io *term.IO, targets []forward.Target) {
	warned := map[string]bool{}
	for _, t := range targets {
		if t.Unencrypted() && !warned[t.Show()] {
			warned[t.Show()] = true
			io.Warning("deliveries go to %s unencrypted", t.Show())
		}
	}
}
