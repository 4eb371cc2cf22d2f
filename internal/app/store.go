package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/observed"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/postgres"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// storeMargin is the time that a command has left when it stops waiting for its store.
const storeMargin = 2 * time.Second

// Store is an open store with its contracts: callers use a contract, not the store. The contracts are safe for
// concurrent use.
type Store struct {
	Stager     ledger.Stager
	Queue      ledger.Queue
	Unknown    ledger.UnknownRows
	History    ledger.History
	Keys       ledger.Keys
	Accounts   ledger.Accounts
	Trackings  ledger.Trackings
	Statistics ledger.Statistics
	Sweeps     ledger.Sweeps
	Eraser     ledger.Eraser
	Events     ledger.EventFollower

	Observed observed.Store

	Inbox       inbox.Store
	Overviews   inbox.Overviews
	Verdicts    inbox.Verdicts
	Retention   inbox.Retention
	Outbox      inbox.Outbox
	Claims      inbox.Claims
	Forwardings inbox.Forwardings
	Listeners   inbox.Listeners
	Changes     inbox.Changes

	DB *store.DB // for the commands about the store itself

	Path string // path of its file, or URL of its server without secrets
	New  bool   // this process created it

	Close func() error // closes the store
}

func newStore(db *store.DB) *Store {
	return &Store{
		Stager: db, Queue: db, Unknown: db, History: db, Keys: db, Accounts: db, Trackings: db, Statistics: db,
		Sweeps: db, Eraser: db, Events: db, Observed: db, Inbox: db, Overviews: db, Verdicts: db, Retention: db,
		Outbox: db, Claims: db, Forwardings: db, Listeners: db, Changes: db,
		DB: db, Path: db.Place(), New: db.New(), Close: db.Close,
	}
}

// Follower returns a follower that records the store's events in its ledger.
func (s *Store) Follower() *follow.Follower {
	return &follow.Follower{Inbox: s.Inbox, Ledger: s.Events}
}

// Store returns the store for a command that writes, and creates it if needed. Its error matches [inbox.ErrReadOnly]
// if the user can't write. The session closes it.
func (s *Session) Store(ctx context.Context) (*Store, error) {
	opened, err := s.open(ctx, store.Options{})
	if err == nil {
		err = opened.DB.Writable()
	}
	if err == nil {
		err = s.pin(ctx, opened)
	}
	return opened, err
}

// StoreIfAny is [Session.ExistingStore], but also returns nil if no place for a store is known.
func (s *Session) StoreIfAny(ctx context.Context) (*Store, error) {
	if s.Config.Store == "" {
		return nil, nil //nolint:nilnil // no store is an answer, not a failure
	}
	return s.ExistingStore(ctx)
}

// ExistingStore returns the store, or nil and no error if there is none: a command that only reads creates no file.
// If the user can't write the store, write operations return an error that matches [inbox.ErrReadOnly].
func (s *Session) ExistingStore(ctx context.Context) (*Store, error) {
	opened, err := s.open(ctx, store.Options{MustExist: true})
	if errors.Is(err, store.ErrNotThere) {
		return nil, nil //nolint:nilnil // no store is an answer, not a failure
	}
	return opened, err
}

// Received returns the deliveries of the store; a nil store has none.
func (s *Store) Received() replay.Inbox {
	if s == nil {
		return replay.Empty{}
	}
	return s.Inbox
}

// ChangeWatch waits until the store of a session may have changed. The caller opens the store, which may be created
// meanwhile.
type ChangeWatch struct {
	Session *Session
	Hints   <-chan struct{} // has a value when there may be changes; nil for the hints of the store, if it sends any
}

// Wait returns nil when the store may have changed: after rest at the earliest, at a hint, and after poll at the
// latest. Once ctx has ended it returns the cause.
func (w *ChangeWatch) Wait(ctx context.Context, rest, poll time.Duration) error {
	due := time.Now().Add(poll)
	w.Session.mu.Lock()
	db := w.Session.store
	w.Session.mu.Unlock()
	if w.Hints == nil && db != nil {
		w.Hints = db.Changes.Watch(ctx) // a change before Watch shows at the next poll
	}
	if err := pace.Sleep(ctx, rest); err != nil {
		return err
	}
	pace.Wait(ctx, w.Hints, due)
	return context.Cause(ctx)
}

