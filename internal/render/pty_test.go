//go:build !windows

package render

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/term/termtest"
)

// shown runs write on a terminal of so many columns and returns what came to
// it.
func shown(t *testing.T, columns int, env map[string]string, write func(*term.Writer) error) string {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 24, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	came := make(chan string)
	go func() {
		all, err := io.ReadAll(termtest.Output(ptmx))
		if err != nil {
			t.Errorf("read terminal: %v", err)
		}
		came <- string(all)
	}()
	s := term.New(tty, tty, tty, term.Facts{OutTerminal: true, ErrTerminal: true, Env: env})
	if err := write(s.Out); err != nil {
		t.Error(err)
	}
	tty.Close()
	return strings.ReplaceAll(<-came, "\r\n", "\n") // the terminal adds the CR
}

func TestTableFollowsTheTerminal(t *testing.T) {
	hostile := "\x1b[2J\u202e\x9b\r" + strings.Repeat("x", 100)
	write := func(out *term.Writer) error {
		r := NewTable(out, Column{Name: "NUMBER"}, Column{Name: "EVENT", Flex: true}, Column{Name: "STATUS"})
		if err := r.Add([]Cell{{Text: "1Z999AA10123456784"}, {Text: hostile}, {Text: "Delivered", Style: term.Good}}); err != nil {
			return err
		}
		return r.Flush()
	}
	tests := []struct {
		name    string
		columns int
		env     map[string]string
		want    string
	}{
		{
			"60 columns", 60,
			map[string]string{"TERM": "xterm"},
			"\x1b[1mNUMBER\x1b[0m              \x1b[1mEVENT\x1b[0m                          \x1b[1mSTATUS\x1b[0m\n" +
				`1Z999AA10123456784  \u{1b}[2J\u{202e}\x{9b}\u{d}…  ` + "\x1b[32mDelivered\x1b[0m\n",
		},
		{
			"NO_COLOR", 60,
			map[string]string{"TERM": "xterm", "NO_COLOR": "yes"},
			"NUMBER              EVENT                          STATUS\n" +
				`1Z999AA10123456784  \u{1b}[2J\u{202e}\x{9b}\u{d}…  Delivered` + "\n",
		},
		{
			"dumb, 50 columns", 50,
			map[string]string{"TERM": "dumb"},
			"NUMBER              EVENT                STATUS\n" +
				`1Z999AA10123456784  \u{1b}[2J\u{202e}\…  Delivered` + "\n",
		},
		{
			"20 columns", 20, plainly,
			"NUMBER              EVENT     STATUS\n" +
				`1Z999AA10123456784  \u{1b}[…  Delivered` + "\n",
		},
	}
	for _, tt := range tests {
		if got := shown(t, tt.columns, tt.env, write); got != tt.want {
			t.Errorf("%s: got\n%q\nwant\n%q", tt.name, got, tt.want)
		}
	}
}

func TestMachineOutputOnATerminalIsHarmless(t *testing.T) {
	hostile := "\x1b]52;c;QQ==\x07\u202e\x9b\r\x00\u2028"
	for format, want := range map[string]string{
		"json":  `"\u001b]52;c;QQ==\u0007\u202e\ufffd\r\u0000\u2028"` + "\n",
		"jsonl": `"\u001b]52;c;QQ==\u0007\u202e\ufffd\r\u0000\u2028"` + "\n",
		"csv":   "a\n" + `"\u{1b}]52;c;QQ==\u{7}\u{202e}\x{9b}\u{d}\u{0}\u{2028}"` + "\n",
	} {
		got := shown(t, 80, nil, func(out *term.Writer) error {
			p, err := New(out, Options{Format: format})
			if err != nil {
				return err
			}
			if format != "csv" {
				return p.JSON(t.Context(), hostile)
			}
			r := p.Table(Column{Name: "A"})
			if err := r.Row(hostile); err != nil {
				return err
			}
			return r.Flush()
		})
		if got != want {
			t.Errorf("%s: terminal got %q; want %q", format, got, want)
		}
	}
}
