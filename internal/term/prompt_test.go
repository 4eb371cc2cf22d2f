//go:build !windows

package term

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"
)

func TestAsk(t *testing.T) {
	var shown bytes.Buffer
	io := New(strings.NewReader(" one \r\n\ntwo"), &bytes.Buffer{}, &shown, Facts{InTerminal: true, ErrTerminal: true})
	for _, want := range []string{"one", ""} {
		if got, err := io.Ask(t.Context(), "Name [%s]:", "a\x1bb"); got != want || err != nil {
			t.Errorf("answer %q, %v; want %q", got, err, want)
		}
	}
	if got, err := io.Ask(t.Context(), "Name:"); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("answer %q, %v; want ErrNoAnswer for a line without end", got, err)
	}
	if want := `Name [a\u{1b}b]: Name [a\u{1b}b]: Name: ` + "\n"; shown.String() != want {
		t.Errorf("shown %q; want %q", shown.String(), want)
	}
}

func TestConfirm(t *testing.T) {
	for typed, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "no\n": false, "what\ny\n": true} {
		io := New(strings.NewReader(typed), &bytes.Buffer{}, &bytes.Buffer{}, Facts{InTerminal: true, ErrTerminal: true})
		if got, err := io.Confirm(t.Context(), "Write?"); got != want || err != nil {
			t.Errorf("%q is %v, %v; want %v", typed, got, err, want)
		}
	}
}

func TestInteractive(t *testing.T) {
	on := Facts{InTerminal: true, ErrTerminal: true}
	for _, tt := range []struct {
		facts Facts
		json  bool
		want  bool
	}{{on, false, true}, {on, true, false}, {Facts{InTerminal: true}, false, false}, {Facts{ErrTerminal: true}, false, false}} {
		io := New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, tt.facts)
		if err := io.Configure(Options{JSON: tt.json}); err != nil {
			t.Fatal(err)
		}
		if got := io.Interactive(); got != tt.want {
			t.Errorf("%+v, JSON %v: %v; want %v", tt.facts, tt.json, got, tt.want)
		}
	}
}

// A secret is typed when its question shows, and nothing of it comes back; the
// terminal is as before after an answer and after an interruption.
func TestAskSecretHidesWhatIsTyped(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	defer ptmx.Close()
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	io := New(tty, tty, tty, Facts{InTerminal: true, OutTerminal: true, ErrTerminal: true})
	shown := make(chan string)
	go func() { // what the terminal shows, up to the second question
		var all []byte
		for buf := make([]byte, 64); !bytes.HasSuffix(all, []byte("Again: ")); {
			n, err := ptmx.Read(buf)
			if err != nil {
				break
			}
			if all = append(all, buf[:n]...); string(all) == "Key: " {
				if _, err := ptmx.WriteString("s3crX\x7fet\r"); err != nil { // as typed, with a correction
					break
				}
			}
		}
		shown <- string(all)
	}()
	if got, err := io.AskSecret(t.Context(), "Key:"); got != "s3cret" || err != nil {
		t.Errorf("answer %q, %v", got, err)
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	all := make(chan string, 1)
	go func() {
		all <- <-shown
		cancel(interrupted)
	}()
	if got, err := io.AskSecret(ctx, "Again:"); !errors.Is(err, interrupted) {
		t.Errorf("answer %q, %v; want the interruption", got, err)
	}
	if got, want := <-all, "Key: \r\nAgain: "; got != want {
		t.Errorf("the terminal shows %q; want %q", got, want)
	}
	after, err := term.GetState(int(tty.Fd()))
	if err != nil || *after != *before {
		t.Errorf("the modes of the terminal are %+v, %v; were %+v", after, err, before)
	}
}
