package track_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of more rows than are looked up at once is listed in its order, each row with
// what is known of it, and a repeated one again.
func TestListOfManyRows(t *testing.T) {
	folder := t.TempDir()
	env := []string{"WAYBILL_STORE=" + filepath.Join(folder, "s.db"), "WAYBILL_ACCOUNT=acme"}
	var parcels []parcel
	file, want := "referId,rawTrackingNumber\n", "REFERENCE,NUMBER,STATE\n"
	for i := range 700 {
		parcels = append(parcels, parcel{account: "acme", referID: fmt.Sprint("A", i), run: true})
	}
	fillStore(t, env, parcels)
	for i := 800; i >= 0; i-- {
		row, state := fmt.Sprintf("A%d,N%d", i, i), "pending"
		if i >= 700 {
			state = "notCreated"
		}
		if i%100 == 0 {
			file, want = file+row+"\n", want+row+","+state+"\n"
		}
		file, want = file+row+"\n", want+row+","+state+"\n"
	}
	name := filepath.Join(folder, "orders.csv")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runLine(t, env, "list", "--from", name, "-o", "csv", "--columns", "reference,number,state"); got != want {
		t.Errorf("%d lines; want %d:\n%s", strings.Count(got, "\n"), strings.Count(want, "\n"), got)
	}
}
