//go:build !windows

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forSystem returns those of the transcripts that this system runs, as it runs them: all.
// The transcripts for Windows are to be found, too, before somebody runs them there.
func forSystem(t *testing.T, all []string) []string {
	t.Helper()
	list, err := os.ReadFile("../../testdata/windows-scripts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		if _, err := os.Stat(filepath.Join(scripts, name+".txtar")); err != nil {
			t.Errorf("windows-scripts.txt: %v", err)
		}
	}
	return all
}
