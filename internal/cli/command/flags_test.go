package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
)

func TestParseSince(t *testing.T) {
	now := time.Now()
	for s, want := range map[string]time.Time{
		"2026-11-20T08:00:00Z": time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
		"2026-11-20":           time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2h":                   now.Add(-2 * time.Hour),
		"7d":                   now.Add(-7 * 24 * time.Hour),
		"yesterday":            time.Date(now.Year(), now.Month(), now.Day()-1, 0, 0, 0, 0, time.Local),
		"Today":                time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local),
		"3 days":               now.Add(-3 * 24 * time.Hour),
		"1 hour":               now.Add(-time.Hour),
		"":                     {},
	} {
		got, err := ParseSince("--since", s)
		if err != nil || got.Sub(want).Abs() > time.Minute {
			t.Errorf("parseSince(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
}

func TestParseRange(t *testing.T) {
	now := time.Date(2026, 11, 20, 15, 30, 0, 0, time.Local)
	day := func(month time.Month, day int) time.Time { return time.Date(2026, month, day, 0, 0, 0, 0, time.Local) }
	point := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	for s, want := range map[string]ledger.Range{
		"":                                 {},
		"7d":                               {Since: now.Add(-7 * 24 * time.Hour)},
		"7d..":                             {Since: now.Add(-7 * 24 * time.Hour)},
		"..30d":                            {Until: now.Add(-30 * 24 * time.Hour)},
		"30d..7d":                          {Since: now.Add(-30 * 24 * time.Hour), Until: now.Add(-7 * 24 * time.Hour)},
		"yesterday":                        {Since: day(11, 19), Until: day(11, 20)},
		"yesterday..":                      {Since: day(11, 19)},
		"..yesterday":                      {Until: day(11, 20)},
		"today":                            {Since: day(11, 20), Until: day(11, 21)},
		"friday":                           {Since: day(11, 20), Until: day(11, 21)},
		"Monday":                           {Since: day(11, 16), Until: day(11, 17)},
		"saturday..":                       {Since: day(11, 14)},
		"monday..yesterday":                {Since: day(11, 16), Until: day(11, 20)},
		"3 days":                           {Since: now.Add(-3 * 24 * time.Hour)},
		"2026-11-01":                       {Since: day(11, 1), Until: day(11, 2)},
		"2026-11-01..2026-11-01":           {Since: day(11, 1), Until: day(11, 2)},
		"2026-10-31..2026-11-07":           {Since: day(10, 31), Until: day(11, 8)},
		"2026-11-01T08:00:00Z":             {Since: point},
		"2026-11-01T08:00:00Z..":           {Since: point},
		"2026-10-01..2026-11-01T08:00:00Z": {Since: day(10, 1), Until: point},
	} {
		got, err := parseRange("--created", s, now)
		if err != nil || !got.Since.Equal(want.Since) || !got.Until.Equal(want.Until) {
			t.Errorf("parseRange(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for s, hint := range map[string]string{
		"..": rangeHint, "soon": rangeHint, "mon": rangeHint, "3 days ago": rangeHint, "days": rangeHint, "-7d": rangeHint, "9999999d..": rangeHint, "2026-11-01...": rangeHint, "2026-13-01": rangeHint, "7": rangeHint,
		"7d..30d": "use 30d..7d", "2026-11-07..2026-11-01": "use 2026-11-01..2026-11-07", "7d..7d": "use 7d.. for the time since then",
	} {
		_, err := parseRange("--created", s, now)
		var usage *UsageError
		if !errors.As(err, &usage) || usage.Hint != hint {
			t.Errorf("parseRange(%q): %v; want a usage error with hint %q", s, err, hint)
		}
	}
}

// Every setting's flag is taken for it; a command's own flag of the same name is not.
func TestFlagsOf(t *testing.T) {
	cmd, want := &cobra.Command{}, []string{"config", "same-key"}
	GlobalFlags(cmd.Flags())
	for _, s := range config.Settings() {
		if s.Flag == "" {
			continue
		}
		if cmd.Flags().Lookup(s.Flag) == nil {
			SettingFlags(cmd, s.Flag)
		}
		want = append(want, s.Flag)
	}
	if flags := FlagsOf(cmd); len(flags) > 0 {
		t.Errorf("nothing given: %v", flags)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Changed = true })
	var got []string
	for _, f := range FlagsOf(cmd) {
		got = append(got, f.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("flags %q; want %q", got, want)
	}
	sandbox := &cobra.Command{}
	sandbox.Flags().String("addr", "", "")
	if err := sandbox.Flags().Set("addr", "x"); err != nil || len(FlagsOf(sandbox)) > 0 {
		t.Errorf("%v, %v; want none", FlagsOf(sandbox), err)
	}
}

func TestArguments(t *testing.T) {
	tests := []struct {
		use  string
		want []string
	}{
		{"list", nil},
		{"create [FILE|-]...", []string{"FILE"}},
		{"check FILE|-...", []string{"FILE"}},
		{"show REF...|--from FILE|--run ID", []string{"REF"}},
		{"replay ID...|--since TIME|--dead", []string{"ID"}},
		{"verify [ID...|--body FILE]", []string{"ID"}},
		{"prune --older-than AGE", nil},
		{"help [COMMAND|TOPIC]", []string{"COMMAND", "TOPIC"}},
	}
	for _, tt := range tests {
		if got := Arguments(&cobra.Command{Use: tt.use}); !slices.Equal(got, tt.want) {
			t.Errorf("Arguments(%s) = %q; want %q", tt.use, got, tt.want)
		}
	}
}

func TestWorstFollowsThePrecedence(t *testing.T) {
	tests := []struct {
		codes []Code
		want  Code
	}{
		{nil, OK},
		{[]Code{OK, OK}, OK},
		{[]Code{Pending, Refused, Partial, Unreachable, Unknown, Auth, Interrupted, Store}, Store},
		{[]Code{Pending, Refused, Partial}, Partial},
		{[]Code{Unknown, Unreachable}, Unknown},
		{[]Code{Terminated, Auth}, Terminated},
		{[]Code{OK, NotFound}, NotFound},
	}
	for _, tt := range tests {
		if got := Worst(tt.codes...); got != tt.want {
			t.Errorf("worst(%v) = %d; want %d", tt.codes, got, tt.want)
		}
	}
}

// There is one order: that of the rules is that of Precedence.
func TestExitRulesStandInTheOrderOfPrecedence(t *testing.T) {
	last := 0
	for _, r := range exitRules() {
		at := slices.Index(Precedence(), r.code)
		if at < 0 || r.code == Terminated || r.match(context.Canceled) {
			continue
		}
		if at < last {
			t.Errorf("a rule for %d stands behind one for %d", r.code, Precedence()[last])
		}
		last = at
	}
}

// Of a command that a signal ended, only what else happened is reported.
func TestFinishAfterASignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&SignalError{Signal: os.Interrupt})
	table := fmt.Errorf("table rows: %w", context.Canceled)
	for _, c := range []struct {
		err  error
		want string
	}{
		{table, "waybill: interrupted\n"},
		{errors.Join(fmt.Errorf("connect: %w", errors.Join(context.Canceled, table)), nil), "waybill: interrupted\n"},
		{&ExitError{Code: Failed, Err: table, Next: "waybill again"}, "waybill: interrupted\nnext: waybill again\n"},
		{errors.Join(table, errors.New("disk is full")), "waybill: interrupted\n  table rows: context canceled\n  disk is full\n"},
	} {
		var out, errs bytes.Buffer
		a := &app.App{IO: term.New(strings.NewReader(""), &out, &errs, term.Facts{})}
		if code := (&Factory{App: a}).Finish(ctx, c.err); code != Interrupted || errs.String() != c.want {
			t.Errorf("%v: code %v, %q; want %q", c.err, code, errs.String(), c.want)
		}
	}
}

func TestMessageOfJoinedErrors(t *testing.T) {
	locked := errors.New("write w.db: locked")
	interrupted := errors.New("interrupted")
	for _, c := range []struct {
		err  error
		want string
	}{
		{locked, "write w.db: locked"},
		{errors.Join(locked, locked), "write w.db: locked"},
		{errors.Join(locked, interrupted), "write w.db: locked\ninterrupted"},
	} {
		if got := messageOf(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
