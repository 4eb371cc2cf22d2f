//go:build unix

package main_test

import (
	"strings"
	"testing"
)

// BenchmarkComplete measures what the shell waits for after TAB, in a store with a
// million trackings and five million events. A value has 100 ms beyond the
// program's start, which is version.
func BenchmarkComplete(b *testing.B) {
	w := newHome(b)
	w.env = append(w.env, "WAYBILL_ACCOUNT="+largeAccount, "WAYBILL_STORE="+largeStore(b, rowsOf(b, 1_000_000)))
	b.Run("version", func(b *testing.B) {
		w.best(b, func() { measure(b, w.command("version")) })
	})
	for name, line := range map[string]string{
		"runs": "runs show ", "references": "show ORD-0000", "statuses": "list --status ", "conditions": "wait --for status=",
		"kinds": "events list --event ", "events": "events show ", "columns": "list --columns ",
	} {
		b.Run(name, func(b *testing.B) {
			w.best(b, func() {
				out, _ := measure(b, w.command(append([]string{"__complete"}, strings.Split(line, " ")...)...))
				if strings.Count(out, "\n") < 2 {
					b.Fatalf("%s: nothing was offered: %s", line, out)
				}
			})
		})
	}
}
