package listen_test

import (
	"context"
	"testing"

	"github.com/waybill-cli/waybill/internal/listen"
)

func TestAnswerWithTheStatusOfAnother(t *testing.T) {
	store := &memory{}
	r := receiver(t, listen.Options{Store: store})
	said := 0
	r.AnswerWith(func(_ context.Context, delivery int64) int {
		if stored, _ := store.kept(); int64(len(stored)) != delivery {
			t.Errorf("asked about delivery %d of %d", delivery, len(stored))
		}
		return said
	})
	for status, want := range map[int]struct {
		status int
		body   string
	}{
		200: {200, "stored\n"}, 204: {204, ""}, 302: {302, "stored\n"}, 304: {304, ""}, 418: {418, "stored\n"}, 504: {504, "stored\n"},
		0: {502, "stored\n"}, 101: {502, "stored\n"}, 999: {502, "stored\n"},
	} {
		said = status
		w := send(t, r.Handler(), delivered, "")
		if w.Code != want.status || w.Body.String() != want.body {
			t.Errorf("told %d, answered %d %q; want %d %q", status, w.Code, w.Body, want.status, want.body)
		}
	}
}
