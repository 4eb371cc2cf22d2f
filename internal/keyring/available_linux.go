package keyring

import (
	"errors"
	"os"
	"strconv"
)

// available returns an error where no message bus runs for the user. Without the check the library would start one.
func available() error {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat("/run/user/" + strconv.Itoa(os.Getuid()) + "/" + name); err == nil {
			return nil
		}
	}
	return errors.New("not available: no D-Bus session")
}
