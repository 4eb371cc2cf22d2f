package listen

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Handler returns the handler that receives deliveries, under any path:
//
//	200  POST, and any other method with a body: the delivery is on disk; GET and HEAD:
//	     nothing is stored, but a delivery could be
//	400  the body ended too early; nothing is stored
//	401  enforcing, and the delivery did not verify; kept as evidence only
//	405  any other method without a body
//	408  the body took too long
//	413  the body is greater than MaxBody; the connection is closed
//	415  the body is compressed
//	431  the header is greater than 32 KiB
//	503  it could not be stored, or a delivery could not be: full, locked, read-only,
//	     unreachable, a failing disk, too slow, too many at once, more unverified ones
//	     than may be kept, or stopping
//
// A connection is closed after a request whose end another server may see elsewhere, see [hasAmbiguousEnd].
//
// Answers are constant texts. A body that can't be read as events is stored and answered with 200: the sender has done
// its part, and would only send the same again.
//
// Assumed: which answers the service expects, and which method it uses, is not shown.
func (r *Receiver) Handler() http.Handler { return http.HandlerFunc(r.serve) }

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	if !r.beginRequest() {
		answerUnavailable(w)
		return
	}
	defer r.requests.Done()
	if hasAmbiguousEnd(req) {
		w.Header().Set("Connection", "close")
	}
	encodes := func(coding string) bool { return coding != "" && !strings.EqualFold(coding, "identity") }
	switch {
	case headerSize(req) > maxHeader:
		r.reject(w, req, http.StatusRequestHeaderFieldsTooLarge, "header too large")
	case req.Method == http.MethodGet || req.Method == http.MethodHead:
		if r.health.check(req.Context(), r.o.Probe) {
			answer(w, http.StatusOK, "ready for deliveries")
		} else {
			answer(w, http.StatusServiceUnavailable, "not ready: nothing can be stored now")
		}
	case req.Method != http.MethodPost && req.ContentLength == 0:
		w.Header().Set("Allow", "GET, HEAD, POST")
		r.reject(w, req, http.StatusMethodNotAllowed, "method not allowed")
	case slices.ContainsFunc(req.Header.Values("Content-Encoding"), encodes):
		r.reject(w, req, http.StatusUnsupportedMediaType, "compressed bodies are not accepted")
	case req.ContentLength > r.o.MaxBody:
		r.reject(w, req, http.StatusRequestEntityTooLarge, "body too large")
	default:
		r.receive(w, req)
	}
}

// read reads the whole body, or answers and returns false.
func (r *Receiver) read(w http.ResponseWriter, req *http.Request, b *body) bool {
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout)) // without a connection there is nothing to wait for
	err := b.readAll(http.MaxBytesReader(w, req.Body, r.o.MaxBody), req.ContentLength)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		_ = conn.SetReadDeadline(time.Time{}) // storing has a limit of its own
		return true
	case errors.As(err, &tooLarge):
		r.reject(w, req, http.StatusRequestEntityTooLarge, "body too large")
	case errors.Is(err, errNoMemory):
		w.Header().Set("Connection", "close")
		answerUnavailable(w)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.reject(w, req, http.StatusRequestTimeout, "body too slow")
	default:
		r.reject(w, req, http.StatusBadRequest, "body incomplete")
	}
	return false
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) {
	b := body{budget: &r.budget}
	defer b.release()
	if !r.read(w, req, &b) {
		return
	}
	markReceived(req.Context())
	select {
	case r.queue <- struct{}{}:
		defer func() { <-r.queue }()
		r.accept(w, req, &b)
	default:
		answerUnavailable(w)
	}
}

func (r *Receiver) accept(w http.ResponseWriter, req *http.Request, b *body) {
	how := r.verification.Load()
	d := newDelivery(req, b.bytes)
	d.Verified = how.Unverifiable
	if how.Verify != nil {
		v := how.Verify(d.Request(), d.ReceivedAt)
		d = d.WithVerdict(how.Scheme, v)
		if skew, ok := r.skew.Observe(v); ok {
			r.o.Report.reportSkew(skew)
		}
	}
	if how.Enforce && d.Verified != inbox.Yes {
		r.refuse(w, req, d)
		return
	}
	// A sender that hangs up must not undo the commit that others wait for.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), storeTimeout)
	defer cancel()
	switch err := r.store(ctx, d, b); {
	case errors.Is(err, errUnverifiedLimit), errors.Is(err, errNoMemory):
		answerUnavailable(w)
	case err != nil:
		r.storeAlert.update(err)
		answerUnavailable(w)
	default:
		r.stored.Add(1)
		r.storeAlert.update(nil)
		r.Wake()
		if r.onStored != nil {
			r.onStored()
		}
		text := "stored"
		if r.o.Withholds && !d.Verified.Counts() {
			text = "stored, not forwarded"
		}
		answer(w, http.StatusOK, text)
	}
}

func (r *Receiver) store(ctx context.Context, d inbox.Delivery, b *body) error {
	d, rows, err := r.decode(d, b)
	if err == nil && r.quota != nil && d.Verified != inbox.Yes {
		err = r.quota.admit(ctx, storedSize(d, len(rows)))
	}
	if err == nil {
		_, err = r.o.Store.Put(ctx, d, rows)
	}
	return err
}

// decode reserves memory for the rows. Few bodies are decoded at once, since decoding takes memory outside the budget.
func (r *Receiver) decode(d inbox.Delivery, b *body) (inbox.Delivery, []inbox.Event, error) {
	r.decoders <- struct{}{}
	defer func() { <-r.decoders }()
	d, rows := inbox.Decode(d)
	return d, rows, b.reserve(int64(cap(b.bytes)) + int64(len(rows))*rowMemory)
}

