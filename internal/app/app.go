// Package app provides commands with settings, the service and the store. Each is created only on request, so that
// building the command tree reads nothing.
package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/observed"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// App is one run of the program. Tests build their own.
type App struct {
	IO *term.IO
	// Sources returns the sources of the settings, with the flags of the running command.
	Sources func(flags []config.Flag) config.Sources
	Getenv  func(string) string // reads environment variables that are not settings
	Keyring Keyring             // keeps API keys if the user chose that
	// Hard ends requests in flight; nil: the command's own context ends them. A first signal ends the command's context,
	// a second one this.
	Hard context.Context //nolint:containedctx // one run of the program has one
}

// Keyring stores secrets by name, like the system's keyring.
type Keyring interface {
	Get(ctx context.Context, name string) (string, error)
	Set(ctx context.Context, name, secret string) error
	Delete(ctx context.Context, name string) error
}

// Session is one command with its settings. It creates each object once. The session and its objects are safe for
// concurrent use.
type Session struct {
	IO     *term.IO
	Config config.Config

	Command string // its name, such as `runs resume`; shown to other users of the store

	// ReadOnly prevents all writes to the store, even an upgrade: an older store is an error. It must be set before the
	// store is opened.
	ReadOnly bool

	// StoreUntil is the deadline for opening the store, set before that; zero for some seconds.
	StoreUntil time.Time

	Gate *pace.Gate // all requests of the command pass it

	inFlight  atomic.Int64 // requests to the service or to targets
	finishing atomic.Bool  // requests in flight continue after a first signal

	app     *App
	sources config.Sources
	apiKey  func() (config.APIKey, error) // reads the key once

	mu       sync.Mutex // guards the fields below
	client   *api.Client
	observer *observer // records the responses of client
	store    *Store
	account  string // of the store; empty while it has none
	unopened error  // why no connection to the store could be made; nil if not tried
}

// Session loads the settings, with the errors of [config.Load]. When ctx ends, reading the API key ends too.
func (a *App) Session(ctx context.Context, flags []config.Flag) (*Session, error) {
	sources := a.Sources(flags)
	cfg, err := config.Load(sources)
	if err != nil {
		return nil, err
	}
	readKey := func() (config.APIKey, error) {
		return cfg.ReadAPIKey(a.IO.In, func(name string) (string, error) { return a.Keyring.Get(ctx, name) })
	}
	gate := pace.New(cfg.Concurrency, cfg.Rate)
	if cfg.Origin("concurrency").Level != config.FromDefault {
		gate.Begin(cfg.Concurrency)
	}
	return &Session{
		IO: a.IO, Config: cfg, Gate: gate, app: a, sources: sources,
		apiKey: sync.OnceValues(func() (config.APIKey, error) { return term.Await(ctx, readKey) }),
	}, nil
}

// Bare returns a session without settings, for a command that runs even if they are broken.
func (a *App) Bare(flags []config.Flag) *Session {
	return &Session{IO: a.IO, sources: a.Sources(flags)}
}

// Reloaded returns a session with the current settings, without gate and store, for verifying deliveries.
func (s *Session) Reloaded() (*Session, error) {
	cfg, err := config.Load(s.sources)
	return &Session{IO: s.IO, Config: cfg, app: s.app, sources: s.sources, apiKey: s.apiKey}, err
}

// Hard returns the context that ends requests in flight.
func (s *Session) Hard(ctx context.Context) context.Context {
	s.finishing.Store(true)
	if s.app.Hard != nil {
		return s.app.Hard
	}
	return ctx
}

// InFlight returns how many requests are in flight that a first signal does not end.
func (s *Session) InFlight() int64 {
	if !s.finishing.Load() {
		return 0
	}
	return s.inFlight.Load()
}

// InFlightCounter counts the requests in flight of clients other than the service's.
func (s *Session) InFlightCounter() *atomic.Int64 { return &s.inFlight }

