package track

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/sandbox"
)

// What the service does not have is one row among several REFs, and not found if
// it is the only one.
func TestShowOfUnknownTrackings(t *testing.T) {
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(box)
	t.Cleanup(func() {
		srv.Close()
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, refs := range [][]string{{"A"}, {"A", "B"}} {
		c, stdout, _ := clitest.Call(t, "WAYBILL_BASE_URL="+srv.URL, "WAYBILL_API_KEY=any")
		err := runShow(t.Context(), c, showOptions{refOptions: refOptions{Refs: refs, By: "refer-id"}})
		if code, _ := command.CodeAndHint(err); code != command.NotFound {
			t.Errorf("%v: status %d, %v; want %d", refs, code, err, command.NotFound)
		}
		if rows := strings.Count(stdout.String(), "not found"); rows != len(refs) && len(refs) > 1 {
			t.Errorf("%v: %d rows, want %d:\n%s", refs, rows, len(refs), stdout)
		}
	}
}

func TestListOfNothingNamesTheAccount(t *testing.T) {
	c, stdout, stderr := clitest.Call(t, "WAYBILL_BASE_URL=https://shop.example")
	if err := runList(t.Context(), c, listOptions{}); err != nil {
		t.Fatal(err)
	}
	if stdout.Len() != 0 || !strings.Contains(stderr.String(), "shop.example") {
		t.Errorf("stdout %q, stderr %q; want a note that names the account", stdout, stderr)
	}
	if err := runList(t.Context(), c, listOptions{filterOptions: filterOptions{Updated: "tomorrow"}}); !command.As[*command.UsageError](err) {
		t.Errorf("--updated tomorrow: %v", err)
	}
}
