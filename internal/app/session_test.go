package app_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// session is one command with a service that it does not ask.
func session(t *testing.T) *app.Session {
	t.Helper()
	home := t.TempDir()
	a := &app.App{
		IO: term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{}),
		Sources: func([]config.Flag) config.Sources {
			return config.Sources{Env: []string{"WAYBILL_BASE_URL=http://localhost", "WAYBILL_API_KEY=k"}, WorkDir: home, Home: home}
		},
	}
	s, err := a.Session(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Goroutines that ask at once share one client and one store.
func TestSessionsAreForSeveralGoroutines(t *testing.T) {
	s := session(t)
	const askers = 8
	var clients [askers]*api.Client
	var stores [askers]*app.Store
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range askers {
		all.Go(func() {
			<-start
			var err error
			if clients[i], err = s.Client(); err != nil {
				t.Error(err)
			}
			if _, err = s.ExistingStore(t.Context()); err != nil {
				t.Error(err)
			}
			if stores[i], err = s.Store(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	for i := range askers {
		if clients[i] == nil || clients[i] != clients[0] || stores[i] == nil || stores[i] != stores[0] {
			t.Errorf("goroutine %d has a client or a store of its own", i)
		}
	}
}
