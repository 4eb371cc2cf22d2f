package main_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// windowsScripts names the transcripts that also hold on Windows. The others have paths,
// modes, shells or signals of Unix in them.
const windowsScripts = "../../testdata/windows-scripts.txt"

// ending are the lines that end a server with a signal: Windows has none to send, and
// each script's end ends what still runs.
var ending = regexp.MustCompile(`(?m)^(kill -INT|wait) \S+\n`)

// forSystem returns those of the transcripts that this system runs, as it runs them.
func forSystem(t *testing.T, all []string) []string {
	t.Helper()
	list, err := os.ReadFile(windowsScripts)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "scripts") // t.TempDir fails where its end can't remove it: Wine has no POSIX deletes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	var files []string
	for _, name := range strings.Fields(string(list)) {
		text, err := os.ReadFile(filepath.Join(scripts, name+".txtar"))
		if errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s names %s, which is no transcript", windowsScripts, name)
		}
		file := filepath.Join(folder, name+".txtar")
		if err := errors.Join(err, os.WriteFile(file, ending.ReplaceAll(text, nil), 0o600)); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) > len(all) {
		t.Fatalf("%d transcripts of %d", len(files), len(all))
	}
	return files
}
