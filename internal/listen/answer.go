package listen

import (
	"context"
	"net/http"
	"time"
)

// answerTimeout is how long an answer may be waited for, once a delivery is stored.
const answerTimeout = 25 * time.Second

// AnswerWith lets fn decide with which status a delivery is answered that was
// stored just now. Its context ends when nobody waits for the answer any more.
// Without it, the answer is 200 at once. It must be called before Serve.
func (r *Receiver) AnswerWith(fn func(ctx context.Context, delivery int64) int) { r.answerWith = fn }

func (r *Receiver) answerStored(w http.ResponseWriter, req *http.Request, delivery int64) {
	if r.answerWith == nil {
		answer(w, http.StatusOK, "stored")
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), answerTimeout)
	defer cancel()
	status := r.answerWith(ctx, delivery)
	switch {
	case status < 200 || status > 599:
		answer(w, http.StatusBadGateway, "stored")
	case status == http.StatusNoContent || status == http.StatusResetContent || status == http.StatusNotModified:
		w.WriteHeader(status) // such answers have no body
	default:
		answer(w, status, "stored")
	}
}
