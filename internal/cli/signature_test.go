package cli_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// stored fills a store with n deliveries signed with a secret, refused ones if
// so said, and returns its path.
func stored(t *testing.T, s webhook.Scheme, secret string, n int, refused bool) string {
	t.Helper()
	return storedLate(t, s, secret, n, refused, 0)
}

// storedLate is stored, with deliveries that were received late.
func storedLate(t *testing.T, s webhook.Scheme, secret string, n int, refused bool, late time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range n {
		at := time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)
		r := webhook.Request{Method: "POST", Path: "/", Body: fmt.Appendf(nil, `[{"eventId":"e%d","event":"router.delivered"}]`, i)}
		out, err := webhook.Sign(s, webhook.Secret{Value: []byte(secret)}, r, at)
		if err != nil {
			t.Fatal(err)
		}
		d := inbox.Delivery{ReceivedAt: at.Add(late), Method: r.Method, Path: r.Path, Header: out.Header, Body: r.Body, Verified: inbox.Unknown}
		if refused {
			d.Verified, d.Reason = inbox.No, webhook.ReasonSignatureMismatch
			_, err = db.PutRefused(t.Context(), d)
		} else {
			_, err = db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestLearnPinsTheKeyThatSigns(t *testing.T) {
	digest, ok := webhook.PresetByName("digest-body-slash-key")
	if !ok {
		t.Fatal("no preset")
	}
	conf := filepath.Join(t.TempDir(), "config.yaml")
	env := []string{"WAYBILL_STORE=" + stored(t, digest.Scheme, "the-api-key", 3, false), "WAYBILL_API_KEY=the-api-key", "WAYBILL_WEBHOOK_SECRET=unused", "WAYBILL_CONFIG=" + conf, "WAYBILL_WEBHOOK_VERIFY=off"}
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, env, "signature", "learn", "--pin", "mine", "-o", "json")
	var got struct {
		Candidates []struct{ Preset string }
		Rejudged   struct{ Verified, Refused, Events int }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != command.OK || len(got.Candidates) != 1 || got.Candidates[0].Preset != digest.Name {
		t.Fatalf("status %d, %v: %s%s", code, err, stdout, stderr)
	}
	if got.Rejudged.Verified != 3 || got.Rejudged.Events != 3 {
		t.Errorf("verified again %+v; want all three and their events", got.Rejudged)
	}
	if !strings.Contains(stderr, "WAYBILL_WEBHOOK_VERIFY is set in the environment") {
		t.Errorf("stderr %q; want a warning of the variable that wins", stderr)
	}
	written, err := os.ReadFile(conf)
	if err != nil || !strings.Contains(string(written), "secrets: ['env:WAYBILL_API_KEY']") && !strings.Contains(string(written), "secrets: [env:WAYBILL_API_KEY]") || strings.Contains(string(written), "the-api-key") {
		t.Errorf("configuration %s, %v; want the variable named and no key", written, err)
	}
	if code, stdout, stderr = run(t, env, "signature", "verify"); code != command.OK || strings.Count(stdout, "yes") != 3 {
		t.Errorf("verify: status %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = run(t, env, "events", "list", "-o", "jsonl"); code != command.OK || strings.Count(stdout, `"bodyAuthenticated":true`) != 3 {
		t.Errorf("events: status %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = run(t, env, "signature", "promote"); code != command.OK || !strings.Contains(stdout, "3 deliveries verified") {
		t.Errorf("promote: status %d\n%s%s", code, stdout, stderr)
	}
}

func TestLearnFromRefusals(t *testing.T) {
	env := []string{"WAYBILL_STORE=" + stored(t, webhook.Scheme{}, "right-secret", 3, true), "WAYBILL_WEBHOOK_SECRET=right-secret", "WAYBILL_WEBHOOK_SCHEME=hmac-body-base64"}
	code, stdout, stderr := run(t, env, "signature", "learn", "-o", "json", "--jq", ".candidates[0].preset")
	if code != command.OK || strings.TrimSpace(stdout) != "hmac-body-hex" {
		t.Errorf("learn: status %d, %s%s", code, stdout, stderr)
	}
	for _, id := range [][]string{{"refused:2"}, nil} {
		code, stdout, stderr = run(t, env, append([]string{"signature", "explain", "-o", "json", "--jq", "[.id, .cause, .fits.signature.encoding]"}, id...)...)
		want := `["refused:3","elsewhere","hex"]`
		if id != nil {
			want = strings.Replace(want, "3", "2", 1)
		}
		if got := strings.Join(strings.Fields(stdout), ""); code != command.Unverified || got != want {
			t.Errorf("explain %v: status %d, %s%s; want %s", id, code, stdout, stderr, want)
		}
	}
	for _, args := range [][]string{{"explain", "refused:9"}, {"explain", "9"}, {"explain", "no-such-event"}, {"verify", "refused:x"}, {"learn", "9"}} {
		if code, _, stderr := run(t, env, append([]string{"signature"}, args...)...); code != command.NotFound {
			t.Errorf("%v: status %d, %s; want 3", args, code, stderr)
		}
	}
}

// A scheme that was wrong and enforced refused everything: the right one is
// learnt from what is left of that, and the deliveries can be taken in.
func TestLearnFromRefusalsSaysHowToTakeThemIn(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_STORE=" + stored(t, webhook.Scheme{}, "right-secret", 3, true), "WAYBILL_WEBHOOK_SECRET=right-secret", "WAYBILL_CONFIG=" + conf}
	if code, _, stderr := run(t, env, "signature", "learn", "--pin", "mine"); code != command.OK || !strings.Contains(stderr, "waybill events readmit") {
		t.Errorf("learn: status %d, %s; want the next step", code, stderr)
	}
	if code, stdout, stderr := run(t, env, "events", "readmit"); code != command.OK || !strings.Contains(stdout, "Readmitted 3 deliveries with 3 new events; still refused: 0") {
		t.Errorf("readmit: status %d, %s%s", code, stdout, stderr)
	}
}

func TestLearnWithTheAPIKeyAloneSaysSo(t *testing.T) {
	env := []string{"WAYBILL_STORE=" + stored(t, webhook.Scheme{}, "right-secret", 3, false), "WAYBILL_API_KEY=another-key"}
	if code, _, stderr := run(t, env, "signature", "learn"); code != command.Unverified || !strings.Contains(stderr, "no webhook secret is set") {
		t.Errorf("status %d, %s; want it said that there is no webhook secret", code, stderr)
	}
}

// What was pruned can't be judged: it is neither empty nor forged.
func TestPrunedDeliveriesAreNotJudged(t *testing.T) {
	env := []string{"WAYBILL_STORE=" + stored(t, webhook.Scheme{}, "k", 3, false), "WAYBILL_WEBHOOK_SECRET=k", "WAYBILL_WEBHOOK_SCHEME=hmac-body-hex"}
	if code, stdout, stderr := run(t, env, "store", "prune", "--older-than", "0s"); code != command.OK {
		t.Fatalf("prune: status %d, %s%s", code, stdout, stderr)
	}
	for _, line := range []string{"verify", "explain", "learn"} {
		code, stdout, stderr := run(t, env, "signature", line, "2")
		if code != command.NotFound || stdout != "" || !strings.Contains(stderr, "pruned") {
			t.Errorf("%s: status %d, %s%s; want 3, and that it was pruned", line, code, stdout, stderr)
		}
	}
}

// Wherever a scheme is in use that leaves the body open, that is said.
func TestBodyNotAuthenticatedIsSaid(t *testing.T) {
	weak, ok := webhook.PresetByName("hmac-timestamp-hex")
	if !ok {
		t.Fatal("no preset")
	}
	conf := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_STORE=" + stored(t, weak.Scheme, "right-secret", 3, false), "WAYBILL_WEBHOOK_SECRET=right-secret", "WAYBILL_CONFIG=" + conf}
	for _, line := range []string{
		"signature learn", "signature learn --pin weak", "signature verify", "signature verify 1", "signature explain 1", "signature promote",
		"events list", "events show 1", "listen --addr 127.0.0.1:0 --timeout 50ms",
	} {
		code, stdout, stderr := run(t, env, strings.Fields(line)...)
		if code != command.OK || !strings.Contains(stdout+stderr, "body not authenticated") {
			t.Errorf("%s: status %d, %s%s; want it to say so", line, code, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "right-secret") {
			t.Errorf("%s shows the secret: %s%s", line, stdout, stderr)
		}
	}
	env = append(env, "WAYBILL_WEBHOOK_VERIFY=off")
	if code, _, stderr := run(t, env, "listen", "--addr", "127.0.0.1:0", "--timeout", "50ms"); code != command.OK || !strings.Contains(stderr, "nothing is verified") {
		t.Errorf("listen without verifying: status %d, %s", code, stderr)
	}
}

// A token is a secret wherever it stands, and without its prefix too.
func TestTokensAreMasked(t *testing.T) {
	folder := t.TempDir()
	body, conf := filepath.Join(folder, "body"), filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(body, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte(`webhook:
  schemes:
    stripped: {kind: token, key: {strip_prefix: "tok_"}, signature: {from: "header:X-Token"}}
    decomposed: {kind: token, key: {normalize: nfkd}, signature: {from: "header:X-Token"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_CONFIG=" + conf, "WAYBILL_WEBHOOK_SECRET=tok_zyxw secret\u00e9", "WAYBILL_STORE=" + filepath.Join(folder, "none.db")}
	for scheme, token := range map[string]string{"stripped": "zyxw secret\u00e9", "decomposed": "tok_zyxw secrete\u0301"} {
		for _, output := range []string{"table", "json"} {
			code, stdout, stderr := run(t, env, "signature", "explain", "--scheme", scheme, "--body", body, "-H", "X-Token: "+token, "-o", output, "--debug", "-v")
			if code != command.OK || strings.Contains(stdout+stderr, "zyxw") || !strings.Contains(stdout, "***") || !strings.Contains(stdout, "body not authenticated") {
				t.Errorf("explain --scheme %s -o %s: status %d, %s%s; want the token masked", scheme, output, code, stdout, stderr)
			}
		}
		if code, stdout, _ := run(t, env, "signature", "explain", "--scheme", scheme, "--body", body, "-H", "X-Token: "+token, "--reveal"); code != command.OK || !strings.Contains(stdout, "zyxw") {
			t.Errorf("explain --scheme %s --reveal: status %d, %s", scheme, code, stdout)
		}
	}
}

func TestSignatureRefusesWhatItCannotDo(t *testing.T) {
	folder := t.TempDir()
	body := filepath.Join(folder, "body")
	sum := filepath.Join(folder, "sum.jsonl")
	lines := ""
	for i := range 3 {
		text := fmt.Sprintf("[%d]", i)
		lines += fmt.Sprintf("{\"headers\":{\"X-Sum\":\"%x\"},\"body\":%q}\n", sha256.Sum256([]byte(text)), text)
	}
	for path, text := range map[string]string{body: "[]", sum: lines} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := []string{"WAYBILL_WEBHOOK_SECRET=hush-hush", "WAYBILL_STORE=" + filepath.Join(folder, "none.db")}
	for _, tt := range []struct {
		env  []string
		args []string
		code command.Code
		says string
	}{
		{nil, []string{"learn", "--secret-from", "hush-hush"}, command.Usage, "env:NAME"},
		{nil, []string{"learn", "--from", sum}, command.Usage, "no webhook secret is set"},
		{secret, []string{"learn", "--from", body}, command.Usage, "no deliveries"},
		{secret, []string{"learn", "--from", sum, "--pin", "x"}, command.Unverified, "--accept-weak"},
		{secret, []string{"learn", "--from", sum, "1"}, command.Usage, "can't be combined"},
		{secret, []string{"learn", "--public-url", "ftp://x"}, command.Usage, "https"},
		{secret, []string{"learn", "--last", "0"}, command.Usage, "must be at least"},
		{secret, []string{"verify", "--scheme", "nonesuch", "--body", body}, command.Usage, "nonesuch"},
		{secret, []string{"verify", "--scheme", "hmac-body-hex", "--body", body, "-H", "nonsense"}, command.Usage, "Name: value"},
		{secret, []string{"verify", "--scheme", "hmac-body-hex", "--body", body + "2"}, command.Usage, "body2"},
		{secret, []string{"verify", "--scheme", "hmac-body-hex", "--body", body, "-H", "X-Signature: 00"}, command.Unverified, "did not verify"},
		{secret, []string{"verify", "--scheme", "standard-webhooks", "--body", body}, command.Usage, "base64"},
		{secret, []string{"explain", "--scheme", "hmac-body-hex"}, command.Usage, "all stored deliveries verified"},
		{secret, []string{"promote", "--last", "1"}, command.Usage, "must be at least"},
		{secret, []string{"promote"}, command.Usage, "no signature scheme is set"},
	} {
		code, stdout, stderr := run(t, tt.env, append([]string{"signature"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("%v: status %d, %s; want %d and %q", tt.args, code, stderr, tt.code, tt.says)
		}
		if strings.Contains(stdout+stderr, "hush-hush") && tt.env != nil {
			t.Errorf("%v: the secret shows:\n%s%s", tt.args, stdout, stderr)
		}
	}
}

// A credential shows in no command, in no form.
func TestExplainMasksWhatEventsShowMasks(t *testing.T) {
	path := stored(t, webhook.Scheme{}, "right-secret", 1, false)
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Body: []byte("[2]"), Header: []webhook.Field{
		{Name: "X-Signature", Value: "00"},
		{Name: "Content-Type", Value: "application/json"},
		{Name: "X-Note", Value: "seen with the-api-key inside"},
		{Name: "X-Hook", Value: "Token clear-1"},
	}}
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "ApiKey", "X-Auth-Token", "X-Client-Secret", "X-Password"} {
		d.Header = append(d.Header, webhook.Field{Name: name, Value: "clear-2"})
	}
	_, err = db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body)))
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(conf, []byte("webhook:\n  scheme: clear\n  schemes:\n    clear:\n      kind: token\n      signature: {from: header:X-Hook}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_STORE=" + path, "WAYBILL_CONFIG=" + conf, "WAYBILL_WEBHOOK_SECRET=api", "WAYBILL_API_KEY=the-api-key"}
	_, want, _ := run(t, env, "events", "show", "2", "--headers", "-o", "json")
	if !strings.Contains(want, "seen with *** inside") {
		t.Errorf("%s; want the whole of a key hidden that holds another secret", want)
	}
	for _, scheme := range []string{"clear", "hmac-body-hex"} {
		code, got, stderr := run(t, env, "signature", "explain", "2", "--scheme", scheme, "-o", "json", "--jq", ".headers")
		if code != command.Unverified || strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(want), "") {
			t.Errorf("status %d, %s\n%s; want what events show has:\n%s", code, stderr, got, want)
		}
		for _, form := range []string{"table", "json", "csv"} {
			if _, got, stderr = run(t, env, "signature", "explain", "2", "--scheme", scheme, "-o", form); strings.Contains(got+stderr, "clear-") || strings.Contains(got+stderr, "the-api-key") {
				t.Errorf("%s as %s shows a credential:\n%s%s", scheme, form, got, stderr)
			}
		}
	}
	if _, got, _ := run(t, env, "signature", "explain", "2", "--reveal"); strings.Count(got, "clear-2") != 9 {
		t.Errorf("revealed:\n%s", got)
	}
}

// A scheme that verifies nothing stored is not recommended; where it is pinned
// all the same, learn says why nothing verifies.
func TestLearnSaysWhyNothingStoredVerifies(t *testing.T) {
	p, ok := webhook.PresetByName("timestamped-kv")
	if !ok {
		t.Fatal("no preset")
	}
	conf := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_STORE=" + storedLate(t, p.Scheme, "right-secret", 3, false, 2*time.Hour), "WAYBILL_WEBHOOK_SECRET=right-secret", "WAYBILL_CONFIG=" + conf}
	const why = "every delivery was signed 2h0m or more before it was received, but timestamp.tolerance is 5m"
	code, stdout, stderr := run(t, env, "signature", "learn")
	if code != command.OK || !strings.Contains(stdout, why) || strings.Contains(stderr, "--pin") || !strings.Contains(stderr, "receive new deliveries") {
		t.Errorf("status %d, %s%s; want it said why, and no hint to pin it", code, stdout, stderr)
	}
	code, _, stderr = run(t, env, "signature", "learn", "--pin", "mine")
	if code != command.OK || !strings.Contains(stderr, "0 verified, 3 not verified (timestamp_too_old: 3)") || !strings.Contains(stderr, why) {
		t.Errorf("pin: status %d, %s; want it said why nothing verifies", code, stderr)
	}
	env[0] = "WAYBILL_STORE=" + stored(t, webhook.Scheme{}, "right-secret\n", 3, false)
	if code, stdout, stderr = run(t, env, "signature", "learn"); code != command.OK || !strings.Contains(stdout, "ends with a line break") || strings.Contains(stderr, "--pin") {
		t.Errorf("status %d, %s%s; want the obstacle, and no hint to pin it", code, stdout, stderr)
	}
}

func TestLearnSaysWhatItDidNotTry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "captures.jsonl")
	var text strings.Builder
	for i := range 3 {
		headers := map[string]string{}
		for k := range 80 {
			headers[fmt.Sprintf("X-%02d", k)] = fmt.Sprint(i, k)
		}
		line, err := json.Marshal(map[string]any{"headers": headers, "body": fmt.Sprint("[", i, "]")})
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, []string{"WAYBILL_WEBHOOK_SECRET=right-secret"}, "signature", "learn", "--from", file, "-o", "json", "--jq", ".untried|length")
	if code != command.Unverified || strings.TrimSpace(stdout) != "16" || !strings.Contains(stderr, "16 places not tried") || !strings.Contains(stderr, "header:X-64") {
		t.Errorf("status %d, %s%s; want the headers named that were not tried", code, stdout, stderr)
	}
}
