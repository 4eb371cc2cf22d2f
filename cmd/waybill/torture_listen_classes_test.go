package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Package webhook tortures what verifies, in every scheme. Here it is the whole
// listener, under the scheme timestamped-kv and two secrets.

// shot is a delivery of one event that a class makes up.
type shot struct {
	random *rand.Rand
	body   string
	key    string
	stamp  string // seconds since 1970
}

func (s *shot) mac() []byte {
	m := hmac.New(sha256.New, []byte(s.key))
	m.Write([]byte(s.stamp + "." + s.body))
	return m.Sum(nil)
}

func (s *shot) hex() string { return hex.EncodeToString(s.mac()) }

// with is the request with that as its signature.
func (s *shot) with(signature string) []byte { return request(s.body, "X-Signature", signature) }

func (s *shot) value(mac string) string { return "t=" + s.stamp + ",v1=" + mac }

func (s *shot) good() []byte { return s.with(s.value(s.hex())) }

// at sets the time, so much from now.
func (s *shot) at(d time.Duration) { s.stamp = fmt.Sprint(time.Now().Add(d).Unix()) }

// kind is a class of deliveries: how they are made, and how they must be
// answered. What is answered with 200 is kept; all else is not.
type kind struct {
	name   string
	make   func(*shot) []byte
	status int
	mark   inbox.Mark // of what is kept
}

// changed is the good request after a change of what is signed.
func changed(change func(*shot)) func(*shot) []byte {
	return func(s *shot) []byte { change(s); return s.good() }
}

// spoilt is a request whose body or time was changed after it was signed.
func spoilt(change func(*shot)) func(*shot) []byte {
	return func(s *shot) []byte {
		mac := s.hex()
		change(s)
		return s.with(s.value(mac))
	}
}

// valued is the good request with another value of the signature.
func valued(value func(*shot) string) func(*shot) []byte {
	return func(s *shot) []byte { return s.with(value(s)) }
}

// altered replaces a part of a request that is good otherwise.
func altered(from, to string) func(*shot) []byte {
	return func(s *shot) []byte { return []byte(strings.Replace(string(s.good()), from, to, 1)) }
}

