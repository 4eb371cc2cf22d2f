package events

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
)

func isHere(l inbox.Listener) bool { return app.IsThisComputer(l.Host) }

// computer returns the name of the computer of a listener that runs elsewhere.
func computer(l inbox.Listener) string {
	name, _, _ := strings.Cut(l.Host, "/")
	return name
}

func isSentTo(running []inbox.Listener, sink int64) bool {
	return slices.ContainsFunc(running, func(l inbox.Listener) bool { return slices.Contains(l.Sinks, sink) })
}

// runningListener returns where the one listener of this computer takes deliveries.
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
			if isHere(l) {
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
		return nil, command.Usagef("choose one with --to URL", "several listeners run on this store: %s", strings.Join(here, ", "))
	case len(others) > 0:
		return nil, command.Usagef("give --to URL, with an address that this computer reaches", "the listeners of this store run on other computers: %s", strings.Join(slices.Compact(others), ", "))
	}
	return nil, command.Usagef("start `waybill listen` in another terminal, or give --to URL", "nothing to send to: no listener runs on this store")
}

// OtherComputers returns the names of the other computers whose listeners send to the
// sink, and whether one of this computer does.
func OtherComputers(running []inbox.Listener, sink int64) (names []string, here bool) {
	for _, l := range running {
		switch {
		case !slices.Contains(l.Sinks, sink):
		case isHere(l):
			here = true
		default:
			names = append(names, computer(l))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), here
}

// requireHere returns an error if a target is an address that means another computer's
// own: only listeners there send to it.
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
				return command.Usagef("run this command there, or give --to URL", "target %s is on another computer: %s", t.Show(), strings.Join(names, ", "))
			}
		}
	}
	return nil
}
