package pgtest

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Proxy is the network between programs and a private server: a TCP address on
// loopback, whose connections it can cut and stall. It is safe for
// concurrent use.
type Proxy struct {
	listener net.Listener
	server   string // path of the server's socket
	tasks    sync.WaitGroup

	mu      sync.Mutex
	links   map[*link]bool
	state   networkState
	sent    int           // times that a program sent something
	changed chan struct{} // closed when state changes
}

// networkState is how the network does.
type networkState struct {
	stalled bool
	refused bool
	closed  bool
	cutAt   [][]byte // any of these, in lower case; empty: none
	answer  bool     // cut at the answer to cutAt
}

// NewProxy starts a proxy before the server. The end of the test ends it.
func (s *Server) NewProxy(t testing.TB) *Proxy {
	t.Helper()
	if err := s.private(); err != nil {
		t.Fatal(err)
	}
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		listener: l,
		server:   filepath.Join(s.Folder, ".s.PGSQL."+strconv.Itoa(s.Port)),
		links:    map[*link]bool{}, changed: make(chan struct{}),
	}
	p.tasks.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL returns a URL of the server with the proxy's address.
func (p *Proxy) URL(of string) (string, error) {
	return withAddress(of, p.listener.Addr().String())
}

// Cut resets every connection. New ones are served.
func (p *Proxy) Cut() {
	for _, l := range p.all() {
		l.reset()
	}
}

// Refuse resets every connection, and each new one at once, until [Proxy.Heal]. It
// returns when the server has ended its side of them: until then a connection's last
// statement may be done, and the server holds its locks.
func (p *Proxy) Refuse() {
	p.change(func(s *networkState) { s.refused = true })
	cut := p.all()
	p.Cut()
	for _, l := range cut {
		<-l.gone
	}
}

// RefuseNew resets each new connection at once, until [Proxy.Heal], and all others with
// the one that [Proxy.CutBefore] or [Proxy.CutAfter] resets.
func (p *Proxy) RefuseNew() { p.change(func(s *networkState) { s.refused = true }) }

// Stall lets no byte pass either way, and says so to nobody, until [Proxy.Heal].
func (p *Proxy) Stall() { p.change(func(s *networkState) { s.stalled = true }) }

// Heal ends what [Proxy.Refuse], [Proxy.RefuseNew] and [Proxy.Stall] began. Bytes that were
// stalled arrive then.
func (p *Proxy) Heal() { p.change(func(s *networkState) { s.refused, s.stalled = false, false }) }

// Sent returns how many times programs sent something: about their round trips.
func (p *Proxy) Sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// CutBefore resets the next connection on which a program sends one of these texts, in
// any case, before the server sees it.
func (p *Proxy) CutBefore(texts ...string) {
	p.change(func(s *networkState) { s.cutAt, s.answer = lowered(texts), false })
}

// CutAfter is [Proxy.CutBefore], but the server gets the text: what is lost is
// its answer.
func (p *Proxy) CutAfter(texts ...string) {
	p.change(func(s *networkState) { s.cutAt, s.answer = lowered(texts), true })
}

func lowered(texts []string) (all [][]byte) {
	for _, text := range texts {
		all = append(all, bytes.ToLower([]byte(text)))
	}
	return all
}

func (p *Proxy) change(apply func(*networkState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	apply(&p.state)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) now() (networkState, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.changed
}

func (p *Proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*link
	for l := range p.links {
		out = append(out, l)
	}
	return out
}

func (p *Proxy) close() {
	p.change(func(s *networkState) { s.closed = true })
	p.listener.Close()
	p.Cut()
	for _, l := range p.all() {
		l.server.Close() // without waiting for the server's end
	}
	p.tasks.Wait()
}

func (p *Proxy) accept() {
	for {
		program, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.serve(program) })
	}
}

func (p *Proxy) serve(program net.Conn) {
	l := &link{proxy: p, program: program, ended: make(chan struct{}), gone: make(chan struct{})}
	defer close(l.gone)
	defer l.reset()
	server, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.server, Net: "unix"})
	if err != nil {
		return
	}
	l.server = server
	defer server.Close()
	p.mu.Lock()
	refused := p.state.refused || p.state.closed
	p.links[l] = !refused
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	if refused {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { l.pass(program, server, l.isCut) })
	ways.Go(func() { l.pass(server, program, func([]byte) bool { return l.answerIsCut() }) })
	<-l.ended
	server.CloseWrite() // the server may have ended it
	ways.Wait()
	io.Copy(io.Discard, server) //nolint:errcheck // the server's process keeps it open until it has ended
}

// link is a connection of a program, and the one of the proxy that belongs to it.
type link struct {
	proxy   *Proxy
	program net.Conn
	server  *net.UnixConn
	ended   chan struct{} // closed when the proxy ends both connections
	gone    chan struct{} // closed when the server has ended its own
	end     sync.Once

	mu        sync.Mutex
	cutAnswer bool
}

// reset ends both connections, the program's without a proper end.
func (l *link) reset() {
	l.end.Do(func() {
		if tcp, ok := l.program.(*net.TCPConn); ok {
			tcp.SetLinger(0) //nolint:errcheck // then it ends properly
		}
		l.program.Close()
		close(l.ended)
	})
}

// cut is reset, and before that of all others while new ones are refused: on none can the
// program ask what became of this one.
func (l *link) cut() {
	if state, _ := l.proxy.now(); state.refused {
		for _, other := range l.proxy.all() {
			if other != l {
				other.reset()
			}
		}
	}
	l.reset()
}

// finish ends both connections, the program's properly.
func (l *link) finish() {
	l.end.Do(func() {
		l.program.Close()
		close(l.ended)
	})
}

// isCut reports whether the connection is reset in place of passing what the
// program sent.
func (l *link) isCut(sent []byte) bool {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	sent = bytes.ToLower(sent)
	if !slices.ContainsFunc(p.state.cutAt, func(text []byte) bool { return bytes.Contains(sent, text) }) {
		return false
	}
	p.state.cutAt = nil
	if p.state.answer {
		l.mu.Lock()
		l.cutAnswer = true
		l.mu.Unlock()
		return false
	}
	return true
}

func (l *link) answerIsCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cutAnswer
}

// pass passes bytes one way until either connection ends.
func (l *link) pass(from, to net.Conn, isCut func([]byte) bool) {
	queue := make(chan []byte, 1024)
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() {
		defer close(queue)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case queue <- buffer[:n]:
				case <-l.ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for sent := range queue {
		if !l.wait() {
			l.reset()
			return
		}
		if isCut(sent) {
			l.cut()
			return
		}
		if _, err := to.Write(sent); err != nil {
			break
		}
	}
	if l.wait() { // a stalled network does not say that a connection ended
		l.finish()
	}
}

// wait waits while the network is stalled. It returns false if the connection ended
// before.
func (l *link) wait() bool {
	for {
		state, changed := l.proxy.now()
		if !state.stalled {
			return true
		}
		select {
		case <-changed:
		case <-l.ended:
			return false
		}
	}
}
