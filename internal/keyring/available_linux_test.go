package keyring

import (
	"errors"
	"testing"
)

// Without a message bus nothing is started, and the error says what to use.
func TestNoSession(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "autolaunch:")
	err := available()
	if err == nil {
		t.Log("this user has a message bus; a broken one is an error too")
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	}
	var e *Error
	if _, err := (System{}).Get(t.Context(), "shop"); !errors.As(err, &e) || e.Hint() == "" {
		t.Errorf("error %v; want one with a hint", err)
	}
}
