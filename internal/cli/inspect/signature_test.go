package inspect

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// stepResults returns the results of the steps by their names.
func stepResults(j *signatureJSON) map[string]string {
	all := map[string]string{}
	for _, s := range j.Steps {
		all[s.Step] = s.Result
	}
	return all
}

// Every preset: one delivery that verifies, one whose body was changed, one that is late
// and one without headers.
func TestSignatureStepsOfEveryPreset(t *testing.T) {
	for _, p := range webhook.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			secret := testSecret
			if p.Scheme.Key.Encoding == webhook.EncodingBase64 {
				secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
			}
			sign := func(d inbox.Delivery, at time.Time) inbox.Delivery {
				out, err := webhook.Sign(p.Scheme, webhook.Secret{Value: []byte(secret)}, d.Request(), at)
				if err != nil {
					t.Fatal(err)
				}
				d.Header = out.Apply(d.Request()).Header
				return d
			}
			k := newDesk(t, nil, func(db *store.DB) {
				d := received("[" + eventText("a", "N1", "") + "]")
				good := sign(d, d.ReceivedAt)
				changed, late := good, sign(d, d.ReceivedAt.Add(-time.Hour))
				changed.Body = []byte("[" + eventText("b", "N1", "") + "]")
				putAll(t, db, good, changed, late, d)
			}, "WAYBILL_WEBHOOK_SECRET="+secret, "WAYBILL_WEBHOOK_SCHEME="+p.Name)
			timed, covered, token := p.Scheme.Timestamp.From != "", p.Scheme.CoversBody(), p.Scheme.Kind == webhook.KindToken
			for _, tt := range []struct {
				id, verdict, comparison, clock string
			}{
				{"1", passed, passed, passed},
				{"2", map[bool]string{true: failed, false: passed}[covered], map[bool]string{true: failed, false: passed}[covered], passed},
				{"3", map[bool]string{true: failed, false: passed}[timed], passed, failed},
				{"4", failed, skipped, skipped},
			} {
				a, j := k.ask("/deliveries/"+tt.id), k.show(tt.id).Signature
				got := stepResults(j)
				if got["verdict"] != tt.verdict || (got["signature"] == passed) != (tt.id != "4") || got["comparison"] != tt.comparison || timed && got["clock"] != tt.clock || j.Verified != (tt.verdict == passed) {
					t.Errorf("delivery %s: %v, verified %v; want %+v", tt.id, got, j.Verified, tt)
				}
				if _, ok := got["clock"]; ok != timed {
					t.Errorf("delivery %s: a step about the clock: %v", tt.id, ok)
				}
				if _, ok := got["signed"]; ok == token {
					t.Errorf("delivery %s: a step about what is signed: %v", tt.id, ok)
				}
				if strings.Contains(a.text, secret) || strings.Contains(a.text, strings.TrimPrefix(secret, "whsec_")) {
					t.Errorf("the answer shows the secret: %s", a.text)
				}
				for _, s := range j.Steps {
					if s.Title == "" || s.Text == "" || s.Step == "signature" && (s.Result == passed) != strings.HasPrefix(s.Text, "Read from ") {
						t.Errorf("step %+v", s)
					}
				}
				if tt.verdict == failed {
					k.wants(k.ask("/deliveries/"+tt.id+"/diagnosis"), http.StatusOK, `"cause":"`, `"text":"`)
				}
			}
		})
	}
}

func TestSignatureShowsWhatWasSignedWithoutCredentials(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		d := received(`{"token":"`+testSecret+`"}`, "X-Api-Token", "clear-token", "X-Id", "id-\x01", "X-Signature", "00")
		d.Path = "/p/" + testSecret
		putAll(t, db, d)
	}, "WAYBILL_WEBHOOK_SECRET="+testSecret, "WAYBILL_WEBHOOK_SCHEME=mine",
		`WAYBILL_WEBHOOK_SCHEMES={"mine":{"kind":"digest","signed":"{header:X-Api-Token}|{header:X-Id}|{path}|{secret}|{body}"}}`)
	a, j := k.ask("/deliveries/1"), k.show("1").Signature
	shown := ""
	for _, s := range j.Steps {
		for _, v := range s.Values {
			if s.Step == "signed" {
				shown += *v.Text
			}
		}
	}
	if want := "***|id-\x01|/p/***|***|" + `{"token":"***"}`; shown != want {
		t.Errorf("signed shows as %q; want %q", shown, want)
	}
	for _, secret := range []string{testSecret, "clear-token"} {
		if strings.Contains(a.text, secret) {
			t.Errorf("the answer shows %q: %s", secret, a.text)
		}
	}
}

func TestSignatureWithoutSchemeOrSecret(t *testing.T) {
	fill := func(db *store.DB) { putAll(t, db, received("[]")) }
	unset := newDesk(t, nil, fill)
	if s, c := unset.show("1").Signature, unset.show("1").Commands; !strings.Contains(s.Problem, "no signature scheme is set") || s.Hint == "" || s.Verdict != nil || len(s.Steps) != 0 || c.Learn != "waybill signature learn --pin learned" {
		t.Errorf("without a scheme: %+v, %+v", s, c)
	}
	unset.wants(unset.ask("/deliveries/1/diagnosis"), http.StatusBadRequest, "no signature scheme")
	keyless := newDesk(t, nil, fill, "WAYBILL_WEBHOOK_SCHEME=hmac-body-hex")
	if s := keyless.show("1").Signature; !strings.Contains(s.Problem, "no webhook secret") || s.Hint == "" {
		t.Errorf("without a secret: %+v", s)
	}
}

func TestDeliveryShowsWithASchemeThatIsNotThere(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) { putAll(t, db, received("[]")) }, "WAYBILL_WEBHOOK_SCHEME=gone")
	if s := k.show("1").Signature; !strings.Contains(s.Problem, "unknown scheme") || s.Hint == "" {
		t.Errorf("signature %+v", s)
	}
}

func TestDiagnosisNamesTheCause(t *testing.T) {
	k := newDesk(t, nil, func(db *store.DB) {
		d := signed(t, "hmac-body-hex", received("["+eventText("a", "N1", "")+"]"))
		d.Header[0].Name = "X-Other"
		late := received("[]", "X-Signature", "00")
		large := received(`"`+strings.Repeat("x", maxDiagnosed)+`"`, "X-Signature", "00")
		putAll(t, db, d, late, large)
	}, inEnforce...)
	k.wants(k.ask("/deliveries/1/diagnosis"), http.StatusOK, `"cause":"elsewhere"`, "header:X-Other", `"fitsYAML":"`, "waybill signature learn --pin learned")
	k.wants(k.ask("/deliveries/2/diagnosis"), http.StatusOK, `"cause":"not_explained"`)
	k.wants(k.ask("/deliveries/3/diagnosis"), http.StatusUnprocessableEntity, "too large", "waybill signature explain 3")
}
