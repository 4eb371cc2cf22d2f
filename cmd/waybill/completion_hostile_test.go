//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
)

// hostileWords are beginnings of values of the service that a shell could take for more than
// a word. Two values begin with each.
var hostileWords = []string{
	"a$(touch MADE)", "b`touch MADE`", "c;touch MADE;", "d e  f", `e'q"r`, `f\g`, "g*", "h{1,2}", "i&touch MADE&", "j|touch MADE|", "k#<>()[]?^", "l~/", "m!!",
	"p=q:r@s,t", "ü wört 東京", "q\ttouch MADE\t", "x\ntouch MADE\n", "s\x1b[31m", "w$HOME",
}

// shells are those that complete, with a function that shows the words that the program
// would get.
var shells = []struct {
	name    string
	args    []string
	prepare string
	quotes  string // that may be open where a value is completed
}{
	{"bash", []string{"--noprofile", "--norc", "-i"}, "PS1=; bind 'set enable-bracketed-paste off'; source ./script; waybill() { case $1 in __complete*) command waybill \"$@\" ;; *) printf '<%s>' \"$@\"; echo ;; esac; }", `'"`},
	{"zsh", []string{"-f", "-i"}, "PS1=; PS2=; unset zle_bracketed_paste; setopt no_bang_hist interactive_comments; bindkey '^I' complete-word; autoload -U compinit; compinit -u; source ./script; waybill() { case $1 in __complete*) command waybill \"$@\" ;; *) printf '<%s>' \"$@\"; echo ;; esac; }", ""},
	{"fish", []string{"--no-config", "-i"}, "function fish_prompt; end; source ./script; function waybill; switch $argv[1]; case '__complete*'; command waybill $argv; case '*'; printf '<%s>' $argv; echo; end; end", ""},
}

// A TAB runs nothing of what the store holds or the line has, in any shell, and values
// are inserted as the shell reads them.
func TestCompletionRunsNothing(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	ready := filepath.Join(t.TempDir(), "url")
	listen := w.command("listen", "--addr", "127.0.0.1:0", "--ready-file", ready, "--timeout", "60s", "--exit-after", "1", "-q")
	var events []map[string]any
	for _, s := range hostileWords {
		for _, n := range "12" {
			events = append(events, map[string]any{"event": s + string(n), "eventId": s + string(n), "data": map[string]any{"trackingNumber": s + string(n), "status": 1}})
		}
	}
	body, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- postAll(ready, []string{string(body)}) }()
	if err := listen.Run(); err != nil {
		t.Fatalf("listen: %v: %s", err, listen.Stderr)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	for _, s := range shells {
		t.Run(s.name, func(t *testing.T) {
			if _, err := exec.LookPath(s.name); err != nil && os.Getenv("SHELLS") != "required" {
				t.Logf("%s is not installed", s.name)
				return
			}
			completesHostile(t, w, s.name, s.args, s.prepare, s.quotes)
		})
	}
}

func completesHostile(t *testing.T, w *world, name string, args []string, prepare, quotes string) {
	folder := t.TempDir()
	_, script, _ := w.run("completion", name)
	if err := os.WriteFile(filepath.Join(folder, "script"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(folder, "bin", "waybill")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	cmd.Env = append(slices.Clone(w.env), "PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"), "TERM=dumb", "INPUTRC=/dev/null", "LC_ALL=C.UTF-8")
	typist := newTypist(t, cmd)
	typist.enter(prepare)
	for _, line := range []string{"waybill show $(>MADE) O", "waybill show \"$(>MADE)\" ", "waybill show `>MADE` O", "waybill show '$(>MADE)", "waybill list --status $(>MADE)", "waybill list --status=`>MADE`", "$(>MADE)/waybill runs "} {
		typist.enter(line + "\t\t\x01#")
	}
	for _, s := range hostileWords {
		_, size := utf8.DecodeRuneInString(s)
		first := s[:size]
		typist.enter("waybill events show " + first + "\t\t\x01#")
		clean := !strings.ContainsAny(s, "\t\n\x1b")
		for _, before := range []string{"events show ", "events list --event ", "events list --event="} {
			want := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(before), " ", "><"), "event=", "event="+s+"1")
			if !strings.HasSuffix(before, "=") {
				want += "><" + s + "1"
			}
			shown := typist.enter("waybill " + before + first + "\t1")
			if clean && !strings.Contains(shown, "<"+want+">") {
				t.Errorf("%s%s TAB 1 gives %q, want <%s>", before, first, shown, want)
			}
			for _, q := range quotes {
				shown := typist.enter("waybill " + before + string(q) + first + "\t1" + string(q))
				if clean && !(q == '"' && strings.Contains(s, "!")) && !strings.Contains(shown, "<"+want+">") {
					t.Errorf("%s%c%s TAB 1 gives %q, want <%s>", before, q, first, shown, want)
				}
			}
		}
	}
	if made, _ := filepath.Glob(filepath.Join(folder, "M*")); len(made) > 0 {
		t.Errorf("made %q", made)
	}
	typist.exit(cmd)
}

// typist types into a shell on a terminal, line by line.
type typist struct {
	t        *testing.T
	terminal *os.File
	mu       sync.Mutex
	shown    []byte
	more     chan struct{}
	lines    int
}

func newTypist(t *testing.T, cmd *exec.Cmd) *typist {
	t.Helper()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 250})
	if err != nil {
		t.Fatal(err)
	}
	y := &typist{t: t, terminal: terminal, more: make(chan struct{}, 1)}
	t.Cleanup(func() { _ = terminal.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := terminal.Read(b)
			y.mu.Lock()
			y.shown = append(y.shown, b[:n]...)
			y.mu.Unlock()
			select {
			case y.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return y
}

// enter types a line and returns what the terminal shows until the shell has run it.
func (y *typist) enter(line string) string {
	y.t.Helper()
	y.lines++
	y.write(line + "\r")
	y.write(fmt.Sprintf("printf 'ran%%s\\n' ':%d:'\r", y.lines))
	done := fmt.Sprintf("ran:%d:", y.lines)
	end := time.After(patience)
	for {
		y.mu.Lock()
		shown := string(y.shown)
		if strings.Contains(shown, done) {
			y.shown = nil
			y.mu.Unlock()
			return shown
		}
		y.mu.Unlock()
		select {
		case <-y.more:
		case <-end:
			y.t.Fatalf("%q: the shell shows no end after %q", line, shown)
		}
	}
}

func (y *typist) write(s string) {
	y.t.Helper()
	if _, err := y.terminal.WriteString(s); err != nil {
		y.t.Fatal(err)
	}
}

func (y *typist) exit(cmd *exec.Cmd) {
	y.write("exit\r")
	_ = cmd.Wait() // with the status of the last line
}
