package listen

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const (
	settingsPoll  = time.Second            // between checks of the configuration file
	registerEvery = time.Minute            // between registrations, in case others took the listener for dead
	wakeRest      = 100 * time.Millisecond // between wake-ups by other processes
	quietFor      = time.Minute            // without warnings about the store, after one
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

// announce prints where deliveries are accepted, how they are verified, stored and forwarded, and the page's URL.
func (s *server) announce(ctx context.Context, url string, o listenOptions) error {
	s.printing.Lock()
	defer s.printing.Unlock()
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
	name := "Targets  "
	for _, t := range s.forwarding.targets {
		fact(name, view.Sink(inbox.Sink{SinkKey: t.Key()}))
		name = strings.Repeat(" ", len(name))
	}
	if len(s.forwarding.targets) == 0 {
		fact(name, "none; --forward-to URL forwards deliveries")
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

// followSettings applies changes of the configuration file to verification.
func (s *server) followSettings(ctx context.Context) {
	paths, err := config.Locate(s.call.Sources())
	if err != nil {
		return // the settings were loaded without a file
	}
	state := func() (modified time.Time, size int64) {
		if info, err := os.Stat(paths.User); err == nil {
			return info.ModTime(), info.Size()
		}
		return modified, -1
	}
	modified, size := state()
	failed := false
	for pace.Sleep(ctx, settingsPoll) == nil {
		at, bytes := state()
		if at.Equal(modified) && bytes == size {
			continue
		}
		modified, size = at, bytes
		s.printing.Lock()
		switch err := s.reload(ctx); {
		case err != nil && ctx.Err() == nil:
			failed = true
			s.call.IO.Warning("the changed configuration can't be used; deliveries are verified as before: %v", err)
		case failed && err == nil:
			failed = false
			s.call.IO.Note("The configuration can be used again")
		}
		s.printing.Unlock()
	}
}

func (s *server) reload(ctx context.Context) error {
	now, err := s.call.Reloaded()
	if err != nil {
		return err
	}
	if w := now.Config.Webhook; w.Verify == "off" && s.mode != "off" {
		return command.Usagef("restart `waybill listen`", "webhook.verify: off takes effect when `waybill listen` starts")
	}
	verify, err := now.VerifyPrint(s.identity)
	if err != nil || verify == s.verify.Load() && now.Config.Webhook.Verify == s.mode {
		return err
	}
	o, err := verification(now)
	if err != nil {
		return err
	}
	s.receiver.Reload(o)
	s.mode = now.Config.Webhook.Verify
	s.verify.Store(verify)
	s.printer.observe = now.Config.Webhook.Scheme != "" && s.mode == "observe"
	scheme, mode, err := describeScheme(now)
	if err == nil {
		s.call.IO.Note("Configuration reloaded. Scheme %s; mode %s", scheme, mode)
		err = s.register(ctx)
	}
	return err
}

// offerScheme prints on a terminal, once, which scheme the received deliveries fit while none is set. It tries after
// three deliveries, and again whenever their number has doubled.
func (s *server) offerScheme(ctx context.Context, arrivals <-chan struct{}) {
	if w := s.call.Config.Webhook; w.Scheme != "" || w.Verify == "off" || !s.call.Out.Out().IsTerminal() {
		return
	}
	next := int64(webhook.MinLearnBodies)
	for {
		select {
		case <-arrivals:
		case <-ctx.Done():
			return
		}
		if n := s.receiver.Stored(); n < next {
			continue
		} else if n > 2*webhook.MinLearnBodies {
			next = 2 * n
		}
		now, err := s.call.Reloaded()
		if err != nil || now.Config.Webhook.Scheme != "" { // the secret or the scheme may have changed
			continue
		}
		scheme, ok, err := signature.Fitting(ctx, s.call.Session, now)
		if err != nil || !ok {
			continue // learn says why
		}
		s.printing.Lock()
		s.call.IO.Note("The deliveries fit a scheme: %s", signature.Describe(scheme))
		s.call.IO.Hint("pin it in another terminal; this listener then verifies by it")
		s.call.IO.Next(s.call.CommandLine("signature", "learn", "--pin", "learned"))
		s.printing.Unlock()
		return
	}
}

// storeWarnings warns about failures of the store: about their cause now and then, about each failure with -v.
type storeWarnings struct {
	io  *term.IO
	end context.CancelCauseFunc // ends the listener once the store is unusable

	mu     sync.Mutex
	warned time.Time
}

// warn reports an error and what failed because of it, or "" if that is reported elsewhere.
func (w *storeWarnings) warn(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	failed, ok := errors.AsType[*store.Error](err)
	if !ok {
		w.io.Warning("%s: %v", what, err)
		return
	}
	if failed.Final() {
		w.end(failed)
		return
	}
	if now := time.Now(); w.warned.IsZero() || now.Sub(w.warned) >= quietFor {
		w.warned = now
		w.io.Warning("the store can't be used now, trying again: %v", err)
	}
	if what != "" {
		w.io.Detail("%s: %v", what, err)
	}
}

// report prints a message of the receiver. It is a [listen.Report].
func (w *storeWarnings) report(level slog.Level, text string, err error) {
	switch {
	case level < slog.LevelWarn:
		w.io.Detail("%s", text)
		return
	case err != nil && level == slog.LevelWarn:
		w.warn(text, err)
		return
	case command.As[*store.Error](err):
		w.warn("", err) // the text below is for the user even if the cause was reported
	case errors.Is(err, context.DeadlineExceeded):
		text += ": no answer in time"
	case err != nil:
		text += ": " + err.Error()
	}
	w.io.Warning("%s", text)
}

func (s *server) register(ctx context.Context) error {
	l := inbox.Listener{URL: s.url, Host: app.Computer(), Verify: s.verifies()}
	for _, sink := range s.forwarding.Sinks() {
		l.Sinks = append(l.Sinks, sink.ID)
	}
	return s.db.Listeners.AddListener(ctx, l)
}

func (s *server) stayRegistered(ctx context.Context) {
	for pace.Sleep(ctx, registerEvery) == nil {
		if err := s.register(ctx); err != nil && ctx.Err() == nil {
			s.warnings.warn("other commands may not find this listener", err)
		}
	}
}

func (s *server) wakeOnChanges(ctx context.Context) {
	changes := s.db.Changes.Watch(ctx)
	for pace.Sleep(ctx, wakeRest) == nil {
		pace.Wait(ctx, changes, time.Time{})
		s.receiver.Wake()
		s.forwarding.WakeAll()
	}
}

func (s *server) warnOthers(ctx context.Context) error {
	running, err := s.db.Listeners.RunningListeners(ctx)
	if err != nil {
		return err
	}
	s.forwarding.warnShared(running)
	if s.identity, err = s.db.DB.Identity(ctx); err != nil {
		return err
	}
	verify, err := s.call.VerifyPrint(s.identity)
	if s.verify.Store(verify); err == nil {
		s.warnVerify(running)
	}
	return err
}

func (s *server) verifies() string {
	verify, _ := s.verify.Load().(string)
	return verify
}

// warnVerify warns about listeners on the same store that verify differently.
func (s *server) warnVerify(running []inbox.Listener) {
	own := s.verifies()
	warned := map[string]bool{"": true, own: true}
	for _, l := range running {
		if warned[l.Verify] {
			continue
		}
		warned[l.Verify] = true
		differs := describeVerify(l.Verify) + ", this one " + describeVerify(own)
		if describeVerify(l.Verify) == describeVerify(own) {
			differs = "other secrets or settings of the same scheme"
		}
		host, _, _ := strings.Cut(l.Host, "/")
		s.call.IO.WarningWith(term.Failure{
			Message: "the listener at " + l.URL + " on " + host + " uses " + differs +
				": deliveries that one of them can't verify are forwarded by none",
			Hint: "use the same webhook.scheme, webhook.verify and secrets for all listeners of this store",
		})
	}
}

func describeVerify(verify string) string {
	words := strings.Fields(verify)
	if len(words) < 2 {
		return "no scheme"
	}
	return "scheme " + words[1] + ", " + words[0]
}

// warnShared warns about loopback targets that listeners on other computers share: each listener sends to its own
// computer, and a delivery reaches only one of them.
func (fw *forwarding) warnShared(running []inbox.Listener) {
	for i, sink := range fw.Sinks() {
		t := fw.targets[i]
		if names, _ := events.OtherComputers(running, sink.ID); t.IsLoopback() && len(names) > 0 {
			fw.io.WarningWith(term.Failure{
				Message: "a listener on " + strings.Join(names, ", ") + " forwards to " + t.Show() +
					" too: each delivery goes to one of these computers, not to all",
				Hint: "to send every delivery to each of them, give each a URL of its own, such as " + t.Show() + "?at=NAME",
			})
		}
	}
}