func kinds() []kind {
	const yes, no = 200, 401
	return slices.Concat([]kind{
		{"good", (*shot).good, yes, ""},
		{"older secret", changed(func(s *shot) { s.key = "older " + hookKey }), yes, ""},
		{"almost stale", changed(func(s *shot) { s.at(-4 * time.Minute) }), yes, ""},
		{"almost future", changed(func(s *shot) { s.at(4 * time.Minute) }), yes, ""},
		{"in capitals", valued(func(s *shot) string { return s.value(strings.ToUpper(s.hex())) }), yes, ""},
		{"beside another kind", valued(func(s *shot) string { return s.value(s.hex()) + ",v0=zz" }), yes, ""},
		{"beside a wrong one", valued(func(s *shot) string { return s.value(strings.Repeat("0", 64)) + ",v1=" + s.hex() }), yes, ""},
		{"header in small letters", altered("X-Signature", "x-signature"), yes, ""},
		{"another method", altered("POST", "PUT"), yes, ""},
		{"in chunks", func(s *shot) []byte {
			head, _, _ := strings.Cut(string(s.good()), "Content-Length")
			return fmt.Appendf(nil, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, 7, s.body[:7], len(s.body)-7, s.body[7:])
		}, yes, ""},
		{"signed, not JSON", changed(func(s *shot) { s.body = s.body[:len(s.body)-1] }), yes, inbox.Anomaly},
		{"signed, no text", changed(func(s *shot) { s.body = "\xff\x00" + s.body }), yes, inbox.Anomaly},
	}, []kind{
		{"wrong secret", changed(func(s *shot) { s.key += "x" }), no, ""},
		{"secret with a line break", changed(func(s *shot) { s.key += "\n" }), no, ""},
		{"empty secret", changed(func(s *shot) { s.key = "" }), no, ""},
		{"plain hash", valued(func(s *shot) string { sum := sha256.Sum256([]byte(s.body)); return s.value(hex.EncodeToString(sum[:])) }), no, ""},
		{"flipped bit", valued(func(s *shot) string {
			m := s.mac()
			m[s.random.IntN(32)] ^= 1 << s.random.IntN(8)
			return s.value(hex.EncodeToString(m))
		}), no, ""},
		{"truncated MAC", valued(func(s *shot) string { return s.value(s.hex()[:2*(1+s.random.IntN(31))]) }), no, ""},
		{"half a byte less", valued(func(s *shot) string { return s.value(s.hex()[:63]) }), no, ""},
		{"MAC too long", valued(func(s *shot) string { return s.value(s.hex() + "00") }), no, ""},
		{"empty MAC", valued(func(s *shot) string { return s.value("") }), no, ""},
		{"base64", valued(func(s *shot) string { return s.value(base64.StdEncoding.EncodeToString(s.mac())) }), no, ""},
		{"no signature", func(s *shot) []byte { return request(s.body) }, no, ""},
		{"empty signature", valued(func(*shot) string { return "" }), no, ""},
		{"signature without a time", valued(func(s *shot) string { return "v1=" + s.hex() }), no, ""},
		{"header renamed", altered("X-Signature", "X-Signature2"), no, ""},
		{"repeated header", func(s *shot) []byte {
			v := s.value(s.hex())
			return request(s.body, "X-Signature", v, "X-Signature", v)
		}, no, ""},
		{"repeated header, one wrong", func(s *shot) []byte { return request(s.body, "X-Signature", "x", "x-signature", s.value(s.hex())) }, no, ""},
		{"empty body", changed(func(s *shot) { s.body = "" }), no, ""},
		{"altered byte", spoilt(func(s *shot) {
			b := []byte(s.body)
			b[s.random.IntN(len(b))] ^= 1
			s.body = string(b)
		}), no, ""},
		{"re-serialised", spoilt(func(s *shot) { s.body = strings.ReplaceAll(s.body, `":`, `": `) }), no, ""},
		{"line break added", spoilt(func(s *shot) { s.body += "\n" }), no, ""},
		{"cut body", spoilt(func(s *shot) { s.body = s.body[:len(s.body)-1] }), no, ""},
		{"stale", changed(func(s *shot) { s.at(-6*time.Minute - time.Duration(s.random.IntN(1e6))*time.Second) }), no, ""},
		{"future", changed(func(s *shot) { s.at(6*time.Minute + time.Duration(s.random.IntN(1e6))*time.Second) }), no, ""},
		{"time altered", spoilt(func(s *shot) { s.at(7 * time.Second) }), no, ""},
		{"t= doubled", valued(func(s *shot) string { return "t=" + s.stamp + "," + s.value(s.hex()) }), no, ""},
		{"time that is no number", changed(func(s *shot) { s.stamp = []string{"+" + s.stamp, s.stamp + ".0", "1e9", "-1", ""}[s.random.IntN(5)] }), no, ""},
	}, []kind{
		{"compressed", altered("Content-Type: application/json", "Content-Encoding: gzip"), 415, ""},
		{"announced too large", altered("Content-Length: ", "Content-Length: 9999999"), 413, ""},
		{"header too large", func(s *shot) []byte {
			return request(s.body, "X-Signature", s.value(s.hex()), "X-Pad", strings.Repeat("x", 33<<10))
		}, 431, ""},
	})
}

