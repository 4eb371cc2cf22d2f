package webhook_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// reference is a way of signing, made without the package that verifies it.
type reference struct {
	scheme  webhook.Scheme
	keyed   func(key, message string) []byte
	message func(key, stamp, id, body string) string
	encode  func([]byte) string
	at      string // header of the signature
	stampAt string // header of the timestamp; empty for none, sig for beside the signature
	covers  bool
}

func references(t testing.TB) []reference {
	b64, sum := base64.StdEncoding.EncodeToString, func(_, message string) []byte { s := sha256.Sum256([]byte(message)); return s[:] }
	only := func(_, _, _, body string) string { return body }
	dotted := func(_, stamp, _, body string) string { return stamp + "." + body }
	list := preset(t, "standard-webhooks")
	list.Key = webhook.Key{}
	return []reference{
		{preset(t, "hmac-body-hex"), mac, only, hex.EncodeToString, "X-Signature", "", true},
		{preset(t, "hmac-body-base64"), mac, only, b64, "X-Signature", "", true},
		{preset(t, "hmac-body-hex-prefixed"), mac, only, hex.EncodeToString, "X-Hub-Signature-256", "", true},
		{list, mac, func(_, stamp, id, body string) string { return id + "." + stamp + "." + body }, b64, "webhook-signature", "webhook-timestamp", true},
		{preset(t, "timestamped-kv"), mac, dotted, hex.EncodeToString, "X-Signature", "sig", true},
		{preset(t, "timestamped-kv-base64url"), mac, dotted, base64.RawURLEncoding.EncodeToString, "X-Signature", "sig", true},
		{preset(t, "versioned-timestamp-body"), mac, func(_, stamp, _, body string) string { return "v0:" + stamp + ":" + body }, hex.EncodeToString, "X-Signature", "X-Request-Timestamp", true},
		{preset(t, "digest-body-slash-key"), sum, func(key, _, _, body string) string { return body + "/" + key }, hex.EncodeToString, "sign", "", true},
		{preset(t, "hmac-timestamp-hex"), mac, func(_, stamp, _, _ string) string { return stamp }, hex.EncodeToString, "X-Signature", "X-Timestamp", false},
	}
}

// shot is one delivery that is made up, part by part, so that a class can
// spoil any part before or after it is signed.
type shot struct {
	*reference
	random          *rand.Rand
	key, id, stamp  string
	body            string
	signed          string   // encoded MAC, once it is made
	entries, header []string // of the signature's value; name and value by turns
	now             time.Time
}

func (s *shot) unit() time.Duration {
	if s.scheme.Timestamp.Unit == webhook.UnitMilliseconds {
		return time.Millisecond
	}
	return time.Second
}

func (s *shot) stampOf(at time.Time) string {
	return strconv.FormatInt(at.UnixNano()/int64(s.unit()), 10)
}

func (s *shot) sign() {
	s.signed = s.encode(s.keyed(s.key, s.message(s.key, s.stamp, s.id, s.body)))
}

func (s *shot) format() string { return s.scheme.WithDefaults().Signature.Format }
func (s *shot) many() bool     { return s.format() != webhook.FormatPlain }
func (s *shot) timed() bool    { return s.stampAt != "" }
func (s *shot) hexed() bool    { return s.scheme.WithDefaults().Signature.Encoding == webhook.EncodingHex }

// value returns the signature's value, around encoded MACs.
func (s *shot) value(macs ...string) string {
	sig := s.scheme.WithDefaults().Signature
	switch sig.Format {
	case webhook.FormatKV:
		all := []string{"t=" + s.stamp}
		if s.stamp == "" {
			all = nil
		}
		for _, m := range macs {
			all = append(all, "v1="+m)
		}
		return strings.Join(append(all, s.entries...), ",")
	case webhook.FormatList:
		var all []string
		for _, m := range macs {
			all = append(all, "v1,"+m)
		}
		return strings.Join(append(all, s.entries...), " ")
	}
	return sig.Prefix + strings.Join(macs, "")
}

// request returns the delivery with that signature; none for an empty list.
func (s *shot) request(values ...string) webhook.Request {
	h := append([]string{"Content-Type", "application/json", "X-Noise", strconv.Itoa(s.random.IntN(1000))}, s.header...)
	for _, v := range values {
		h = append(h, s.at, v)
	}
	if s.id != "" {
		h = append(h, "webhook-id", s.id)
	}
	if s.stampAt != "" && s.stampAt != "sig" && s.stamp != "" {
		h = append(h, s.stampAt, s.stamp)
	}
	return post(s.body, h...)
}

// class is a kind of delivery: whether it can be made in a scheme, how, and
// what must be said of it. An empty reason is that it verifies.
type class struct {
	name string
	fits func(*shot) bool
	make func(*shot) webhook.Request
	want webhook.Reason
}

func always(*shot) bool { return true }

func flip(s string, i int) string {
	b := []byte(s)
	b[i] ^= 1
	return string(b)
}