func (s *Session) open(ctx context.Context, o store.Options) (*Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil || s.unopened != nil {
		return s.store, s.unopened
	}
	place, err := s.Config.StorePath()
	if err != nil {
		return nil, err
	}
	// The store times out before the command does, so that the store's error is reported.
	o.ReadOnly, o.Until = s.ReadOnly, s.StoreUntil.Add(-storeMargin)
	db, err := s.StoreAt(ctx, place, o)
	if errors.Is(err, store.ErrUnreachable) {
		s.unopened = err // later calls do not wait again
	}
	if err != nil {
		return nil, err
	}
	if s.account, err = db.Account(ctx); err == nil {
		err = s.CheckAccount(db.Place(), s.account)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.store = newStore(db)
	if o.ReadOnly {
		return s.store, nil
	}
	if who := db.Shared(); who != "" {
		s.IO.Note("Store %s is shared: %s and can change what counts as sent", db.Place(), who)
	}
	return s.store, nil
}

// StoreAt opens the store in a file or on a server. Callers must close it.
func (s *Session) StoreAt(ctx context.Context, place string, o store.Options) (*store.DB, error) {
	if !config.IsServer(place) {
		return sqlite.Open(ctx, place, o)
	}
	return s.openServer(ctx, place, o)
}

// CopyAt opens the store that becomes a copy of another. finish puts it in place; callers must close db.
func (s *Session) CopyAt(ctx context.Context, place string) (db *store.DB, finish func() error, err error) {
	if !config.IsServer(place) {
		return sqlite.OpenCopy(ctx, place)
	}
	db, err = s.openServer(ctx, place, store.Options{})
	return db, func() error { return nil }, err
}

func (s *Session) openServer(ctx context.Context, place string, o store.Options) (*store.DB, error) {
	target, err := s.target(place)
	if err != nil {
		return nil, err
	}
	password, err := s.Config.StorePassword()
	if err != nil {
		return nil, err
	}
	s.IO.Hide(password.Reveal())
	note := func(text string) { s.IO.Note("%s", text) }
	if o.ReadOnly {
		note = nil
	} else if target.Unverified() {
		note("The connection to the store is not verified (--insecure-store): others on the network may read and change it")
	}
	return postgres.Open(ctx, target, postgres.Options{
		Options: o, Password: password.Reveal(),
		Version: buildinfo.Read().Version, Command: s.Command, Note: note,
	})
}

func (s *Session) target(place string) (postgres.Target, error) {
	target, err := postgres.Parse(place, postgres.ParseOptions{Insecure: s.Config.InsecureStore})
	refused, ok := errors.AsType[*postgres.TargetError](err)
	switch {
	case ok && place == s.Config.Store:
		err = s.Config.Refuse("store", refused.Message, refused.Hint)
	case ok: // an argument
		err = &config.KeyError{Message: refused.Message, Hint: refused.Hint}
	}
	return target, err
}

// StorePlace returns the path of a file, or the URL of a server without secrets. It does not create or connect.
func (s *Session) StorePlace() (place string, isServer bool, err error) {
	place, err = s.Config.StorePath()
	if err != nil || !config.IsServer(place) {
		return place, false, err
	}
	target, err := s.target(place)
	if err != nil {
		return "", true, err
	}
	return target.Place(), true, nil
}

// WithScratchStore calls use with an empty store that is removed afterwards.
func WithScratchStore(ctx context.Context, use func(context.Context, *Store) error) (err error) {
	folder, err := os.MkdirTemp("", "waybill-scratch-*")
	if err != nil {
		return &disk.TempError{Err: err}
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(folder)) }()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "scratch.db"), store.Options{})
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, newStore(db)), db.Close())
}

// Computer identifies this computer: by its name and, if the system has one, a part of the boot identifier.
func Computer() string {
	name, _ := os.Hostname() // without a name, boot identifiers distinguish computers
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id, _, ok := strings.Cut(string(boot), "-"); ok {
		name += "/" + id
	}
	return name
}

// IsThisComputer reports whether a listener runs on this computer. Older versions recorded no name.
func IsThisComputer(name string) bool { return name == "" || name == Computer() }
