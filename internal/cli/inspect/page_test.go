package inspect

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
)

// What leaves the page can't control a terminal that prints it.
func TestAnswersEscapeControlCharacters(t *testing.T) {
	c, _, _ := clitest.Call(t, "WAYBILL_ACCOUNT=a")
	hide := hider(Options{Call: c})
	if got, want := string(hide([]byte("{\"a\":\"x\u202ey\u200b\u0085\"}"))), `{"a":"x\u202ey\u200b\u0085"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
