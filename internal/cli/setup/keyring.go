package setup

import (
	"context"
	"errors"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/keyring"
)

// inAnyKeyring does something with the keyring, if there is one.
func inAnyKeyring(c *command.Call, do func() error) error {
	if c.Keyring() == nil {
		return keyring.ErrNotFound
	}
	return do()
}

// forgetEntry removes the key that a profile of the file had in the keyring, but for
// the entry that is used from now on. What
// can't be removed is a warning: nothing uses it any more.
func forgetEntry(ctx context.Context, c *command.Call, d *config.Draft, profile, used string) {
	entries, err := d.Entries(profile)
	if err != nil {
		return // the command that needs them reports it
	}
	for _, e := range entries {
		if e.Key != "api_key_keyring" || e.Text == "" || e.Text == used {
			continue
		}
		err := inAnyKeyring(c, func() error { return c.Keyring().Delete(ctx, e.Text) })
		switch {
		case err == nil:
			c.IO.Note("Removed the API key from the keyring")
		case !errors.Is(err, keyring.ErrNotFound):
			c.IO.Warning("the API key is still in the keyring: %v", err)
		}
	}
}