// Close closes everything that the session created.
func (s *Session) Close() error {
	s.mu.Lock()
	o := s.observer
	s.mu.Unlock()
	if o != nil { // it uses the store
		o.writing.Wait()
		o.flush()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
	}
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// Client returns the client of the service, with the API key. It opens no connection.
func (s *Session) Client() (*api.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	base, err := s.Config.RequireBaseURL()
	if err != nil {
		return nil, err
	}
	key, err := s.ServiceKey(base)
	if err != nil {
		return nil, err
	}
	o := s.apiOptions(base, key)
	s.observer = &observer{session: s, recorder: observed.NewRecorder(), written: time.Now()}
	o.Observe = s.observer.add
	s.client, err = api.New(o)
	return s.client, err
}

// NewClient returns a client of another service, or with another key or none. Callers must close it.
func (s *Session) NewClient(base, key string) (*api.Client, error) {
	return api.New(s.apiOptions(base, key))
}

func (s *Session) apiOptions(base, key string) api.Options {
	c := s.Config
	o := api.Options{
		BaseURL:     base,
		Key:         key,
		UserAgent:   buildinfo.UserAgent(),
		Workers:     c.Concurrency,
		CAFile:      c.CAFile,
		Timeout:     c.RequestTimeout,
		NumberParam: c.Query.TrackingNumberParam,
		Unprocessed: c.AssumeUnprocessed,
		Absent:      c.Query.Absent,
		Accepted:    c.Create.Accepted,
		InFlight:    &s.inFlight,
	}
	if c.Debug {
		o.Trace = s.trace
	}
	return o
}

// Key returns the API key for all purposes except sending it. It is read once.
func (s *Session) Key() (string, error) {
	key, err := s.apiKey()
	s.IO.Hide(key.Secret.Reveal())
	return key.Secret.Reveal(), err
}

// ServiceKey returns the API key for requests to base. A key that belongs to another service is an error: see
// [config.Config.CheckService].
func (s *Session) ServiceKey(base string) (string, error) {
	key, err := s.Key()
	if err != nil {
		return "", err
	}
	found, _ := s.apiKey() // read above
	return key, s.Config.CheckService(found, base)
}

// Sources returns the sources of the settings.
func (s *Session) Sources() config.Sources { return s.sources }

// Keyring returns the keyring.
func (s *Session) Keyring() Keyring { return s.app.Keyring }

// EditUser changes the active profile of the user file, and returns the file's path. The environment still applies.
func (s *Session) EditUser(changes ...edit.Change) (string, error) {
	return edit.Set(s.sources, s.Config.Profile, changes...)
}

// Asker returns an Asker that queries the service. If the store is read-only, a note says once that answers are not
// recorded.
func (s *Session) Asker() (*query.Asker, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	a := s.StoredAnswers()
	a.Service, a.Gate = client, s.Gate
	return a, nil
}

// StoredAnswers returns an Asker for stored data only: see [query.Asker.Stored].
func (s *Session) StoredAnswers() *query.Asker {
	note := sync.OnceFunc(func() { s.IO.Note("Store %s is read-only: nothing is saved", s.Config.Store) })
	open := func(ctx context.Context) (*query.Store, error) {
		db, err := s.StoreIfAny(ctx)
		if err != nil || db == nil {
			return nil, err
		}
		trackings := recorder{db.Trackings, s, db, note}
		return &query.Store{Trackings: trackings, Events: db.Events, Inbox: db.Inbox, Eraser: db.Eraser}, nil
	}
	return &query.Asker{Store: open}
}

// recorder records to a store that may be read-only.
type recorder struct {
	ledger.Trackings

	session    *Session
	store      *Store
	unrecorded func() // called instead of returning an error if the store is read-only
}

// Record records answers, if the store can be written.
func (r recorder) Record(ctx context.Context, answers []ledger.RecordedAnswer) error {
	err := r.session.pin(ctx, r.store)
	if err == nil {
		err = r.Trackings.Record(ctx, answers)
	}
	if errors.Is(err, inbox.ErrReadOnly) {
		r.unrecorded()
		return nil
	}
	return err
}

const traced = 4 << 10 // bytes of a body that --debug shows

// trace shows one exchange on stderr, without the key, and with headers masked that may contain secrets.
func (s *Session) trace(x api.Trace) {
	s.IO.Note("> %s %s", x.Method, x.URL)
	if len(x.Request) > 0 {
		s.IO.Note("> %s", start(x.Request))
	}
	if x.Err != nil {
		s.IO.Note("< %v (after %s)", x.Err, x.Took)
	}
	if x.Status == 0 {
		return
	}
	s.IO.Note("< %d (after %s)", x.Status, x.Took)
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		s.IO.Note("< %s: %s", name, redact.Header(name, strings.Join(x.Header[name], ", ")))
	}
	s.IO.Note("< %s", start(x.Answer))
}

