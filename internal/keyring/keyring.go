// Package keyring stores secrets in the keyring of the user's system: the Secret Service on Linux, the Keychain on
// macOS, the Credential Manager on Windows.
package keyring

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which the keyring shows the entries.
const service = "waybill"

// answerTime limits how long the keyring may take. The user may have to unlock it.
const answerTime = 30 * time.Second

// ErrNotFound reports that the keyring has no such entry.
var ErrNotFound = errors.New("the keyring has no such entry")

// Error reports why the keyring can't be used. It never contains a secret.
type Error struct {
	Err  error
	hint string
}

func (e *Error) Error() string { return "keyring: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *Error) Hint() string { return e.hint }

// System is the keyring of the system. It is safe for concurrent use. All errors are an [*Error], or the cause of
// ctx.
type System struct{}

// Get returns the content of an entry. The error is [ErrNotFound] if there is none.
func (System) Get(ctx context.Context, name string) (string, error) {
	return limited(ctx, func() (string, error) { return keyring.Get(service, name) })
}

// Set creates an entry, or replaces its content.
func (System) Set(ctx context.Context, name, secret string) error {
	_, err := limited(ctx, func() (string, error) { return "", keyring.Set(service, name, secret) })
	return err
}

// Delete removes an entry. The error is [ErrNotFound] if there is none.
func (System) Delete(ctx context.Context, name string) error {
	_, err := limited(ctx, func() (string, error) { return "", keyring.Delete(service, name) })
	return err
}

// limited runs do, which can't be interrupted, and waits at most answerTime. do may then continue in the background
// until the program ends.
func limited(ctx context.Context, do func() (string, error)) (string, error) {
	if err := available(); err != nil {
		return "", unusable(err)
	}
	late := &Error{errors.New("no answer within " + answerTime.String()), "unlock the keyring, then re-run the command"}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, late)
	defer cancel()
	var secret string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		secret, err = do()
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-done:
	}
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return "", &Error{ErrNotFound, "store the key again with `waybill auth login --keyring`"}
	case err != nil:
		return "", unusable(err)
	}
	return secret, nil
}

func unusable(err error) error {
	return &Error{err, "use the configuration file, `waybill auth login`, " +
		"or a key file, `waybill config set api_key_file FILE`"}
}

// available returns an error on Linux if no message bus runs for the user: the library would start one. Other systems
// report themselves what they lack.
func available() error {
	address := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	if runtime.GOOS != "linux" || address != "" && address != "autolaunch:" {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat("/run/user/" + strconv.Itoa(os.Getuid()) + "/" + name); err == nil {
			return nil
		}
	}
	return errors.New("not available: no D-Bus session")
}
