package webhook_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// samples are n deliveries with different bodies, signed in a scheme.
func samples(t testing.TB, s webhook.Scheme, secret string, n int) []webhook.Sample {
	t.Helper()
	all := make([]webhook.Sample, n)
	for i := range all {
		r := post(strings.Replace(body, `"1Z"`, fmt.Sprintf(`"1Z%d","note":"K\u00f6ln a/b"`, i), 1), "Content-Type", "application/json", "X-Request-Id", fmt.Sprintf("req-%d", i))
		when := at.Add(time.Duration(i) * time.Minute)
		out, err := webhook.Sign(s, webhook.Secret{Value: []byte(secret)}, r, when)
		if err != nil {
			t.Fatalf("Sign(%+v): %v", s, err)
		}
		all[i] = webhook.Sample{Request: signedRequest(r, out), At: when}
	}
	return all
}

func learn(t testing.TB, all []webhook.Sample, secretValues ...string) webhook.LearnResult {
	t.Helper()
	got, err := webhook.Learn(t.Context(), all, secrets(secretValues...), "https://hooks.example/in")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Whatever is learnt from signed deliveries is the scheme itself, whichever of many it is.
func TestLearnRoundTrip(t *testing.T) {
	const hexKey = "whsec_00112233445566778899aabbccddeeff"
	var all []webhook.Scheme
	for _, p := range webhook.Presets() {
		all = append(all, p.Scheme)
	}
	header := webhook.Timestamp{From: "header:X-Time"}
	url := "https://hooks.example/in"
	all = append(all, []webhook.Scheme{
		{Algorithm: "sha512", Signature: webhook.Signature{From: "query:sig", Encoding: "base64"}},
		{Algorithm: "sha1", Signature: webhook.Signature{From: "header:X-Sha", Encoding: "hex", Prefix: "sha1="}},
		{Key: webhook.Key{StripPrefix: "whsec_", Encoding: "hex"}},
		{Key: webhook.Key{StripPrefix: "whsec_"}, Signed: "{timestamp}:{body}", Timestamp: webhook.Timestamp{From: "header:Date", Unit: "rfc2822"}},
		{Signed: "{timestamp}{body}", Timestamp: webhook.Timestamp{From: "header:X-Time", Unit: "rfc3339"}},
		{Signed: "{header:X-Request-Id}.{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "sig:t"}, Signature: webhook.Signature{Format: "kv", Tag: "s"}},
		{Signed: "{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "sig:t"}, Signature: webhook.Signature{Format: "kv", Separator: " ", Tag: "s"}},
		{Signed: "{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "sig:t"}, Signature: webhook.Signature{Format: "kv", Separator: "&", Encoding: "base64"}},
		{Signed: "{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "sig:t", Unit: "rfc2822"}, Signature: webhook.Signature{Format: "kv", Separator: "|"}},
		{Signed: "{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "sig:t"}, Signature: webhook.Signature{Format: "list", Separator: ";"}},
		{Signed: "{method}{path}{timestamp}{body}", Timestamp: header},
		{Signed: "{method}\n{path}\n{timestamp}\n{body}", Timestamp: header},
		{Signed: "{url}{body}", PublicURL: url},
		{Signed: "{body}{timestamp}", Timestamp: header},
		{Signed: "{json:/0}"},
		{Signed: "{timestamp}.{json:/0/data}", Timestamp: header},
		{Signed: "{json:/0/data/trackingNumber}"},
		{Kind: "digest", Signed: "{secret}{body}"},
		{Kind: "digest", Algorithm: "md5", Signed: "{body}{secret}"},
		{Kind: "digest", Algorithm: "sha1", Signed: "{secret}{timestamp}{body}", Timestamp: header},
		{Kind: "token", Signature: webhook.Signature{From: "query:token"}},
		{Kind: "digest", AcceptWeak: true, Signature: webhook.Signature{From: "header:Digest", Prefix: "SHA-256=", Encoding: "base64"}},
	}...)
	for _, s := range all {
		secret := hexKey
		if s.Key.Normalize == "nfkd" {
			secret = "whsec_\ufb01\u2460"
		}
		got := learn(t, samples(t, s, secret, 3), "another", secret)
		if len(got.Candidates) == 0 {
			t.Errorf("%+v: nothing learnt, partial %+v", s, got.Partial)
			continue
		}
		first := got.Candidates[0]
		want := s.WithDefaults()
		want.Signature.Tag, first.Scheme.Signature.Tag = "", ""
		if want.Signature.Format != webhook.FormatPlain {
			want.Signature.Tag, first.Scheme.Signature.Tag = s.WithDefaults().Signature.Tag, got.Candidates[0].Scheme.Signature.Tag
		}
		if first.Scheme != want || first.Obstacle != "" || first.Strength != s.Strength() {
			t.Errorf("learnt %+v (%s, %s)\nwant   %+v", first.Scheme, first.Strength, first.Obstacle, want)
		}
		if none := learn(t, samples(t, s, secret, 3), "another", "whsec_00112233445566778899aabbccddee00"); s.Strength() != webhook.StrengthKeyless && (len(none.Candidates) > 0 || len(none.Partial) > 0) {
			t.Errorf("%+v: learnt %+v, %+v with wrong secrets", s, none.Candidates, none.Partial)
		}
	}
}

func TestLearnIsNotMisledByOnesOwnTrials(t *testing.T) {
	all := samples(t, webhook.Scheme{}, "secret-k", 3)
	for i, forged := range samples(t, webhook.Scheme{}, "a-secret-for-trials", 8) {
		forged.Body = fmt.Appendf(nil, "[%d]", i) // smaller than any that is genuine
		all = append(all, forged)
	}
	got := learn(t, all, "secret-k")
	want := append([]bool{true, true, true}, make([]bool, 8)...)
	if len(got.Candidates) != 0 || len(got.Partial) != 1 || !slices.Equal(got.Partial[0].Matched, want) {
		t.Errorf("lesson %+v; want one scheme that matches the first three", got)
	}
}

func TestLearnTellsWhatMatchesInPart(t *testing.T) {
	all := samples(t, webhook.Scheme{}, "secret-k", 4)
	all[2].Body = append(bytes.Clone(all[2].Body), ' ')
	got := learn(t, all, "secret-k")
	if len(got.Candidates) != 0 || len(got.Partial) != 1 || !slices.Equal(got.Partial[0].Matched, []bool{true, true, false, true}) {
		t.Errorf("lesson %+v; want one scheme that matches all but the third", got)
	}
	// Neither may hide behind the smallest body.
	all[2].Body = []byte(`[1]`)
	if got = learn(t, all, "secret-k"); len(got.Candidates) != 0 || len(got.Partial) != 1 {
		t.Errorf("lesson %+v; want one scheme that matches in part", got)
	}
}

func TestLearnFromSecretsThatChanged(t *testing.T) {
	all := slices.Concat(samples(t, webhook.Scheme{}, "the old one", 2), samples(t, webhook.Scheme{}, "the new one", 3)[2:])
	got := learn(t, all, "the new one", "unused", "the old one")
	if len(got.Candidates) != 1 || !slices.Equal(got.Candidates[0].Secrets, []int{0, 2}) {
		t.Errorf("lesson %+v; want one scheme with the first and the last secret", got)
	}
}

func TestLearnTellsObstacles(t *testing.T) {
	const secret = "secret-k"
	signed := samples(t, webhook.Scheme{}, secret, 3)
	change := func(f func([]byte) []byte) []webhook.Sample {
		all := slices.Clone(signed)
		for i := range all {
			all[i].Body = f(bytes.Clone(all[i].Body))
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		all    []webhook.Sample
		secret string
		says   string
	}{
		{"space in the secret", signed, " " + secret + " ", "white space around it"},
		{"line break in the sender's secret", samples(t, webhook.Scheme{}, secret+"\n", 3), secret, "ends with a line break"},
		{"indented", change(func(b []byte) []byte {
			var out bytes.Buffer
			if err := json.Indent(&out, b, "", " "); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}), secret, "the compact form was signed"},
		{"line break added", change(func(b []byte) []byte { return append(b, '\n') }), secret, "a line break was added"},
		{"not escaped", change(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`\u00f6`), []byte("\u00f6")) }), secret, `with \u escapes`},
		{"slashes escaped", change(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`/`), []byte(`\/`)) }), secret, "without escaped slashes"},
	} {
		got := learn(t, tt.all, tt.secret)
		if len(got.Candidates) == 0 || !strings.Contains(got.Candidates[0].Obstacle, tt.says) {
			t.Errorf("%s: %+v; want an obstacle that says %q", tt.name, got, tt.says)
		}
	}
}

func TestLearnFromDeliveriesThatProveNothing(t *testing.T) {
	plain := samples(t, webhook.Scheme{}, "k", 3)
	for i := range plain {
		sum := sha256.Sum256(plain[i].Body)
		plain[i].Header = []webhook.Field{
			{Name: "Content-Digest", Value: "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"},
			{Name: "ETag", Value: fmt.Sprintf("%x", sum[:16])},
			{Name: "X-Id", Value: fmt.Sprintf("%032x", i)},
			{Name: "X-Short", Value: "k"},
			{Name: "X-Empty", Value: ""},
		}
	}
	if got := learn(t, plain, "k"); len(got.Candidates)+len(got.Partial) != 0 {
		t.Errorf("unsigned: %+v; want nothing", got)
	}
	for i := range plain {
		sum := sha256.Sum256(plain[i].Body)
		plain[i].Header = append(plain[i].Header, webhook.Field{Name: "X-Sum", Value: fmt.Sprintf("%x", sum)})
	}
	got := learn(t, plain, "k", "a longer secret")
	if len(got.Candidates) != 1 || got.Candidates[0].Strength != webhook.StrengthKeyless || !got.Candidates[0].Scheme.AcceptWeak {
		t.Errorf("keyless: %+v; want a keyless hash and nothing else", got)
	}
	for _, all := range [][]webhook.Sample{nil, {{}}, {{Request: post("")}}, {{Request: post("{")}}} {
		if got := learn(t, all, "secret"); len(got.Candidates)+len(got.Partial) != 0 {
			t.Errorf("%+v: learnt %+v", all, got)
		}
	}
	if got := learn(t, plain[:2]); got.Bodies != 2 || len(got.Candidates) != 0 {
		t.Errorf("without secrets: %+v; want nothing", got)
	}
}

// A hash that all deliveries carry does not hide a signature that most have.
func TestLearnKeylessHidesNothing(t *testing.T) {
	all := samples(t, webhook.Scheme{}, "secret-k", 4)
	for i := range all {
		sum := sha256.Sum256(all[i].Body)
		all[i].Header = append(all[i].Header, webhook.Field{Name: "X-Sum", Value: fmt.Sprintf("%x", sum)})
	}
	if got := learn(t, all, "secret-k"); len(got.Candidates) != 2 || got.Candidates[0].Strength != webhook.StrengthBody || len(got.Partial) != 0 {
		t.Errorf("lesson %+v; want the signature before the hash", got)
	}
	all[0].Header = all[0].Header[len(all[0].Header)-1:] // forged
	got := learn(t, all, "secret-k")
	if len(got.Candidates) != 1 || got.Candidates[0].Strength != webhook.StrengthKeyless || len(got.Partial) != 1 || got.Partial[0].Strength != webhook.StrengthBody {
		t.Errorf("lesson %+v; want the hash, and the signature in part", got)
	}
}

func TestLearnEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := webhook.Learn(ctx, samples(t, webhook.Scheme{}, "k", 3), secrets("k"), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want context.Canceled", err)
	}
}

