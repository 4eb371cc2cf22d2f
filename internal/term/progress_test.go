package term

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns what was written since the last time.
func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err lockedBuffer
		io := New(nil, &err, &err, Facts{})
		p := io.Progress("sending")
		p.Set("1 of 3", nil)
		time.Sleep(lineEvery - time.Millisecond)
		if got := err.take(); got != "" {
			t.Errorf("early: %q", got)
		}
		steps := []struct{ set, want string }{
			{"1 of 3", "sending: 1 of 3\n"},
			{"1 of 3", ""},
			{"2 of \x1b[31m3\n", "sending: 2 of \\u{1b}[31m3\\n\n"},
			{"", "sending\n"},
		}
		for i, s := range steps {
			p.Set(s.set, nil)
			time.Sleep(lineEvery)
			if got := err.take(); got != s.want {
				t.Errorf("step %d: %q; want %q", i, got, s.want)
			}
		}
		p.Set("3 of 3", nil)
		p.Stop()
		p.Stop()
		time.Sleep(time.Minute)
		if got := err.take(); got != "" {
			t.Errorf("after Stop: %q", got)
		}
	})
}

func TestProgressOnADumbTerminalMovesNoCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err lockedBuffer
		io := New(nil, &err, &err, Facts{ErrTerminal: true, OutTerminal: true, Env: map[string]string{"TERM": "dumb"}})
		p := io.Progress("")
		p.Set("half", nil)
		time.Sleep(lineEvery + time.Second)
		p.Stop()
		if got := err.take(); got != "half\n" {
			t.Errorf("got %q; want a line", got)
		}
	})
}

func TestProgressIsSilent(t *testing.T) {
	for _, o := range []Options{{Quiet: true}, {JSON: true}, {JSON: true, Verbose: true, Quiet: true}} {
		synctest.Test(t, func(t *testing.T) {
			var err lockedBuffer
			io := New(nil, &err, &err, Facts{})
			io.Configure(o)
			p := io.Progress("sending")
			p.Set("half", nil)
			time.Sleep(time.Minute)
			p.Stop()
			if got := err.take(); got != "" {
				t.Errorf("%+v: %q", o, got)
			}
		})
	}
}

func TestProgressAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err lockedBuffer
		io := New(nil, &err, &err, Facts{})
		io.Configure(Options{JSON: true, Verbose: true})
		p := io.Progress("sending")
		p.Set("half\x7f", map[string]any{"rows": 3, "type": "mine"})
		time.Sleep(lineEvery + time.Second)
		want := `{"label":"sending","message":"half\u007f","rows":3,"type":"progress"}` + "\n"
		if got := err.take(); got != want {
			t.Errorf("got %s want %s", got, want)
		}
		p.Set("more", map[string]any{"rows": func() {}})
		time.Sleep(lineEvery)
		want = `{"type":"warning","message":"message not shown: json: unsupported type: func()"}` + "\n"
		if got := err.take(); got != want {
			t.Errorf("got %s want %s", got, want)
		}
		p.Stop()
	})
}

func TestNothingComesAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err lockedBuffer
		io := New(nil, &err, &err, Facts{})
		io.Configure(Options{JSON: true, Verbose: true})
		io.Progress("sending").Set("half", nil)
		io.Fail(Failure{Code: "failed", Message: "gone"})
		time.Sleep(time.Minute)
		if got, want := err.take(), `{"type":"error","code":"failed","message":"gone"}`+"\n"; got != want {
			t.Errorf("got %s want %s", got, want)
		}
	})
}

func TestCloseStopsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err lockedBuffer
		io := New(nil, &err, &err, Facts{})
		one, two := io.Progress("one"), io.Progress("two")
		if e := io.Close(); e != nil {
			t.Fatal(e)
		}
		one.Set("late", nil)
		time.Sleep(time.Minute)
		if got := err.take(); got != "" {
			t.Errorf("after Close: %q", got)
		}
		two.Stop()
		if e := io.Close(); e != nil {
			t.Fatal(e)
		}
	})
}

func TestProgressFromManyGoroutines(t *testing.T) {
	defer goleak.VerifyNone(t)
	io := New(nil, new(lockedBuffer), new(lockedBuffer), Facts{})
	p := io.Progress("sending")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				p.Set(fmt.Sprintf("%d of %d", n, i), nil)
			}
			p.Stop()
		})
	}
	wg.Wait()
}

// Set replaces what is shown.
func (p *Progress) Set(text string, fields map[string]any) {
	p.Show(func() Report { return Report{Parts: []Part{{Text: text}}, Fields: fields} })
}
