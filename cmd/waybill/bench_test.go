package main_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
)

// BenchmarkCreate sends rows to a sandbox in a process of its own and reports
// rows per second and the largest memory of the waybill process (VmHWM).
func BenchmarkCreate(b *testing.B) {
	const million = 1_000_000
	random := rand.New(rand.NewPCG(3, 4))
	cases := []struct {
		name  string
		rows  int
		refer func(int) string
		flags []string
	}{
		{"v2/1000000/ascending", million, ascending, nil},
		{"v2/1000000/random", million, func(int) string { return fmt.Sprintf("%016x", random.Uint64()) }, nil},
		{"v1/100000/ascending", million / 10, ascending, []string{"--sync"}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, "--processing", "0s")
			file := orders(b, w.home, c.rows, c.refer)
			for i := range b.N {
				args := append([]string{"create", file, "-o", "json", "-q", "--account", fmt.Sprint("bench", i), "--same-account"}, c.flags...)
				cmd := w.command(args...)
				if err := cmd.Run(); err != nil {
					b.Fatalf("%v: %s", err, cmd.Stderr)
				}
				use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
				if !ok {
					b.Fatal("no resource usage on this system")
				}
				b.ReportMetric(float64(use.Maxrss)/1024, "MB-VmHWM")
			}
			b.ReportMetric(float64(c.rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
