package config_test

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		in    string
		want  config.Size
		shown string
	}{
		{"0", 0, "0"},
		{"0MiB", 0, "0"},
		{"1B", 1, "1B"},
		{"1536B", 1536, "1536B"},
		{"512KiB", 512 << 10, "512KiB"},
		{"1024kib", 1 << 20, "1MiB"},
		{"5MiB", 5 << 20, "5MiB"},
		{"1.5GiB", 3 << 29, "1536MiB"},
		{"5MB", 5_000_000, "5MB"},
		{"5 MiB", 5 << 20, "5MiB"},
		{"64kb", 64_000, "64kB"},
		{"2GB", 2_000_000_000, "2GB"},
	} {
		got, err := config.ParseSize(tt.in)
		if got != tt.want || err != nil || got.String() != tt.shown {
			t.Errorf("ParseSize(%q) = %d (%v), %v; want %d (%s)", tt.in, got, got, err, tt.want, tt.shown)
		}
	}
	for _, in := range []string{"", "5", "MiB", "-1MiB", "5M", "5 M B C", "1.2.3KiB", "99999999999GiB", "NaNB"} {
		if got, err := config.ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d; want an error", in, got)
		}
	}
}

func TestSizes(t *testing.T) {
	p := newPlace(t)
	if c := p.load(nil); c.Listen.MaxBody != 5<<20 || c.Listen.MaxUnverified != 1<<30 {
		t.Errorf("defaults %v and %v; want 5MiB and 1GiB", c.Listen.MaxBody, c.Listen.MaxUnverified)
	}
	p.user("listen: {max_body: 512KiB, max_unverified: 0}\n")
	c := p.load([]string{"WAYBILL_LISTEN_MAX_BODY=1MiB"})
	if c.Listen.MaxBody != 1<<20 || c.Listen.MaxUnverified != 0 {
		t.Errorf("%v and %v; want 1MiB and 0", c.Listen.MaxBody, c.Listen.MaxUnverified)
	}
	for _, e := range c.List() {
		if e.Key == "listen.max_body" && (e.Text != "1MiB" || e.Value != "1MiB") {
			t.Errorf("listed as %q, %v; want 1MiB", e.Text, e.Value)
		}
	}
	for _, bad := range []string{"5", "0", "2GiB"} {
		if err := p.refused(nil, flag("max-body", bad)); err.Key != "listen.max_body" {
			t.Errorf("--max-body %s: %v; want it refused", bad, err)
		}
	}
}