func classes() []class {
	plainly := func(change func(*shot)) func(*shot) webhook.Request {
		return func(s *shot) webhook.Request {
			change(s)
			s.sign()
			return s.request(s.value(s.signed))
		}
	}
	after := func(change func(*shot)) func(*shot) webhook.Request {
		return func(s *shot) webhook.Request {
			s.sign()
			change(s)
			return s.request(s.value(s.signed))
		}
	}
	covers := func(s *shot) bool { return s.covers }
	return []class{
		{"good", always, plainly(func(*shot) {}), ""},
		{"good, signed with the older secret", always, plainly(func(s *shot) { s.key = "older" + s.key }), ""},
		{"good, at the edge of its time", (*shot).timed, plainly(func(s *shot) { s.stamp = s.stampOf(s.now.Add(-5 * time.Minute)) }), ""},
		{"good, body like a template", always, plainly(func(s *shot) { s.body = "{secret}{timestamp}{body}" + s.body }), ""},
		{"good, bytes that are no text", always, plainly(func(s *shot) { s.body += "\x00\xff\r\n" }), ""},
		{"good, in capitals", (*shot).hexed, after(func(s *shot) { s.signed = strings.ToUpper(s.signed) }), ""},
		{"good, beside entries of other kinds", (*shot).many, after(func(s *shot) { s.entries = []string{map[string]string{"kv": "v0=zz", "list": "v1a,zz"}[s.format()]} }), ""},
		{"good, beside a wrong one", (*shot).many, func(s *shot) webhook.Request {
			s.sign()
			return s.request(s.value(s.encode(s.keyed("x", "y")), s.signed, "short"))
		}, ""},
		{"wrong secret", always, plainly(func(s *shot) { s.key += "x" }), webhook.ReasonSignatureMismatch},
		{"secret with a line break", always, plainly(func(s *shot) { s.key += "\n" }), webhook.ReasonSignatureMismatch},
		{"empty secret", always, plainly(func(s *shot) { s.key = "" }), webhook.ReasonSignatureMismatch},
		{"plain hash of the body", always, after(func(s *shot) { sum := sha256.Sum256([]byte(s.body)); s.signed = s.encode(sum[:]) }), webhook.ReasonSignatureMismatch},
		{"another delivery's signature", covers, after(func(s *shot) { s.signed = s.encode(s.keyed(s.key, s.message(s.key, s.stamp, s.id, s.body+"1"))) }), webhook.ReasonSignatureMismatch},
		{"a bit of the MAC flipped", always, func(s *shot) webhook.Request {
			m := s.keyed(s.key, s.message(s.key, s.stamp, s.id, s.body))
			m[s.random.IntN(len(m))] ^= 1 << s.random.IntN(8)
			return s.request(s.value(s.encode(m)))
		}, webhook.ReasonSignatureMismatch},
		{"MAC cut", always, func(s *shot) webhook.Request {
			m := s.keyed(s.key, s.message(s.key, s.stamp, s.id, s.body))
			return s.request(s.value(s.encode(m[:1+s.random.IntN(len(m)-1)])))
		}, webhook.ReasonSignatureMalformed},
		{"MAC too long", always, func(s *shot) webhook.Request {
			m := s.keyed(s.key, s.message(s.key, s.stamp, s.id, s.body))
			return s.request(s.value(s.encode(append(m, m[:1+s.random.IntN(32)]...))))
		}, webhook.ReasonSignatureMalformed},
		{"empty MAC", always, func(s *shot) webhook.Request { return s.request(s.value("")) }, webhook.ReasonSignatureMalformed},
		{"MAC with a line break", always, after(func(s *shot) { s.signed = s.signed[:4] + "\n" + s.signed[4:] }), webhook.ReasonSignatureMalformed},
		{"MAC in the other encoding", always, func(s *shot) webhook.Request {
			m := s.keyed(s.key, s.message(s.key, s.stamp, s.id, s.body))
			if s.hexed() {
				return s.request(s.value(base64.StdEncoding.EncodeToString(m)))
			}
			return s.request(s.value(hex.EncodeToString(m)))
		}, webhook.ReasonSignatureMalformed},
		{"prefix missing", func(s *shot) bool { return s.scheme.Signature.Prefix != "" }, func(s *shot) webhook.Request { s.sign(); return s.request(s.signed) }, webhook.ReasonSignatureMalformed},
		{"space before it", func(s *shot) bool { return !s.many() }, func(s *shot) webhook.Request { s.sign(); return s.request(" " + s.value(s.signed)) }, webhook.ReasonSignatureMalformed},
		{"no signature", always, func(s *shot) webhook.Request { return s.request() }, webhook.ReasonSignatureMissing},
		{"header renamed", always, func(s *shot) webhook.Request {
			s.sign()
			s.header = []string{s.at + "2", s.value(s.signed)}
			return s.request()
		}, webhook.ReasonSignatureMissing},
		{"repeated header", always, func(s *shot) webhook.Request { s.sign(); v := s.value(s.signed); return s.request(v, v) }, webhook.ReasonHeaderRepeated},
		{"repeated header, one of them bad", always, func(s *shot) webhook.Request { s.sign(); return s.request("x", s.value(s.signed)) }, webhook.ReasonHeaderRepeated},
		{"empty body", always, plainly(func(s *shot) { s.body = "" }), webhook.ReasonBodyEmpty},
		{"altered byte", covers, after(func(s *shot) { s.body = flip(s.body, s.random.IntN(len(s.body))) }), webhook.ReasonSignatureMismatch},
		{"re-serialised", covers, after(func(s *shot) { s.body = strings.ReplaceAll(s.body, `":`, `": `) }), webhook.ReasonSignatureMismatch},
		{"line break added", covers, after(func(s *shot) { s.body += "\n" }), webhook.ReasonSignatureMismatch},
		{"cut body", covers, after(func(s *shot) { s.body = s.body[:len(s.body)-1] }), webhook.ReasonSignatureMismatch},
		{"stale", (*shot).timed, plainly(func(s *shot) {
			s.stamp = s.stampOf(s.now.Add(-5*time.Minute - time.Duration(1+s.random.IntN(1e6))*time.Second))
		}), webhook.ReasonTimestampTooOld},
		{"future", (*shot).timed, plainly(func(s *shot) {
			s.stamp = s.stampOf(s.now.Add(5*time.Minute + time.Duration(1+s.random.IntN(1e6))*time.Second))
		}), webhook.ReasonTimestampInFuture},
		{"time altered", (*shot).timed, after(func(s *shot) { s.stamp = flip(s.stamp, len(s.stamp)-1) }), webhook.ReasonSignatureMismatch},
		{"time that is no number", (*shot).timed, plainly(func(s *shot) {
			s.stamp = []string{"+" + s.stamp, s.stamp + ".0", "1e9", "-1", "0x10", s.stamp + "x"}[s.random.IntN(6)]
		}), webhook.ReasonTimestampMalformed},
		{"time missing", (*shot).timed, plainly(func(s *shot) { s.stamp = "" }), webhook.ReasonTimestampMissing},
		{"time doubled in a header", func(s *shot) bool { return s.timed() && s.stampAt != "sig" }, after(func(s *shot) { s.header = []string{s.stampAt, s.stamp} }), webhook.ReasonHeaderRepeated},
		{"t= doubled", func(s *shot) bool { return s.stampAt == "sig" }, after(func(s *shot) { s.entries = []string{"t=" + s.stamp} }), webhook.ReasonSignatureMalformed},
		{"id missing", func(s *shot) bool { return s.id != "" }, after(func(s *shot) { s.id = "" }), webhook.ReasonSignedPartMissing},
		{"id altered", func(s *shot) bool { return s.id != "" }, after(func(s *shot) { s.id += "1" }), webhook.ReasonSignatureMismatch},
	}
}

