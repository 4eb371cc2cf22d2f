package storage

import (
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// The receipt is printed if there is no room for its file: nothing can make it again.
func TestReceiptOnAFullDiskIsPrinted(t *testing.T) {
	failed := errors.New("it fails")
	for name, tt := range map[string]struct {
		err  error // of the erasure
		hint string
	}{
		"all is erased": {nil, "free space"},
		"some is left":  {failed, "not everything is erased yet"},
	} {
		t.Run(name, func(t *testing.T) {
			e, stdout, stderr := erasingWith(t, fakeEraser{ledger.Erasure{Rows: 1, Unsettled: 1}, tt.err})
			file, err := command.NewAtomicFile(t.Context(), "/dev/full")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Discard()
			err = e.run(t.Context(), file)
			code, hint := command.CodeAndHint(err)
			if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, failed) != (tt.err != nil) || code != command.Store || !strings.Contains(hint, tt.hint) {
				t.Errorf("%v, code %d, hint %q; want a full disk and %q", err, code, hint, tt.hint)
			}
			if strings.Contains(err.Error(), "the shipments are erased") || !strings.Contains(err.Error(), "the receipt is on standard output") {
				t.Errorf("%v; want where the receipt is", err)
			}
			if !strings.Contains(stderr.String(), "1 row had an unknown outcome") {
				t.Errorf("%s; want the warning", stderr)
			}
			var j receiptJSON
			if err := json.Unmarshal(stdout.Bytes(), &j); err != nil || j.Rows != 1 || j.Complete != (tt.err == nil) {
				t.Errorf("%s, %v; want the receipt", stdout, err)
			}
		})
	}
}