// newDelivery returns the delivery of a request. Package net/http keeps the order of values within a header name, but
// not the order and case of names: they are sorted, Host first.
func newDelivery(req *http.Request, body []byte) inbox.Delivery {
	d := inbox.Delivery{
		ReceivedAt: time.Now().UTC(),
		Method:     req.Method,
		Path:       req.URL.EscapedPath(),
		RawQuery:   req.URL.RawQuery,
		RemoteAddr: req.RemoteAddr,
		Header:     make([]webhook.Field, 0, len(req.Header)+1),
		Body:       body,
	}
	if strings.HasPrefix(req.RequestURI, "/") {
		d.Path, d.RawQuery, _ = strings.Cut(req.RequestURI, "?") // as sent
	}
	d.Header = append(d.Header, webhook.Field{Name: "Host", Value: req.Host})
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		for _, value := range req.Header[name] {
			d.Header = append(d.Header, webhook.Field{Name: name, Value: value})
		}
	}
	return d
}

func (r *Receiver) refuse(w http.ResponseWriter, req *http.Request, d inbox.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), evidenceTimeout)
	defer cancel()
	slots := r.evidenceSlots[d.Reason.WellFormed()]
	select {
	case slots <- struct{}{}:
		var err error
		d.Seq, err = r.o.Store.PutRefused(ctx, d)
		r.evidenceAlert.update(err)
		<-slots
	case <-ctx.Done():
		r.evidenceAlert.update(errors.New("too many at once"))
	}
	d.Header, d.Body = nil, nil
	select {
	case r.refusals <- d:
	default:
		r.unreported.Add(1)
	}
	answer(w, http.StatusUnauthorized, "signature not accepted")
}

// answerUnavailable asks the sender to retry: any failure of the store may be over then.
func answerUnavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryAfter)
	answer(w, http.StatusServiceUnavailable, "not stored, try again later")
}

func (r *Receiver) reject(w http.ResponseWriter, req *http.Request, status int, text string) {
	w.Header().Set("Connection", "close")
	answer(w, status, text)
	r.rejectAlert.update(status, text, req.RemoteAddr)
}

// answer returns after its text was sent, so that a server that stops does not cut it.
func answer(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a sender that left has its delivery stored, or sends it again
	_ = http.NewResponseController(w).Flush()
}

// hasAmbiguousEnd reports whether a proxy before us may have seen another end of the request: what follows on its
// connection must not be taken for a request (request smuggling). Package net/http drops the Content-Length of a
// chunked request, and ignores a Transfer-Encoding of HTTP/1.0.
func hasAmbiguousEnd(req *http.Request) bool {
	return len(req.TransferEncoding) > 0 || !req.ProtoAtLeast(1, 1)
}

// headerSize returns the size of the header, without optional space around values.
func headerSize(req *http.Request) int {
	n := len(req.Method) + len(req.RequestURI) + len(req.Proto) + len("  \r\n") + len("Host: \r\n") + len(req.Host)
	for name, values := range req.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

const (
	uncountedMemory = 8 << 10  // bytes of each delivery that are not counted
	minMemory       = 24 << 20 // bytes of all deliveries beyond that, or of two maximal bodies if that is more
	rowMemory       = 1 << 10  // bytes of a row until it is stored
)

var errNoMemory = errors.New("too many deliveries at once")

// memBudget limits the memory of deliveries until they are stored: of their bodies and rows. Beyond it, the sender is
// asked to retry. The first 8 KiB of a delivery are not counted.
type memBudget struct {
	size int64 // bytes
	left atomic.Int64
}

type body struct {
	bytes    []byte
	budget   *memBudget
	reserved int64 // bytes taken from the budget
}

// readAll reads to the end. size is the length that the sender announced, -1 if none. The sender may announce much and
// send nothing, so at first a usual body is allocated.
func (b *body) readAll(from io.Reader, size int64) error {
	room := int(max(size, 0)) + 1 // one more, to find the end
	b.bytes = make([]byte, 0, min(room, uncountedMemory))
	for {
		if len(b.bytes) == cap(b.bytes) {
			grown := max(2*cap(b.bytes), 512)
			if cap(b.bytes) < room {
				grown = min(grown, room)
			}
			if err := b.reserve(int64(grown)); err != nil {
				return err
			}
			b.bytes = append(make([]byte, 0, grown), b.bytes...)
		}
		n, err := from.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reserve reserves n bytes in total. A delivery larger than the budget takes all of it, else it could never be stored.
func (b *body) reserve(n int64) error {
	more := min(max(0, n-uncountedMemory), b.budget.size) - b.reserved
	if more > 0 && b.budget.left.Add(-more) < 0 {
		b.budget.left.Add(more)
		return errNoMemory
	}
	b.reserved += max(0, more)
	return nil
}

// release returns the bytes to the budget. It may be called more than once.
func (b *body) release() {
	b.budget.left.Add(b.reserved)
	b.reserved = 0
}

// Limits of a probe, which anybody can cause.
const (
	probeRest    = 500 * time.Millisecond // its result holds for so long
	probeTimeout = 2 * time.Second
)

type health struct {
	mu     sync.Mutex
	probed time.Time
	ok     bool
}

// check probes, unless that was done just now. Without a probe, deliveries count as storable.
func (h *health) check(ctx context.Context, probe func(context.Context) error) bool {
	if probe == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.probed) >= probeRest {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		h.ok = probe(ctx) == nil
		h.probed = time.Now()
	}
	return h.ok
}
