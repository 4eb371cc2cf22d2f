package sandbox

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Paths of the three operations.
//
// Interface: Endpoints.
const (
	pathCreateV1 = "/api/v1/routers/create"
	pathCreateV2 = "/api/v2/trackings/create"
	pathDetail   = "/api/v1/routers/detail"
)

// Server is the sandbox. It is safe for concurrent use.
type Server struct {
	config Config
	reject *regexp.Regexp
	state  *state
	faults *faults
	mux    *http.ServeMux
	hooks  *emitter // nil without a webhook URL

	done  <-chan struct{} // closed by Close
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

// New returns a sandbox, or a [*ConfigError].
func New(c Config) (*Server, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	reject, err := regexp.Compile(c.Reject)
	if err != nil {
		return nil, &ConfigError{"reject", err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		config: c, reject: reject, state: &state{},
		faults: &faults{seed: c.Seed, chance: map[string]float64{}, asked: map[string]uint64{}},
		mux:    http.NewServeMux(), done: ctx.Done(), stop: cancel,
	}
	maps.Copy(s.faults.chance, c.Faults)
	s.faults.random = rand.New(rand.NewPCG(c.Seed, 0xfa017)) //nolint:gosec // not a secret
	s.state.reset()
	s.mux.HandleFunc(pathCreateV1, func(w http.ResponseWriter, r *http.Request) { s.create(w, r, opCreateV1) })
	s.mux.HandleFunc(pathCreateV2, func(w http.ResponseWriter, r *http.Request) { s.create(w, r, opCreateV2) })
	s.mux.HandleFunc(pathDetail, s.detail)
	s.addControls()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "no such path") })
	if c.WebhookURL != "" {
		s.hooks = newEmitter(s)
		s.tasks.Go(func() { s.hooks.run(ctx) })
	}
	return s, nil
}

// ServeHTTP answers one request, unless another site's page made a browser send it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fromPage(r) {
		refuse(w, http.StatusForbidden, "this request comes from a page of another site")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// fromPage reports whether another site's page made the request, judging by its origin or the requested host.
func fromPage(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return true
	}
	at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return at != nil && at.IP.IsLoopback() && !loopback((&url.URL{Host: r.Host}).Hostname())
}

// Close stops the sandbox's background work, and waits for it.
func (s *Server) Close() error {
	s.stop()
	s.tasks.Wait()
	return nil
}

type operation string

const (
	opCreateV1 operation = "createV1"
	opCreateV2 operation = "createV2"
	opDetail   operation = "detail"
)

// admit does the common checks of all operations, and reports false if it answered the request.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, op operation, method string) bool {
	s.state.mu.Lock()
	s.state.requests[op]++
	s.state.mu.Unlock()
	if !s.sleep(r, s.config.Latency) {
		return false
	}
	key, only := r.Header.Get("Authorization"), s.config.Key
	switch {
	case r.Method != method:
		w.Header().Set("Allow", method)
		refuse(w, http.StatusMethodNotAllowed, "use "+method)
	case key == "", only != "" && subtle.ConstantTimeCompare([]byte(key), []byte(only)) != 1:
		refuse(w, http.StatusUnauthorized, "invalid API key")
	default:
		return true
	}
	return false
}

// sleep waits, and reports false if the client or the server has closed.
func (s *Server) sleep(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have closed
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"message": message})
}

type faults struct {
	seed uint64

	mu     sync.Mutex
	random *rand.Rand
	chance map[string]float64
	once   []oneShot
	asked  map[string]uint64 // how often, by query, while queries may meet FaultAbsent
}

type oneShot struct {
	name      string
	operation operation // empty for any
	left      int
}

// next returns the fault for a request, or "". query identifies the query.
func (f *faults) next(op operation, query string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.once {
		if o := &f.once[i]; o.left > 0 && (o.operation == "" || o.operation == op) && faultApplies(o.name, op) {
			o.left--
			return o.name
		}
	}
	for _, name := range Faults() { // in one order, so that a seed means one sequence
		p := f.chance[name]
		if p > 0 && faultApplies(name, op) &&
			(name == FaultAbsent && f.flaps(query, p) || name != FaultAbsent && f.random.Float64() < p) {
			return name
		}
	}
	return ""
}

// flaps decides by the seed and how often it was asked whether a query is absent: the order of queries has no effect.
func (f *faults) flaps(query string, p float64) bool {
	f.asked[query]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(query))                                                // never fails
	return rand.New(rand.NewPCG(f.seed^h.Sum64(), f.asked[query])).Float64() < p //nolint:gosec // not a secret
}

