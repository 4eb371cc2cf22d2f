package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRequestsForTrackingsWaitForEachOther(t *testing.T) {
	running, end := make(chan struct{}), make(chan struct{})
	calls := 0
	serve := limiter(1)(func(*http.Request) (any, error) {
		calls++
		close(running)
		<-end
		return "done", nil
	})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	done := make(chan any)
	go func() {
		v, _ := serve(request)
		done <- v
	}()
	<-running
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := serve(request.WithContext(left)); v != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a request whose client left got %v, %v", v, err)
	}
	close(end)
	if v := <-done; v != "done" || calls != 1 {
		t.Errorf("answer %v after %d calls", v, calls)
	}
}
