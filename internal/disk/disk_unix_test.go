//go:build unix

package disk_test

import (
	"io"
	"os"
	"testing"

	"github.com/waybill-cli/waybill/internal/disk"
)

func TestTempLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	f, err := disk.Temp()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
		t.Errorf("in the folder: %v, %v", files, err)
	}
	if _, err := f.WriteString("rows"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); string(b) != "rows" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if free, known := disk.Free(folder); free <= 0 || !known {
		t.Errorf("free: %d, %v", free, known)
	}
}