// injectFault answers a request with a fault if one is due. store stores the items; good is the usual answer.
func (s *Server) injectFault(w http.ResponseWriter, r *http.Request, op operation, store func(), good any) bool {
	fault := s.faults.next(op, r.URL.RawQuery)
	switch fault {
	case FaultError502, FaultCutAfter, FaultTruncate, FaultStall, FaultRefused, FaultThrottled:
		store()
	}
	switch fault {
	case FaultError500:
		refuse(w, http.StatusInternalServerError, "internal error")
	case FaultError502:
		refuse(w, http.StatusBadGateway, "bad gateway")
	case FaultCutBefore, FaultCutAfter:
		cutConnection(w, "")
	case FaultTruncate:
		body, _ := json.Marshal(good) //nolint:errchkjson // our own value
		cutConnection(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			2*len(body)+20, body))
	case FaultStall:
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		cutConnection(w, "")
	case FaultRedirect:
		w.Header().Set("Location", "http://"+r.Host+"/elsewhere"+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
	case FaultHTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title><p>Please sign in")
	case FaultEnvelope:
		answer(w, http.StatusOK, map[string]any{"code": 401, "message": "unauthorized"})
	case FaultNotFound:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<!doctype html><title>404 Not Found</title>")
	case FaultFalseOK:
		answer(w, http.StatusOK, good)
	case FaultAbsent:
		status, body := s.absent()
		answer(w, status, body)
	case FaultRefused:
		refuse(w, http.StatusBadRequest, "bad request")
	case FaultThrottled:
		refuse(w, http.StatusTooManyRequests, "too many requests")
	case FaultLate:
		s.storeLater(store)
		cutConnection(w, "")
	default:
		return false
	}
	return true
}

// storeLater stores after a delay, or at Close at the latest.
func (s *Server) storeLater(store func()) {
	s.tasks.Go(func() {
		select {
		case <-time.After(lateDelay):
		case <-s.done:
		}
		store()
	})
}

func cutConnection(w http.ResponseWriter, raw string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) //nolint:forbidigo // the documented way to end a connection
	}
	_, _ = io.WriteString(conn, raw)
	_ = conn.Close()
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// parcel is one created tracking. Its journey is computed on demand, from the seed and the number.
type parcel struct {
	item    tracking.Item
	created int       // how often it was created
	at      time.Time // sandbox time of its creation
	real    time.Time // wall-clock time of its creation
	instant bool      // created by v1: never Processing
	sent    int       // how many steps of its journey were sent as events
	due     time.Time // sandbox time of the next step to send; zero if not computed yet
}

// state is the sandbox's memory.
type state struct {
	mu       sync.Mutex
	byKey    map[tracking.Key]int
	byRefer  map[string][]int
	byNum    map[string][]int
	parcels  []parcel
	requests map[operation]int64
	made     int64
	offset   time.Duration // how far sandbox time is ahead of the clock
}

func (s *state) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey, s.byRefer, s.byNum = map[tracking.Key]int{}, map[string][]int{}, map[string][]int{}
	s.parcels, s.requests, s.made, s.offset = nil, map[operation]int64{}, 0, 0
}

// now returns sandbox time. mu must be held.
func (s *state) now() time.Time { return time.Now().Add(s.offset).UTC() }

// store creates the items. For existing ones it increases the count.
func (s *state) store(items []tracking.Item, op operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, it := range items {
		i, known := s.byKey[it.Key()]
		if !known {
			i = len(s.parcels)
			s.parcels = append(s.parcels, parcel{item: it, at: now, real: time.Now(), instant: op == opCreateV1})
			s.byKey[it.Key()] = i
			s.byRefer[it.ReferID] = append(s.byRefer[it.ReferID], i)
			s.byNum[it.Number] = append(s.byNum[it.Number], i)
		}
		s.parcels[i].created++
		s.made++
	}
}

// find returns the parcels with a referId, or with a number; the first of all if both are empty.
func (s *state) find(refer, number string) (found []parcel, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.byRefer[refer]
	if refer == "" {
		list = s.byNum[number]
	}
	if refer == "" && number == "" && len(s.parcels) > 0 {
		list = []int{0}
	}
	for _, i := range list {
		found = append(found, s.parcels[i])
	}
	return found, s.now()
}
