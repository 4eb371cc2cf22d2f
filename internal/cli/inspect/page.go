package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inspect"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Intervals at which streams look for changes.
const (
	pollInterval = time.Second / 2        // if nothing reports changes
	wakeRest     = 250 * time.Millisecond // minimum
)

// Options say what a page shows and may do.
type Options struct {
	Call        *command.Call
	Targets     []forward.Target // to which the page may send deliveries
	AllowTarget bool             // allow link-local addresses and metadata services
	Listener    string           // URL of the listener that serves the page; empty for none
	Arrivals    <-chan struct{}  // gets a value when there may be changes; nil to watch the store
}

// Page serves the page. Its routes are methods.
type Page struct {
	Options

	server *inspect.Server
	client *forward.Client // for the targets

	mu   sync.Mutex
	wake chan struct{} // closed when there may be changes

	searching sync.Mutex // only one request at a time examines deliveries
}

// Open listens on a loopback address. The caller must call [Page.Run].
func Open(ctx context.Context, at Place, o Options) (*Page, error) {
	token, err := at.token()
	if err != nil {
		return nil, err
	}
	client, err := events.NewForwardClient(o.Call.Session, events.TargetPolicy{Allow: o.AllowTarget})
	if err != nil {
		return nil, err
	}
	p := &Page{Options: o, client: client, wake: make(chan struct{})}
	l, err := listenOn(ctx, at.Addr)
	if err != nil {
		return nil, err
	}
	p.server, err = inspect.New(l, inspect.Options{
		Routes:   p.Routes(),
		Session:  p.session,
		Token:    token,
		Stream:   p.stream,
		Explain:  p.explain,
		Hide:     maskerOf(o),
		ReadOnly: o.Call.ReadOnly,
		Log:      func(text string) { o.Call.IO.Detail("%s", text) },
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return p, nil
}

// maskerOf returns a function that masks secrets of the session and the targets, and escapes control characters.
func maskerOf(o Options) func([]byte) []byte {
	var headers []webhook.Field
	for _, t := range o.Targets {
		headers = append(headers, t.Headers...)
	}
	session, targets := o.Call.Redactor(), forward.Redactor(headers)
	return func(b []byte) []byte { return term.EscapeJSON(nil, targets.JSON(session.JSON(b))) }
}

// Routes returns the page's routes, except /session and /stream.
func (p *Page) Routes() []inspect.Route {
	get := func(pattern string, serve func(*http.Request) (any, error)) inspect.Route {
		return inspect.Route{Method: http.MethodGet, Pattern: pattern, Serve: serve}
	}
	return []inspect.Route{
		get("/deliveries", func(r *http.Request) (any, error) { return p.listDeliveries(r) }),
		get("/deliveries/{id}", p.showDelivery),
		get("/deliveries/{id}/body", func(r *http.Request) (any, error) {
			d, err := p.findWhole(r)
			return inspect.File{Name: bodyFile(d.Delivery), Body: d.Body}, err
		}),
		get("/deliveries/{id}/events", p.showEvents),
		get("/deliveries/{id}/diagnosis", p.diagnose),
		get("/deliveries/{id}/curl", p.curl),
		get("/tracking", p.tracking),
		{Method: http.MethodPost, Pattern: "/deliveries/{id}/send", Serve: p.send},
	}
}

// URL returns the URL of the page without its token.
func (p *Page) URL() string { return p.server.URL() }

// SecretURL returns the URL with the token, which opens the page in a browser.
func (p *Page) SecretURL() string { return p.server.SecretURL() }

// Run serves the page until ctx ends.
func (p *Page) Run(ctx context.Context) error {
	defer p.client.Close()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { p.watch(watching) })
	err := p.server.Serve(ctx)
	stop()
	watch.Wait()
	return err
}

// changed returns a channel that is closed when there may be changes, at most a few times a second.
func (p *Page) changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wake
}

func (p *Page) watch(ctx context.Context) {
	changes := app.ChangeWatch{Session: p.Call.Session, Hints: p.Arrivals}
	for changes.Wait(ctx, wakeRest, pollInterval) == nil {
		p.mu.Lock()
		close(p.wake)
		p.wake = make(chan struct{})
		p.mu.Unlock()
	}
}

type sessionJSON struct {
	Account  string       `json:"account"`
	Store    string       `json:"store"`    // path of its file, or URL of its server
	HasStore bool         `json:"hasStore"` // there is one
	Listener *string      `json:"listener"` // URL that takes deliveries; null for none
	ReadOnly bool         `json:"readOnly"`
	Token    string       `json:"token"` // for the requests that follow
	Targets  []targetJSON `json:"targets"`
}

type targetJSON struct {
	ID     string `json:"id"`
	URL    string `json:"url"` // without what may be a token
	Filter string `json:"filter"`
}

func (p *Page) session(ctx context.Context, token string) (any, error) {
	db, err := p.Call.ExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	place, _, err := p.Call.StorePlace()
	if err != nil {
		return nil, err
	}
	j := sessionJSON{
		Account: p.Call.Account(ctx), Store: place, HasStore: db != nil,
		ReadOnly: p.Call.ReadOnly, Token: token, Targets: []targetJSON{},
	}
	if p.Listener != "" {
		j.Listener = &p.Listener
	}
	for i, t := range p.Targets {
		j.Targets = append(j.Targets, targetJSON{targetID(i), t.Show(), t.Filter.String()})
	}
	return j, nil
}

// explain turns an error of a route into a response with message and hint as on the command line.
func (p *Page) explain(err error) *inspect.Error {
	code, hint := command.CodeAndHint(err)
	status := map[command.Code]int{
		command.Usage: http.StatusBadRequest, command.NotFound: http.StatusNotFound,
		command.Store: http.StatusServiceUnavailable,
	}[code]
	status = cmp.Or(status, http.StatusInternalServerError)
	return &inspect.Error{Status: status, Message: err.Error(), Hint: hint, Code: code.Word()}
}

// failure returns an error of a route with its own HTTP status.
func failure(status int, code command.Code, message, hint string) error {
	return &inspect.Error{Status: status, Message: message, Hint: hint, Code: code.Word()}
}

// content returns bytes of a body for the page, masked; see [newContent].
func content(m view.Masker, b []byte, maxText, maxHex int) contentJSON {
	shown := []byte(m.JSON(b))
	if !json.Valid(b) {
		shown = []byte(m.Text(string(b)))
	}
	j := newContent(shown, maxText, maxHex)
	j.Bytes, j.Masked = len(b), !bytes.Equal(shown, b)
	return j
}

type contentJSON struct {
	Text   *string `json:"text,omitempty"` // of what is UTF-8
	Hex    string  `json:"hex,omitempty"`  // of what is not
	Bytes  int     `json:"bytes"`          // of the whole, before anything was hidden
	Cut    bool    `json:"cut"`            // only the start is here
	Masked bool    `json:"masked"`         // secrets are hidden
}

// newContent returns bytes for the page as text or hex, cut to maxText or maxHex bytes.
func newContent(b []byte, maxText, maxHex int) contentJSON {
	if !utf8.Valid(b) {
		return contentJSON{Hex: hex.EncodeToString(b[:min(len(b), maxHex)]), Bytes: len(b), Cut: len(b) > maxHex}
	}
	end := min(len(b), maxText)
	for end < len(b) && end > 0 && !utf8.RuneStart(b[end]) {
		end--
	}
	return contentJSON{Text: new(string(b[:end])), Bytes: len(b), Cut: len(b) > maxText}
}