// A body made to be expensive costs little more than another.
func TestLearnIsBounded(t *testing.T) {
	var hostile strings.Builder
	hostile.WriteString(`{"a":"x"`)
	for i := range 2000 {
		fmt.Fprintf(&hostile, `,"k%d":"%064x","t%d":%d`, i, i, i, 1700000000+i)
	}
	hostile.WriteString("}")
	all := []webhook.Sample{{Request: post(hostile.String())}, {Request: post(hostile.String() + " ")}, {Request: post(hostile.String() + "  ")}}
	for i := range 100 {
		all[0].Header = append(all[0].Header, webhook.Field{Name: fmt.Sprintf("X-%d", i), Value: fmt.Sprintf("%064x", i)})
	}
	if got := learn(t, all, "secret-k"); len(got.Candidates) != 0 || !got.Incomplete {
		t.Errorf("cut %v, found %+v; want nothing, and cut", got.Incomplete, got.Candidates)
	}
}

// Long values are no identifiers, and are not tried.
func TestLearnTriesValuesUpToALength(t *testing.T) {
	for _, signed := range []string{"{header:X-Request-Id}.{body}", "{query:id}.{body}", "{json:/id}"} {
		s := webhook.Scheme{Signed: signed}
		for length, want := range map[int]bool{256: true, 257: false} {
			var all []webhook.Sample
			for i := range 3 {
				id := strings.Repeat("x", length-2) + fmt.Sprint(i)
				r := post(`{"n":1,"id":"b`+id+`"}`, "X-Request-Id", "h"+id)
				r.RawQuery = "%zz=1&q=%zz&id=q" + id
				out, err := webhook.Sign(s, webhook.Secret{Value: []byte("secret-k")}, r, at)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, webhook.Sample{Request: signedRequest(r, out), At: at})
			}
			got := learn(t, all, "secret-k")
			if found := len(got.Candidates) > 0; found != want || found && got.Candidates[0].Scheme.Signed != signed {
				t.Errorf("%s of %d bytes: learnt %+v", signed, length, got.Candidates)
			}
		}
	}
}

