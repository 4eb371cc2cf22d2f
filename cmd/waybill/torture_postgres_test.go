//go:build unix

package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

// badDay does to a PostgreSQL server, and to the network before it, what a bad
// day does: it ends sessions, restarts the server as after a power cut, and
// cuts the network.
type badDay struct {
	server *pgtest.Server
	proxy  *pgtest.Proxy
	random *rand.Rand
	cut    func(*rand.Rand) time.Duration // how long the network is away

	quiet sync.Mutex // held while something is wrong, and by who wants it not to be

	mu   sync.Mutex
	left []string       // events that are to come, in order
	had  map[string]int // events that came
}

// The events of a bad day.
const (
	termination = "termination" // of one to three sessions
	restart     = "restart"
	networkCut  = "network cut"
)

func newBadDay(t *testing.T, terminations, restarts, cuts int, cut func(*rand.Rand) time.Duration) *badDay {
	t.Helper()
	server, ok := pgtest.Start(t)
	if !ok {
		return nil
	}
	random := dice(t)
	d := &badDay{server: server, random: random, cut: cut, had: map[string]int{}}
	d.left = slices.Concat(slices.Repeat([]string{termination}, terminations), slices.Repeat([]string{restart}, restarts), slices.Repeat([]string{networkCut}, cuts))
	random.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	d.proxy = server.NewProxy(t)
	return d
}

// begin lets events happen, up to so long apart, until the context ends. The
// function that it returns waits for the last one.
func (d *badDay) begin(ctx context.Context, apart time.Duration) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		for d.more() {
			select {
			case <-time.After(time.Duration(d.random.Int64N(int64(apart)))):
			case <-ctx.Done():
				done <- nil
				return
			}
			if err := d.happen(ctx); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() error { return <-done }
}

// more reports whether there is an event to come.
func (d *badDay) more() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.left) > 0
}

// happen lets the next event happen, and end.
func (d *badDay) happen(ctx context.Context) error {
	d.quiet.Lock()
	defer d.quiet.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	event, n := d.left[0], 1
	switch event {
	case termination:
		var err error
		if n, err = d.server.Terminate(ctx, 1+d.random.IntN(3)); err != nil {
			return err
		}
		if n == 0 {
			return nil // nobody is connected: it is still to come
		}
	case restart:
		if err := d.server.Restart(ctx, "immediate"); err != nil {
			return err
		}
	case networkCut:
		d.cutNetwork()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = d.left[1:]
	d.had[event] += n
	return nil
}

// cutNetwork lets the network be away: refusing, or silent, and then with what
// was silent lost or late.
func (d *badDay) cutNetwork() {
	away := d.cut(d.random)
	switch d.random.IntN(3) {
	case 0:
		d.proxy.Refuse()
		<-time.After(away)
	case 1:
		d.proxy.Stall()
		<-time.After(away)
		d.proxy.Cut()
	default:
		d.proxy.Stall()
		<-time.After(away)
	}
	d.proxy.Heal()
}

// onServer lets the world keep its store in a schema, which it reaches through the
// network that the bad day cuts. The URL is that of the schema without it.
func (w *world) onServer(d *badDay, schema string) *world {
	w.tb.Helper()
	through, err := d.proxy.URL(schema)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.env = append(w.env, "WAYBILL_STORE="+through)
	w.storeFails = true
	return w
}

// Two machines work on one input, with a store on one PostgreSQL server. They
// are killed, the server is restarted, its sessions end, the network before it
// is cut, and the service has its own bad day. No row is lost, none created twice.
func TestTorturePostgresCreate(t *testing.T) {
	t.Parallel()
	kills := either(6, 200)
	d := newBadDay(t, either(3, 50), either(1, 10), either(1, 10), func(r *rand.Rand) time.Duration {
		return either(2*time.Second, 5*time.Second+time.Duration(r.Int64N(int64(55*time.Second))))
	})
	if d == nil {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := d.begin(ctx, either(time.Second, 8*time.Second))
	met, rounds := 0, 0
	for ; met < kills || d.more(); rounds++ {
		if rounds > 2*kills {
			t.Fatalf("%d kills met a living process in %d rounds, and %v are still to come: the test proves too little", met, rounds, d.left)
		}
		t.Run(fmt.Sprint(rounds), func(t *testing.T) { met += serverRound(t, d, either(4, 25)) })
		if t.Failed() {
			break
		}
	}
	cancel()
	if err := wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d kills in %d rounds; %v", met, rounds, d.had)
}

// serverRound kills what works on one input on two machines, up to so many times,
// and then lets it come to its end. It returns how many processes were met alive.
func serverRound(t *testing.T, d *badDay, kills int) (met int) {
	random := dice(t)
	n, longest := either(1000, 50_000), either(time.Second, 6*time.Second)
	first := newWorld(t, "--processing", "0s", "--seed", fmt.Sprint(random.Uint32()), "--reject", "^94001.*0250.$")
	schema := d.server.NewURL(t)
	machines := []*world{first.onServer(d, schema), newHome(t).at(first.url).onServer(d, schema)}
	direct := []string{"--store", schema}
	d.quiet.Lock()
	rows := append(pairs(n, parcels), first.control(direct...))
	d.quiet.Unlock()
	bad := 0
	for i := 250; i < n; i += 10_000 {
		bad++
	}
	args := make([][]string, len(machines))
	for i, w := range machines {
		args[i] = []string{
			"create", orders(t, w.home, n, parcels), "-o", "json", "--settle", "0s",
			"--request-timeout", either("200ms", "1s"), "--batch-size", either("50", "1000"), "--concurrency", "8",
		}
	}
	first.chance(0.05, troubles()...)
	for tries := 0; met < kills && tries < 4*kills; tries++ {
		delays, hits := make([]time.Duration, len(machines)), make([]bool, len(machines))
		for i := range delays {
			u := random.Float64()
			delays[i] = time.Duration(u * u * float64(longest))
		}
		if err := together(len(machines), func(i int) (err error) {
			hits[i], err = machines[i].killed(delays[i], args[i]...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits {
			if hit {
				met++
			}
		}
		d.quiet.Lock()
		b, done := first.audit(rows, direct...), false
		if !slices.Contains(hits, true) {
			done = first.done(len(rows), direct...)
		}
		d.quiet.Unlock()
		if t.Failed() {
			t.Fatalf("after %d kills, the last after %v: %+v", met, delays, b)
		}
		if done {
			break
		}
	}
	d.quiet.Lock()
	defer d.quiet.Unlock()
	if err := together(len(machines), func(i int) error { _, err := machines[i].killed(time.Hour, args[i]...); return err }); err != nil {
		t.Fatal(err)
	}
	first.finish(20, args[0]...)
	first.whole(rows, bad, direct...)
	return met
}
