package listen

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const settingsPoll = time.Second

// followSettings verifies as the configuration file says whenever it has changed. printing is held while it prints.
func (s *server) followSettings(ctx context.Context, printing sync.Locker) {
	paths, err := config.Locate(s.call.Sources())
	if err != nil {
		return // the settings were loaded without it
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
		printing.Lock()
		switch err := s.reload(ctx); {
		case err != nil && ctx.Err() == nil:
			failed = true
			s.call.IO.Warning("the changed configuration can't be used; deliveries are verified as before: %v", err)
		case failed && err == nil:
			failed = false
			s.call.IO.Note("The configuration can be used again")
		}
		printing.Unlock()
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
	identity, err := s.db.DB.Identity(ctx)
	if err != nil {
		return err
	}
	verify, err := now.VerifyPrint(identity)
	if err != nil || verify == s.verify.Load() && now.Config.Webhook.Verify == s.mode {
		return err
	}
	o, err := verification(now)
	if err == nil {
		err = s.receiver.Reload(o)
	}
	if err != nil {
		return err
	}
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

// offerScheme says on a terminal, once, which scheme the received deliveries fit while none is
// set: after three of them, and again each time that there are twice as many.
func (s *server) offerScheme(ctx context.Context, arrivals <-chan struct{}, printing sync.Locker) {
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
		if err != nil || now.Config.Webhook.Scheme != "" { // the secret or the scheme may be new
			continue
		}
		scheme, ok, err := signature.Fitting(ctx, s.call.Session, now)
		if err != nil || !ok {
			continue // learn says why
		}
		printing.Lock()
		s.call.IO.Note("The deliveries fit a scheme: %s", signature.Describe(scheme))
		s.call.IO.Hint("pin it in another terminal; this listener then verifies by it")
		s.call.IO.Next(s.call.CommandLine("signature", "learn", "--pin", "learned"))
		printing.Unlock()
		return
	}
}