func TestParseCaptures(t *testing.T) {
	one := `{"receivedAt":"2026-01-01T00:00:00Z","method":"PUT","path":"/p","query":"a=b","headers":[{"name":"A","value":"1"},{"name":"A","value":"2"}],"body":"x"}`
	two := `{"headers":{"B":"1","A":["2","3"]},"bodyBase64":"/w=="}`
	for _, text := range []string{one + "\n" + two + "\n", "[" + one + "," + two + "]"} {
		got, err := webhook.ParseCaptures([]byte(text))
		if err != nil || len(got) != 2 {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}
		want := webhook.Request{Method: "PUT", Path: "/p", RawQuery: "a=b", Header: []webhook.Field{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}, Body: []byte("x")}
		if fmt.Sprint(got[0].Request) != fmt.Sprint(want) || got[0].At.Year() != 2026 {
			t.Errorf("first %+v; want %+v", got[0], want)
		}
		want = webhook.Request{Method: "POST", Path: "/", Header: []webhook.Field{{Name: "A", Value: "2"}, {Name: "A", Value: "3"}, {Name: "B", Value: "1"}}, Body: []byte{0xff}}
		if fmt.Sprint(got[1].Request) != fmt.Sprint(want) || !got[1].At.IsZero() {
			t.Errorf("second %+v; want %+v", got[1], want)
		}
	}
	for _, bad := range []string{"{", `{"headers":[]}`, `{"body":"x","headers":[1]}`, `{"body":"x","headers":{"A":1}}`, `[{]`, `{"body":1}`} {
		if got, err := webhook.ParseCaptures([]byte(bad)); err == nil {
			t.Errorf("%s: read as %+v", bad, got)
		}
	}
}

