package keyring

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zalando/go-keyring"
)

func TestSystem(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere") // the entries are kept in memory
	keyring.MockInit()
	var k System
	if _, err := k.Get(t.Context(), "shop"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no entry: %v; want ErrNotFound", err)
	}
	if err := k.Set(t.Context(), "shop", "s3cret"); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Get(t.Context(), "shop"); got != "s3cret" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := k.Delete(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
	if err := k.Delete(t.Context(), "shop"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v; want ErrNotFound", err)
	}
	broken := errors.New("locked")
	keyring.MockInitWithError(broken)
	var e *Error
	if _, err := k.Get(t.Context(), "shop"); !errors.As(err, &e) || !errors.Is(err, broken) || e.Hint() == "" {
		t.Errorf("error %v; want one with a hint", err)
	}
}

// A keyring that never answers ends with an error that says so, or with the
// command.
func TestKeyringThatNeverAnswers(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan struct{})
		defer close(end)
		silent := func() (string, error) {
			<-end
			return "", nil
		}
		var e *Error
		if _, err := limited(ctx, silent); !errors.As(err, &e) || e.Error() != "keyring: no answer within 30s" {
			t.Errorf("error %v", err)
		}
		cancel()
		if _, err := limited(ctx, silent); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v; want the end of the command", err)
		}
	})
}
