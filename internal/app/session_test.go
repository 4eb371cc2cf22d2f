package app_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
)

// Goroutines that ask at once share one client and one store.
func TestSessionsAreForSeveralGoroutines(t *testing.T) {
	s := session(t, func(http.ResponseWriter, *http.Request) {})
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
