package config_test

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		in   string
		want time.Duration
	}{
		{"0s", 0},
		{"1ms", time.Millisecond},
		{"30s", 30 * time.Second},
		{"2m", 2 * time.Minute},
		{"1h", time.Hour},
		{"7d", 7 * day},
		{"1h30m", 90 * time.Minute},
		{"1.5h", 90 * time.Minute},
		{"1d12h", 36 * time.Hour},
		{"1m500ms", time.Minute + 500*time.Millisecond},
		{"0.001s", time.Millisecond},
		{"007s", 7 * time.Second},
	} {
		if got, err := config.ParseDuration(tt.in); got != tt.want || err != nil {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ in, want string }{
		{"", "empty; use a duration such as 30s, 2m, 1h or 7d"},
		{"30", `"30" needs a unit: 30s, 30m, 30h or 30d`},
		{"0", `"0" needs a unit: 0s, 0m, 0h or 0d`},
		{"1h30", `"1h30" needs a unit: 30s, 30m, 30h or 30d`},
		{"2w", `"2w" has an unknown unit "w": use ms, s, m, h or d`},
		{"30S", `"30S" has an unknown unit "S": use ms, s, m, h or d`},
		{"30 s", `"30 s" has an unknown unit " s": use ms, s, m, h or d`},
		{"s", `"s" is not a duration such as 30s, 2m, 1h or 7d`},
		{"-5m", `"-5m" is not a duration such as 30s, 2m, 1h or 7d`},
		{"+5m", `"+5m" is not a duration such as 30s, 2m, 1h or 7d`},
		{".s", `".s" is not a duration such as 30s, 2m, 1h or 7d`},
		{"1..5s", `"1..5s" is not a duration such as 30s, 2m, 1h or 7d`},
		{"forever", `"forever" is not a duration such as 30s, 2m, 1h or 7d`},
		{"106752d", `"106752d" is too long`},
	} {
		if got, err := config.ParseDuration(tt.in); err == nil || err.Error() != tt.want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "30s": 30 * time.Second, "2m": 2 * time.Minute, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour,
		"1d1h1m1s1ms": 25*time.Hour + time.Minute + time.Second + time.Millisecond,
	} {
		got := config.FormatDuration(d)
		back, err := config.ParseDuration(got)
		if got != want || back != d || err != nil {
			t.Errorf("%v is %q and back %v, %v; want %q", d, got, back, err, want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"30s", "1h30m", "1.5h", "", "9999999d", "1ms1ms", "1e3s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := config.ParseDuration(s)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("%q is %v", s, d)
		}
		whole := d.Truncate(time.Millisecond)
		if back, err := config.ParseDuration(config.FormatDuration(d)); back.Truncate(time.Millisecond) != whole && d < 1<<53 || err != nil {
			t.Errorf("%q is %v, and back %v, %v", s, d, back, err)
		}
	})
}

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
