package command

import (
	"errors"
	"testing"
)

func TestMessageOfJoinedErrors(t *testing.T) {
	locked := errors.New("write w.db: locked")
	interrupted := errors.New("interrupted")
	for _, c := range []struct {
		err  error
		want string
	}{
		{locked, "write w.db: locked"},
		{errors.Join(locked, locked), "write w.db: locked"},
		{errors.Join(locked, interrupted), "write w.db: locked\ninterrupted"},
	} {
		if got := messageOf(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
