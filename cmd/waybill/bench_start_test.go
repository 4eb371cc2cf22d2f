//go:build linux

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// startRounds is how often each program is run before its median counts.
const startRounds = 200

// oneLine is a program that prints one line, and imports what is put in.
const oneLine = `package main

import (
	"fmt"
	%s
)

func main() { fmt.Println("one line") }
`

// BenchmarkStart measures what waybill takes to say something that needs no
// store and no service, beside a program that prints one line. x-linked is that
// program with waybill's packages in it and none called: what their own start
// takes at least, as the linker leaves out what nothing calls. All are built as a
// release is, and run by turns.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	empty, linked, own := filepath.Join(dir, "empty"), filepath.Join(dir, "linked"), filepath.Join(dir, "waybill")
	buildMain(b, empty, fmt.Sprintf(oneLine, ""))
	buildMain(b, linked, fmt.Sprintf(oneLine, `_ "github.com/waybill-cli/waybill/internal/cli"`))
	buildMain(b, own, "")
	for _, args := range [][]string{{"version"}, {"--help"}, {"show", "--help"}, {"help", "exit-codes"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			for b.Loop() {
				took := map[string][]time.Duration{}
				for range startRounds {
					for _, path := range []string{empty, linked, own} {
						took[path] = append(took[path], startOf(b, path, args...))
					}
				}
				median := func(path string) float64 {
					slices.Sort(took[path])
					return float64(took[path][startRounds/2])
				}
				b.ReportMetric(median(own)/median(empty), "x-empty")
				b.ReportMetric(median(linked)/median(empty), "x-linked")
				b.ReportMetric(median(own)/float64(time.Microsecond), "µs/start")
			}
		})
	}
}

// buildMain builds cmd/waybill as the Makefile does, with another main.go unless
// main is empty.
func buildMain(b *testing.B, path, main string) {
	b.Helper()
	args := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path}
	if main != "" {
		original, err := filepath.Abs("main.go")
		if err != nil {
			b.Fatal(err)
		}
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: path + ".go"}})
		if err != nil {
			b.Fatal(err)
		}
		for name, text := range map[string][]byte{path + ".go": []byte(main), path + ".json": overlay} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		args = append(args, "-overlay", path+".json")
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, text)
	}
}

// startOf runs a program, which prints something, and returns how long it took.
func startOf(b *testing.B, path string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HOME=" + filepath.Dir(path)}
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil || len(out) == 0 {
		b.Fatalf("%s %q: %v: %q", path, args, err, out)
	}
	return took
}