func start(b []byte) string {
	if len(b) > traced {
		return string(b[:traced]) + "…"
	}
	return string(b)
}

// Account returns the account of the store, or the account of the settings if the store has none.
func (s *Session) Account(ctx context.Context) string {
	_, _ = s.StoreIfAny(ctx) // users of the store get its error
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != "" {
		return s.account
	}
	return s.Config.Account
}

// pin assigns the account of the settings to the store, if the store has none.
func (s *Session) pin(ctx context.Context, db *Store) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != "" || s.Config.Account == "" {
		return nil
	}
	if s.account, err = db.Accounts.Pin(ctx, s.Config.Account); err != nil {
		return err
	}
	return s.CheckAccount(db.Path, s.account)
}

// CheckAccount returns an error if a store and the settings have different accounts. localhost and all loopback
// addresses count as the same host.
func (s *Session) CheckAccount(place, account string) error {
	if account == "" || s.Config.Account == "" || account == s.Config.Account {
		return nil
	}
	ours, ok := config.SameLoopback(s.Config.Account)
	if theirs, _ := config.SameLoopback(account); ok && ours == theirs {
		return nil
	}
	return &config.KeyError{
		Message: fmt.Sprintf("store %s belongs to account %q, not to account %q", place, account, s.Config.Account),
		Hint: "use a profile, which has a store of its own, or --store FILE; if it is the same account, add --account " +
			shell.Word(account),
	}
}

const (
	observeEvery = time.Second     // what answers hold is written so often; a killed process loses what it met since
	observeLast  = 2 * time.Second // how long the end of a command waits for it
)

// observer records the data met in responses in groups, concurrently with requests. It is safe for concurrent use.
type observer struct {
	session  *Session
	recorder *observed.Recorder

	mu      sync.Mutex
	written time.Time // when the last write began
	writing sync.WaitGroup
	busy    bool
}

func (o *observer) add(x api.Trace) {
	if x.Status == 0 || x.Err != nil {
		return // no response, or an incomplete one
	}
	now := time.Now()
	answer := observed.Answer{Status: x.Status, Header: x.Header, Body: x.Answer, JSON: x.JSON}
	answer.Source = observed.Source(x.Operation)
	o.recorder.Answer(answer, now)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || now.Sub(o.written) < observeEvery {
		return
	}
	o.busy, o.written = true, now
	o.writing.Go(func() {
		o.flush()
		o.mu.Lock()
		o.busy = false
		o.mu.Unlock()
	})
}

// flush writes to the store that the command opened. It creates no store.
func (o *observer) flush() {
	o.session.mu.Lock()
	db := o.session.store
	o.session.mu.Unlock()
	if db == nil || db.DB.Writable() != nil {
		return
	}
	met := o.recorder.Take()
	if len(met) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), observeLast)
	defer cancel()
	if err := db.Observed.Observe(ctx, met); err != nil {
		o.session.IO.Detail("what the responses hold was not recorded: %v", err)
	}
}

// Observer returns an observer that adds the store's deliveries to the register of what was met.
func (s *Store) Observer() *follow.Observer {
	return &follow.Observer{Inbox: s.Inbox, Store: s.Observed}
}
