package term

import (
	"bytes"
	"testing"
)

func TestColor(t *testing.T) {
	type env = map[string]string
	tests := []struct {
		name     string
		asked    string
		env      env
		terminal bool
		want     bool
	}{
		{"terminal", "", nil, true, true},
		{"auto, terminal", "auto", env{"TERM": "xterm"}, true, true},
		{"pipe", "auto", nil, false, false},
		{"NO_COLOR of any value", "", env{"NO_COLOR": "yes"}, true, false},
		{"NO_COLOR=0", "", env{"NO_COLOR": "0"}, true, false},
		{"empty NO_COLOR is none", "", env{"NO_COLOR": ""}, true, true},
		{"CLICOLOR_FORCE", "", env{"CLICOLOR_FORCE": "1"}, false, true},
		{"CLICOLOR_FORCE=0 is none", "", env{"CLICOLOR_FORCE": "0"}, false, false},
		{"NO_COLOR before CLICOLOR_FORCE", "", env{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, true, false},
		{"dumb", "", env{"TERM": "dumb"}, true, false},
		{"CLICOLOR_FORCE before dumb", "", env{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, true, true},
		{"always before all", "always", env{"NO_COLOR": "1", "TERM": "dumb"}, false, true},
		{"never before all", "never", env{"CLICOLOR_FORCE": "1"}, true, false},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		io := New(nil, &out, &out, Facts{OutTerminal: tt.terminal, Env: tt.env})
		if err := io.Configure(Options{Color: tt.asked}); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := io.Out.color; got != tt.want {
			t.Errorf("%s: colour %t; want %t", tt.name, got, tt.want)
		}
	}
}

func TestColorIsDecidedPerStream(t *testing.T) {
	io := New(nil, new(bytes.Buffer), new(bytes.Buffer), Facts{ErrTerminal: true})
	if io.Out.color || !io.Err.color {
		t.Errorf("colour out %t, err %t; want false, true", io.Out.color, io.Err.color)
	}
	if io.Out.IsTerminal() || !io.Err.IsTerminal() || io.Out.movable || !io.Err.movable || io.InTerminal() {
		t.Errorf("terminals: out %t %t, err %t %t, in %t; want only err", io.Out.IsTerminal(), io.Out.movable, io.Err.IsTerminal(), io.Err.movable, io.InTerminal())
	}
}

func TestConfigureRefusesUnknownColor(t *testing.T) {
	io := New(nil, new(bytes.Buffer), new(bytes.Buffer), Facts{OutTerminal: true})
	if err := io.Configure(Options{Color: "sometimes"}); err == nil {
		t.Error("no error for an unknown colour")
	}
	if err := io.Configure(Options{Quiet: true, Verbose: true, JSON: true}); err != nil {
		t.Error(err)
	}
	if !io.options.Quiet || !io.options.Verbose || !io.options.JSON {
		t.Errorf("quiet %t, verbose %t, JSON %t; want all true", io.options.Quiet, io.options.Verbose, io.options.JSON)
	}
}

func TestWidth(t *testing.T) {
	tests := []struct {
		name  string
		facts Facts
		want  int
	}{
		{"no terminal", Facts{Env: map[string]string{"COLUMNS": "100"}}, 0},
		{"COLUMNS", Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": "60"}}, 60},
		{"bad COLUMNS", Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": "-3"}}, 80},
		{"nothing known", Facts{OutTerminal: true}, 80},
	}
	for _, tt := range tests {
		io := New(nil, new(bytes.Buffer), new(bytes.Buffer), tt.facts)
		if got := io.Out.Width(); got != tt.want {
			t.Errorf("%s: width %d; want %d", tt.name, got, tt.want)
		}
	}
}

func TestTruncate(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -5, ""},
		{"", 3, ""},
	}
	for _, tt := range tests {
		got := Truncate(tt.in, tt.width)
		if got != tt.want {
			t.Errorf("Truncate(%q, %d) = %q; want %q", tt.in, tt.width, got, tt.want)
		}
		if w := DisplayWidth(got); w > max(tt.width, 0) {
			t.Errorf("Truncate(%q, %d) takes %d columns", tt.in, tt.width, w)
		}
	}
}
