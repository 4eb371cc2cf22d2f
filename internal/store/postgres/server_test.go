package postgres

import (
	"context"
	"errors"
	"net/url"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/storetest"
)

func TestServer(t *testing.T) {
	t.Parallel()
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	storetest.Server(t, storetest.ServerHarness{
		Harness: storetest.Harness{
			Place: func(t testing.TB) string { return s.NewURL(t) },
			Open:  func(t testing.TB, url string) storetest.Store { return opened(t, url, store.Options{}) },
			Check: func(t testing.TB, url string) {
				t.Helper()
				ctx := context.WithoutCancel(t.Context())
				d := dbAt(ctx, t, url, store.Options{MustExist: true})
				if err := errors.Join(d.Check(ctx), d.Close()); err != nil {
					t.Error(err)
				}
			},
		},
		OpenBehind: func(t testing.TB, url string, until time.Time) (storetest.Store, storetest.Network) {
			t.Helper()
			p := s.NewProxy(t)
			behind, err := p.URL(url)
			if err != nil {
				t.Fatal(err)
			}
			return opened(t, behind, store.Options{Until: until}), storetest.Network{
				CutBefore: func() { p.CutBefore(commits()...) }, CutAfter: func() { p.CutAfter(commits()...) },
				Refuse: p.Refuse, RefuseNew: p.RefuseNew, Heal: p.Heal,
			}
		},
		OpenStandby: func(t testing.TB, url string) storetest.Store {
			t.Helper()
			standby := newStandby(t, s)
			return opened(t, sameSchema(t, standby, url), store.Options{})
		},
		Restart: func(t testing.TB) {
			t.Helper()
			if err := s.Restart(t.Context(), "immediate"); err != nil {
				t.Fatal(err)
			}
		},
		Terminate: func(t testing.TB) {
			t.Helper()
			if _, err := s.Terminate(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
		},
		Remember: func(t testing.TB) func(testing.TB) {
			t.Helper()
			data := filepath.Join(s.Folder, "data")
			copyStopped(t, s, data, data+".old")
			return func(t testing.TB) {
				t.Helper()
				copyStopped(t, s, data+".old", data)
			}
		},
		IsLost: func(err error) bool { return errors.Is(err, store.ErrLost) },
	})
}

// sameSchema returns the URL of the same schema on another server.
func sameSchema(t testing.TB, s *pgtest.Server, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	values.Set("host", s.Folder)
	values.Set("port", strconv.Itoa(s.Port))
	u.RawQuery = values.Encode()
	return u.String()
}

// copyStopped copies a folder while the server is stopped.
func copyStopped(t testing.TB, s *pgtest.Server, from, to string) {
	t.Helper()
	err := s.Stop(t.Context(), "fast")
	if err == nil {
		err = osexec.CommandContext(t.Context(), "rm", "-rf", to).Run()
	}
	if err == nil {
		err = osexec.CommandContext(t.Context(), "cp", "-a", from, to).Run()
	}
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t testing.TB, url string, o store.Options) storetest.Store {
	t.Helper()
	d := dbAt(t.Context(), t, url, o)
	return storetest.Store{
		Trackings:  storetest.Trackings{Stager: d, Queue: d, UnknownRows: d, History: d, Keys: d, Accounts: d, Trackings: d, Statistics: d, Sweeps: d, Eraser: d, EventFollower: d},
		Deliveries: storetest.Deliveries{Store: d, Overviews: d, Verdicts: d, Retention: d, Outbox: d, Forwardings: d, Listeners: d, Changes: d},
		Observed:   d,
		Close:      d.Close,
	}
}

func dbAt(ctx context.Context, t testing.TB, url string, o store.Options) *store.DB {
	t.Helper()
	target, err := Parse(url, ParseOptions{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(ctx, target, Options{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newStandby starts a standby of a server, which ends with the test.
func newStandby(t testing.TB, s *pgtest.Server) *pgtest.Server {
	t.Helper()
	standby, err := s.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	return standby
}
