package send

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
)

// A store that fails while a report is made is the error, not left out of it.
func TestFailedLookUpsAreReturned(t *testing.T) {
	home := t.TempDir()
	a := &app.App{
		IO:      term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{}),
		Sources: func([]config.Flag) config.Sources { return config.Sources{WorkDir: home, Home: home} },
	}
	s, err := a.Session(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := s.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	k := &Execution{Call: &command.Call{Session: s, Cmd: &cobra.Command{}}, Store: db, Run: ledger.Run{ID: 1}}
	for _, res := range []Result{{New: 2, Rejected: 1}, {New: 2, Unknown: 1}} {
		var own *command.ExitError
		if err := k.outcome(t.Context(), res, nil); !errors.As(err, &own) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%v; want what became of the rows, and that the reason could not be looked up", err)
		}
	}
}