// Deliveries of every kind, at once, to a listener in a process of its own:
// none is accepted or refused that should not be, the store holds exactly what
// was accepted, and memory stays within bounds.
func TestTortureListenClasses(t *testing.T) {
	t.Parallel()
	n, senders := either(4000, 1_000_000), 16
	w, all := newHome(t), kinds()
	l := w.listens(filepath.Join(w.home, "inbox.db"), []string{
		"WAYBILL_WEBHOOK_SCHEME=timestamped-kv", "WAYBILL_WEBHOOK_SECRETS=env:NEW,env:OLD", "NEW=" + hookKey, "OLD=older " + hookKey,
	}, "-q")
	shots, kept := make([]atomic.Int64, len(all)), make([]atomic.Int64, senders)
	var sending sync.WaitGroup
	seed := dice(t).Uint64()
	for i := range senders {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		sending.Go(func() {
			if err := shoot(l.addr, random, all, i, n/senders, shots, &kept[i]); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	mb := l.stop()
	if mb > 150 {
		t.Errorf("the listener had %.0f MB; want 150 at most", mb)
	}
	for i, k := range all {
		if shots[i].Load() < 20 {
			t.Errorf("%d deliveries of the kind %q; want 20 and more", shots[i].Load(), k.name)
		}
	}
	var want int64
	for i := range kept {
		want += kept[i].Load()
	}
	tally(t, l.store, want, all, shots)
	t.Logf("%d deliveries of %d kinds, %d of them kept, %.0f MB", n/senders*senders, len(all), want, mb)
}

// shoot sends n deliveries of random kinds. The first wrong answer ends it.
func shoot(addr string, random *rand.Rand, all []kind, series, n int, shots []atomic.Int64, kept *atomic.Int64) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for i := range n {
		which := random.IntN(len(all))
		k := all[which]
		s := &shot{random: random, key: hookKey}
		s.at(0)
		s.body = fmt.Sprintf(`[{"eventId":%q,"data":{"n":%d,"text":%q}}]`, eventID(series, i), which, strings.Repeat("ä/\\\"", random.IntN(20)))
		request := k.make(s)
		status, err := c.do(request)
		if status != k.status || err != nil {
			return fmt.Errorf("%s: status %d, %w; want %d: %q", k.name, status, err, k.status, request)
		}
		shots[which].Add(1)
		if status == 200 {
			kept.Add(1)
		}
		if want := status != 200 && status != 401 || k.name == "in chunks"; c.closing != want {
			return fmt.Errorf("%s: the answer closes the connection: %v; want %v", k.name, c.closing, want)
		}
		if c.closing {
			_ = c.Close()
			if c, err = dial(addr); err != nil {
				return err
			}
		}
	}
	return nil
}

// tally checks that a store holds so many deliveries, all of them verified, and
// none but of kinds that are accepted, each marked as it must be.
func tally(t *testing.T, path string, want int64, all []kind, shots []atomic.Int64) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, marked, odd int64
	for e, err := range db.Events(t.Context(), inbox.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
		if e.Verified != inbox.Yes || e.Mark != inbox.Current && e.Mark != inbox.Anomaly {
			t.Fatalf("%+v is kept", e)
		}
		if e.Mark == inbox.Anomaly {
			marked++
		}
	}
	var accepted int64
	for i, k := range all {
		if k.status == 200 {
			accepted += shots[i].Load()
		}
		if k.mark == inbox.Anomaly {
			odd += shots[i].Load()
		}
	}
	if rows != want || rows != accepted || marked != odd {
		t.Errorf("%d rows, %d of them anomalies; want %d and %d", rows, marked, want, odd)
	}
}

// Bodies that are signed and cannot be read are kept to the byte, answered
// with 200 and marked.
func TestTortureListenMalformed(t *testing.T) {
	t.Parallel()
	bodies := []string{
		"{", "[", "]", "}", "[}", "nul", "null", "true", "7", `"x"`, "[]", "[[]]", "[null]", "[7]", `["x"]`, "[{}", "[{},]", "[,{}]", "{}{}", "[{}] x", "[{}]\x00",
		"\x00", "\xff\xfe[\x00]\x00", "\xef\xbb\xbf[{}]", "<html></html>", "a=b&c=d", " ", "\r\n", `[{"eventId":}]`, `[{"eventId":"a" "event":"b"}]`, `[{eventId:"a"}]`, `[{'eventId':'a'}]`,
		`[{"eventId":"a` + "\n" + `"}]`, `[{"eventId":"\x"}]`, `[{"eventId":01}]`, `[{"eventId":NaN}]`, `[{"eventId":1e}]`, `[{"eventId":"\u12"}]`, `[{"eventId":{"a":[]}}]`, `[{"eventId":""}]`,
		`[{"eventId":"\ud800"}]`, `[{"eventId":"` + "\xff" + `"}]`, `[{"eventId":"a","eventId":"b"}]`, `[{"data":[]}]`, `[{"data":7}]`, `[{"eventId":"ok"},7,{"eventId":"ok2"}]`, `{"eventId":"single","data":null}x`,
		strings.Repeat("[", 100_000), strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `[{"data":` + strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300) + "}]",
		"[" + strings.TrimSuffix(strings.Repeat("{},", 50_000), ",") + "]", `[{"eventId":"` + strings.Repeat("x", 1<<20) + "}]", "/* no */ [{}]", `[{"n":` + strings.Repeat("9", 100_000) + "}",
	}
	w := newHome(t)
	l := w.listens(filepath.Join(w.home, "inbox.db"), nil, "-q")
	c, err := dial(l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, body := range bodies {
		if status, err := c.do(signed(body)); status != 200 || err != nil {
			t.Fatalf("%.80q: status %d, %v; want 200", body, status, err)
		}
	}
	l.stop()
	if said := l.said(); strings.Contains(said, "panic") || strings.Contains(said, "goroutine") {
		t.Errorf("said %s", said)
	}
	db, err := sqlite.Open(t.Context(), l.store, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	odd := map[int64]string{}
	for e, err := range db.Events(t.Context(), inbox.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Anomaly != "" {
			odd[e.Delivery] += e.Anomaly + "; "
		}
	}
	for i, body := range bodies {
		seq := int64(i + 1)
		d, err := db.Delivery(t.Context(), seq)
		if err != nil || string(d.Body) != body || d.Verified != inbox.Yes || !d.BodyAuthenticated {
			t.Errorf("%.80q: %v: kept as %.80q, verified %s", body, err, d.Body, d.Verified)
		}
		if batch := webhook.Decode([]byte(body)); odd[seq] == "" || batch.Anomaly != d.Anomaly {
			t.Errorf("%.80q: marked %q, its events %q", body, d.Anomaly, odd[seq])
		}
	}
}