// From deliveries that nobody signed nothing keyed is learnt, whatever they hold.
func FuzzLearn(f *testing.F) {
	f.Add("X-Signature", "t=1614265330,v1="+hexMAC("k", body), "a=1&sig="+hexMAC("k", body), body)
	f.Add("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac("k", body)), "", `{"sign":"`+hexMAC("k", "1")+`","ts":1614265330}`)
	f.Add("Digest", "sha-256=", "%zz", `[[["\u00e9"]]]`)
	f.Fuzz(func(t *testing.T, name, value, query, text string) {
		all := []webhook.Sample{{Request: post(text, name, value)}, {Request: post(text+" ", name, value)}}
		all[0].RawQuery = query
		lesson, err := webhook.Learn(t.Context(), all, secrets("a secret that is nowhere"), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range slices.Concat(lesson.Candidates, lesson.Partial) {
			if c.Strength != webhook.StrengthKeyless && !strings.Contains(name+value+query+text, "a secret that is nowhere") {
				t.Errorf("learnt %+v", c)
			}
		}
	})
}

func TestLearnPrefersTheStrongerHash(t *testing.T) {
	for _, weak := range []webhook.Scheme{
		{Algorithm: "sha1", Signature: webhook.Signature{From: "header:X-Hub-Signature", Prefix: "sha1="}},
		{Kind: "digest", Algorithm: "md5", Signed: "{body}{secret}", Signature: webhook.Signature{From: "header:X-Sum"}},
	} {
		strong := webhook.Scheme{Signature: webhook.Signature{From: "query:hmac"}}
		all := samples(t, weak, "secret-k", 3)
		for i, d := range samples(t, strong, "secret-k", 3) {
			all[i].RawQuery = d.RawQuery
		}
		got := learn(t, all, "secret-k")
		if len(got.Candidates) != 2 || got.Candidates[0].Scheme != strong.WithDefaults() || got.Candidates[1].Scheme != weak.WithDefaults() {
			t.Errorf("candidates %+v; want SHA-256 before %s", got.Candidates, weak.Algorithm)
		}
	}
}

// encoded returns n deliveries whose signature, in base64, holds a digit that
// the two alphabets write differently or not, as asked for.
func encoded(t *testing.T, encoding string, special bool, n int) []webhook.Sample {
	t.Helper()
	s := webhook.Scheme{Signature: webhook.Signature{Encoding: encoding}}
	var all []webhook.Sample
	for i := 0; len(all) < n; i++ {
		r := post(fmt.Sprintf(`[{"eventId":"%d"}]`, i))
		text := base64.StdEncoding.EncodeToString(mac("secret-k", string(r.Body)))
		if strings.ContainsAny(text, "+/") != special {
			continue
		}
		out, err := webhook.Sign(s, webhook.Secret{Value: []byte("secret-k")}, r, at)
		if err != nil {
			t.Fatal(err)
		}
		if encoding == webhook.EncodingBase64URL {
			out.Header[0].Value += "=" // as some senders do
		}
		all = append(all, webhook.Sample{Request: signedRequest(r, out), At: at})
	}
	return all
}

// Where no sample holds a digit that differs, either alphabet may follow.
func TestLearnLeavesTheAlphabetOpen(t *testing.T) {
	for _, encoding := range []string{webhook.EncodingBase64, webhook.EncodingBase64URL} {
		got := learn(t, encoded(t, encoding, false, 3), "secret-k")
		if len(got.Candidates) != 1 || len(got.Candidates[0].Undecided) != 1 || !strings.Contains(got.Candidates[0].Undecided[0], "base64 or base64url") {
			t.Fatalf("%s: candidates %+v; want one that leaves the alphabet open", encoding, got.Candidates)
		}
		v := verifier(t, got.Candidates[0].Scheme, "secret-k")
		for _, next := range append(encoded(t, webhook.EncodingBase64, true, 2), encoded(t, webhook.EncodingBase64URL, true, 2)...) {
			if verdict := v.Verify(next.Request, at); !verdict.OK {
				t.Errorf("%s: learnt %+v, which refuses %s: %s", encoding, got.Candidates[0].Scheme.Signature, next.Header[0].Value, verdict.Reason)
			}
			mixed := next.Request
			mixed.Header = []webhook.Field{{Name: "X-Signature", Value: "+-" + next.Header[0].Value[2:]}}
			if verdict := v.Verify(mixed, at); verdict.Reason != webhook.ReasonSignatureMalformed {
				t.Errorf("both alphabets in one: %+v; want it malformed", verdict)
			}
		}
		for _, all := range [][]webhook.Sample{
			append(encoded(t, encoding, true, 1), encoded(t, encoding, false, 2)...),
			append(encoded(t, encoding, false, 2), encoded(t, encoding, true, 1)...),
		} {
			if got = learn(t, all, "secret-k"); len(got.Candidates) != 1 || got.Candidates[0].Scheme.Signature.Encoding != encoding || len(got.Candidates[0].Undecided) != 0 {
				t.Errorf("candidates %+v; want %s and nothing open", got.Candidates, encoding)
			}
		}
	}
}

// A tunnel adds headers; what is signed is found behind them.
func TestLearnTriesEveryHeader(t *testing.T) {
	s := webhook.Scheme{Signed: "{header:X-Last}.{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "header:X-Time"}}
	with := func(n int) []webhook.Sample {
		all := samples(t, webhook.Scheme{}, "another", 3)
		for i := range all {
			r := all[i].Request
			r.Header = slices.Clone(r.Header[:2])
			for k := range n {
				r.Header = append(r.Header, webhook.Field{Name: fmt.Sprintf("X-Tunnel-%d", k), Value: fmt.Sprintf("value %d.%d", i, k)})
			}
			r.Header = append(r.Header, webhook.Field{Name: "X-Last", Value: fmt.Sprintf("last %d", i)})
			out, err := webhook.Sign(s, webhook.Secret{Value: []byte("secret-k")}, r, at)
			if err != nil {
				t.Fatal(err)
			}
			all[i] = webhook.Sample{Request: signedRequest(r, out), At: at}
		}
		return all
	}
	if got := learn(t, with(40), "secret-k"); len(got.Candidates) == 0 || got.Candidates[0].Scheme != s.WithDefaults() {
		t.Errorf("lesson %+v; want what is signed behind 40 headers", got)
	}
	got := learn(t, with(100), "secret-k")
	if len(got.Candidates) == 0 && !slices.Contains(got.Untried, "header:X-Last") {
		t.Errorf("lesson %+v; want it found, or said that it was not tried", got)
	}
}

// A scheme whose times are all out of the tolerance verifies nothing stored.
func TestLearnSaysThatSamplesAreTooOld(t *testing.T) {
	all := samples(t, preset(t, "timestamped-kv"), "secret-k", 3)
	if got := learn(t, all, "secret-k"); len(got.Candidates) == 0 || got.Candidates[0].Stale != "" {
		t.Errorf("lesson %+v; want one that is in time", got)
	}
	for i := range all {
		all[i].At = all[i].At.Add(time.Duration(3+i) * time.Hour)
	}
	got := learn(t, all, "secret-k")
	if len(got.Candidates) == 0 || got.Candidates[0].Obstacle != "" || !strings.Contains(got.Candidates[0].Stale, "signed 3h0m or more before it was received") {
		t.Errorf("lesson %+v; want it said how old they are", got)
	}
	all[1].At = at.Add(time.Minute)
	if got := learn(t, all, "secret-k"); len(got.Candidates) == 0 || got.Candidates[0].Stale != "" {
		t.Errorf("lesson %+v; want it in time, as one of them is", got)
	}
	for i := range all {
		all[i].At = time.Time{}
	}
	if got := learn(t, all, "secret-k"); len(got.Candidates) == 0 || got.Candidates[0].Stale != "" {
		t.Errorf("lesson %+v; want nothing said of a time that is not known", got)
	}
}

// Of values that were the same in every delivery, the one named as the signature is comes first.
func TestLearnPrefersNamesAkinToTheSignature(t *testing.T) {
	s := webhook.Scheme{Signed: "{timestamp}.{body}", Signature: webhook.Signature{From: "header:X-Acme-Signature"}, Timestamp: webhook.Timestamp{From: "header:X-Acme-Time"}}
	all := samples(t, s, "secret-k", 3)
	for i := range all {
		at := all[i].Header[len(all[i].Header)-1].Value
		for _, f := range all[i].Header {
			if f.Name == "X-Acme-Time" {
				at = f.Value
			}
		}
		all[i].Header = append([]webhook.Field{{Name: "X-Request-Start", Value: at}}, all[i].Header...)
	}
	got := learn(t, all, "secret-k")
	if len(got.Candidates) != 2 || got.Candidates[0].Scheme.Timestamp.From != "header:X-Acme-Time" {
		t.Fatalf("candidates %+v; want two, that of X-Acme-Time first", got.Candidates)
	}
	if rivals, want := got.RivalsOf(s), []string{"timestamp.from header:X-Request-Start in place of header:X-Acme-Time"}; !slices.Equal(rivals, want) {
		t.Errorf("rivals %q; want %q", rivals, want)
	}
	all[2].Header[0].Value = "1700000000"
	if got = learn(t, all, "secret-k"); len(got.Candidates) != 1 || len(got.RivalsOf(s)) != 0 {
		t.Errorf("candidates %+v, rivals %q once a delivery tells them apart", got.Candidates, got.RivalsOf(s))
	}
	if rivals := got.RivalsOf(webhook.Scheme{Signed: "{json:/a}:{json:/b}"}); len(rivals) != 0 {
		t.Errorf("a scheme that was not learnt has rivals %q", rivals)
	}
}
