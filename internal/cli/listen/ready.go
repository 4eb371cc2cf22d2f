package listen

import (
	"cmp"
	"context"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
)

type readyJSON struct {
	command.Ready

	Scheme  string       `json:"scheme"` // empty if none is set
	Mode    string       `json:"mode"`   // how deliveries are verified: off, observe or enforce
	Store   string       `json:"store"`  // path of its file, or URL of its server
	Targets []targetJSON `json:"targets"`
	UI      string       `json:"ui,omitempty"` // URL of the page, with its token unless --ui-file has that
}

type targetJSON struct {
	Target string `json:"target"` // without what may be a token
	Filter string `json:"filter"`
}

// announce says where deliveries are taken, how they are verified, stored and forwarded, and where the page is.
func (s *server) announce(ctx context.Context, url string, o listenOptions) error {
	page := ""
	if s.page != nil {
		if err := command.WriteReadyFile(ctx, s.page.SecretURL(), o.UI.File); err != nil {
			return err
		}
		how := ""
		if page = s.page.SecretURL(); o.UI.File != "" {
			page, how = s.page.URL(), " (opens with the URL in "+o.UI.File+")"
		}
		s.call.IO.Announce("Inspector: %s%s", page, how)
	}
	if err := command.WriteReadyFile(ctx, url, o.ReadyFile); err != nil {
		return err
	}
	w := s.call.Config.Webhook
	if s.call.Out.Machine() {
		if err := s.forwarding.printBacklog(ctx); err != nil {
			return err
		}
		ready := command.Ready{Type: "ready", URL: url}
		j := readyJSON{Ready: ready, Scheme: w.Scheme, Mode: w.Verify, Store: s.db.Path, Targets: []targetJSON{}, UI: page}
		for _, t := range s.forwarding.targets {
			j.Targets = append(j.Targets, targetJSON{t.Show(), t.Filter.String()})
		}
		return s.call.Out.Object(j)
	}
	scheme, mode, err := describeScheme(s.call.Session)
	if err != nil {
		return err
	}
	io := s.call.IO
	io.Note("Listening on %s", url)
	fact := func(name, value string) { io.Note("  %s%s", io.Err.Style(term.Faint, name), value) }
	fact("Scheme   ", scheme)
	fact("Mode     ", mode)
	fact("Store    ", s.db.Path)
	for i, t := range s.forwarding.targets {
		name := "Targets  "
		if i > 0 {
			name = strings.Repeat(" ", len(name))
		}
		fact(name, view.Sink(inbox.Sink{SinkKey: t.Key()}))
	}
	if len(s.forwarding.targets) == 0 {
		fact("Targets  ", "none; --forward-to URL forwards deliveries")
	}
	if err := s.forwarding.printBacklog(ctx); err != nil {
		return err
	}
	return printHead(s.call.Out)
}

func describeScheme(s *app.Session) (scheme, mode string, err error) {
	w := s.Config.Webhook
	if w.Verify == "off" {
		return cmp.Or(w.Scheme, "none"), "off: nothing is verified, and whatever arrives counts", nil
	}
	if w.Scheme == "" {
		return "no signature scheme is configured; `waybill signature learn` finds it",
			"everything is kept and marked unknown", nil
	}
	found, err := s.Scheme(w.Scheme)
	if err != nil {
		return "", "", err
	}
	if mode = w.Verify; mode == "enforce" {
		mode += ": what does not verify is answered 401 and kept as evidence"
	} else {
		mode += ": what does not verify is kept and marked"
	}
	return w.Scheme + ", " + signature.Describe(found), mode, nil
}