// No delivery of any class is accepted or refused that should not be. With
// TORTURE=full there are a million.
func TestTorture(t *testing.T) {
	n := 30_000
	if os.Getenv("TORTURE") == "full" {
		n = 1_000_000
	}
	all, refs := classes(), references(t)
	verifiers := make([]*webhook.Verifier, len(refs))
	for i, r := range refs {
		verifiers[i] = verifier(t, r.scheme, "secret", "oldersecret")
	}
	random := rand.New(rand.NewPCG(4, 2))
	shots := make([]int, len(all))
	for i := range n {
		which := random.IntN(len(refs))
		c := random.IntN(len(all))
		now := at.Add(time.Duration(random.IntN(1e8)) * time.Second)
		s := &shot{reference: &refs[which], random: random, key: "secret", now: now}
		s.body = fmt.Sprintf(`[{"eventId":"%d","data":{"n":%d,"text":%q}}]`, i, random.IntN(1000), strings.Repeat("ä/\\\"", random.IntN(20)))
		if s.timed() {
			s.stamp = s.stampOf(now.Add(time.Duration(random.IntN(598)-299) * time.Second))
		}
		if s.at == "webhook-signature" {
			s.id = "msg_" + strconv.Itoa(i)
		}
		if !all[c].fits(s) {
			continue
		}
		shots[c]++
		r := all[c].make(s)
		got := verifiers[which].Verify(r, now)
		if got.Reason != all[c].want || got.OK != (all[c].want == "") || got.BodyAuthenticated != (got.OK && s.covers) {
			t.Fatalf("%s, %+v: %+v; want reason %q; request %+v %q", all[c].name, s.scheme, got, all[c].want, r.Header, r.Body)
		}
	}
	if len(all) < 20 || slices.Min(shots) < 20 {
		t.Errorf("%d classes, the rarest with %d deliveries; want 20 and more of each", len(all), slices.Min(shots))
	}
}
