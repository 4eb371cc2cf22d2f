package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cause is why a delivery did not verify. All but the last are proven: with the cause removed, the delivery verifies.
type Cause string

// The causes.
const (
	CauseNone         Cause = "none"          // it verifies
	CauseTime         Cause = "time"          // valid except for its time: a wrong clock, a late delivery, or a replay
	CauseOtherSecret  Cause = "other_secret"  // another secret known here, such as the API key
	CauseKeyForm      Cause = "key_form"      // the right secret, turned into a key in another way
	CauseSecretSpace  Cause = "secret_space"  // white space or a line break around the secret
	CauseBodyChanged  Cause = "body_changed"  // rewritten on its way
	CauseElsewhere    Cause = "elsewhere"     // the signature is in another place or form
	CauseOtherScheme  Cause = "other_scheme"  // signed in another way
	CauseNotExplained Cause = "not_explained" // none of these: another secret, altered, or not the service's
)

// Diagnosis is why a delivery did not verify.
type Diagnosis struct {
	Verdict Verdict
	Cause   Cause
	Text    string  // in words, without any secret
	Hint    string  // what to do about it
	Scheme  *Scheme // for CauseElsewhere, CauseKeyForm and CauseOtherScheme: the scheme in which it verifies
}

// Diagnose says why d does not verify in a scheme with secrets, verified at the time of its receipt. others are
// secrets that the sender may have used instead, such as the API key. It returns the errors of [NewVerifier] and ctx.
func Diagnose(ctx context.Context, s Scheme, secrets, others []Secret, d Sample) (Diagnosis, error) {
	v, err := NewVerifier(s, secrets)
	if err != nil {
		return Diagnosis{}, err
	}
	x := diagnoser{scheme: s.WithDefaults(), secrets: secrets, others: others, sample: d}
	result := Diagnosis{Verdict: v.Verify(d.Request, d.At)}
	causes := []func(*Diagnosis) bool{x.time, x.otherSecret, x.keyForm, x.altered, x.elsewhere}
	for _, found := range causes {
		if found(&result) {
			return result, nil
		}
	}
	lesson, err := Learn(ctx, []Sample{d}, slices.Concat(secrets, others), x.scheme.PublicURL)
	if err != nil {
		return Diagnosis{}, err
	}
	for _, c := range lesson.Candidates {
		if c.Strength == StrengthKeyless {
			continue // proves nothing
		}
		result.Cause, result.Scheme = CauseOtherScheme, &c.Scheme
		result.Text = fmt.Sprintf("it has another signature: %s over %s, at %s", c.Scheme.Kind, c.Scheme.Signed,
			c.Scheme.Signature.From)
		if c.Scheme.Kind == KindToken {
			result.Text = "it is not signed, but contains a secret in clear at " + c.Scheme.Signature.From
		}
		if c.Obstacle != "" {
			result.Text += "; also, " + c.Obstacle
		}
		result.Hint = "run `waybill signature learn` over several deliveries"
		return result, nil
	}
	x.notExplained(&result)
	return result, nil
}

type diagnoser struct {
	scheme          Scheme
	secrets, others []Secret
	sample          Sample
}

func (d *Diagnosis) found(cause Cause, text, hint string) bool {
	d.Cause, d.Text, d.Hint = cause, text, hint
	return true
}

// matches reports whether r was signed in s with one of secrets, at any time.
func (x *diagnoser) matches(s Scheme, secrets []Secret, r Request) bool {
	usable, _ := s.Key.usable(secrets)
	v, err := NewVerifier(s, usable)
	return err == nil && v.Verify(r, x.sample.At).SecretIndex >= 0
}

func (x *diagnoser) time(d *Diagnosis) bool {
	v := d.Verdict
	switch {
	case v.OK && !v.BodyAuthenticated:
		return d.found(CauseNone, "it verifies; body not authenticated", "")
	case v.OK:
		return d.found(CauseNone, "it verifies", "")
	case v.SecretIndex < 0:
		return false
	case v.Reason == ReasonTimestampMalformed:
		return d.found(CauseTime, "the signature is correct, but its time can't be read as "+x.scheme.Timestamp.Unit,
			"check timestamp.unit of the scheme")
	}
	side := "before"
	if v.Skew > 0 {
		side = "after"
	}
	text := fmt.Sprintf("the signature is correct, but was made %s %s the delivery was received; %s are allowed",
		FormatSkew(v.Skew), side, span(x.scheme.Timestamp.Tolerance))
	return d.found(CauseTime, text, "check this computer's clock; if it is right, the delivery was late or was replayed")
}

// FormatSkew formats the difference between two clocks: in days from two days on, else to the second.
func FormatSkew(d time.Duration) string {
	const day = 24 * time.Hour
	if d = d.Abs(); d >= 2*day {
		return strconv.FormatInt(int64(d.Round(day)/day), 10) + " days"
	}
	return d.Round(time.Second).String()
}

// span formats a duration without empty seconds.
func span(d time.Duration) string {
	if d%time.Minute == 0 && d != 0 {
		return strings.TrimSuffix(d.String(), "0s")
	}
	return d.String()
}

func (x *diagnoser) otherSecret(d *Diagnosis) bool {
	for _, o := range x.others {
		if x.matches(x.scheme, []Secret{o}, x.sample.Request) {
			return d.found(CauseOtherSecret, "it is signed with "+o.Name+" instead of the webhook secret",
				"add that secret to webhook.secrets")
		}
	}
	return false
}

func (x *diagnoser) keyForm(d *Diagnosis) bool {
	for _, key := range keysOf(x.secrets) {
		s := x.scheme
		s.Key = key.form
		if s = s.WithDefaults(); x.matches(s, x.secrets, x.sample.Request) {
			d.Scheme = &s
			text := "the secret is correct, but the key is made from it in another way: key.encoding " + s.Key.Encoding
			if s.Key.StripPrefix != "" {
				text += ", key.strip_prefix " + s.Key.StripPrefix
			}
			if s.Key.Normalize != NormalizeNone {
				text += ", key.normalize " + s.Key.Normalize
			}
			return d.found(CauseKeyForm, text, "change key of the scheme")
		}
	}
	return false
}

func (x *diagnoser) altered(d *Diagnosis) bool {
	for _, a := range alterations() {
		secrets, samples, ok := a.apply(x.secrets, []Sample{x.sample})
		if !ok || !x.matches(x.scheme, secrets, samples[0].Request) {
			continue
		}
		hint := "check the secret's file or variable for spaces and line breaks"
		if a.cause == CauseBodyChanged {
			hint = "a proxy or tunnel rewrites bodies; configure it to forward them byte for byte"
		}
		return d.found(a.cause, a.words, hint)
	}
	return false
}

func (x *diagnoser) elsewhere(d *Diagnosis) bool {
	for _, l := range signatureCandidates(x.sample.Request, slices.Concat(x.secrets, x.others)) {
		s := x.scheme
		s.Signature, s.Algorithm = l.signature, l.algorithm
		if s = s.WithDefaults(); !x.matches(s, x.secrets, x.sample.Request) {
			continue
		}
		d.Scheme = &s
		text := fmt.Sprintf("the signature is at %s, not at %s", l.signature.From, x.scheme.Signature.From)
		if strings.EqualFold(l.signature.From, x.scheme.Signature.From) {
			text = fmt.Sprintf("the signature at %s has another form: %s, %s", l.signature.From, s.Algorithm, s.Signature.form())
		}
		return d.found(CauseElsewhere, text, "change signature of the scheme")
	}
	return false
}

func (s Signature) form() string {
	text := fmt.Sprintf("encoding %s, prefix %q", s.Encoding, s.Prefix)
	if between, _ := s.separators(); between != "" {
		text += fmt.Sprintf(", format %s with separator %q and tag %q", s.Format, between, s.Tag)
	}
	return text
}

// otherEntries handles a value at the signature's source that has no entry with the tag.
func (x *diagnoser) otherEntries(d *Diagnosis) bool {
	from, _ := parseSource(x.scheme.Signature.From)
	if _, times := (&delivery{Request: x.sample.Request}).find(from); times == 0 {
		return false
	}
	d.Text = fmt.Sprintf("the value at %s has no entry with tag %q", x.scheme.Signature.From, x.scheme.Signature.Tag)
	d.Hint = "compare it with format, separator and tag of the scheme's signature"
	for _, l := range allSignatureCandidates(x.sample.Request) {
		if at, _ := parseSource(l.signature.From); at.same(from) && l.signature.Format != FormatPlain &&
			!l.holdsSecret(slices.Concat(x.secrets, x.others)) {
			d.Text += "; read in another way, it has a signature: " + l.signature.form()
			d.Hint = "change signature of the scheme, or run `waybill signature learn`"
			break
		}
	}
	return true
}

func (x *diagnoser) notExplained(d *Diagnosis) {
	d.Cause = CauseNotExplained
	from := x.scheme.Signature.From
	switch d.Verdict.Reason {
	case ReasonSignatureMissing:
		if x.otherEntries(d) {
			return
		}
		d.Text = "there is no signature at " + from
		d.Hint = "it was not sent by the service, or a proxy or tunnel removed the signature"
	case ReasonSignatureMalformed:
		d.Text = "the value at " + from + " is empty, cut, or not in the form of the scheme"
		d.Hint = "compare it with signature of the scheme"
	case ReasonHeaderRepeated:
		d.Text = "the signature or a signed part appears more than once"
		d.Hint = "a proxy or tunnel adds it again, or the delivery is forged"
	case ReasonTimestampMissing:
		d.Text, d.Hint = "there is no timestamp at "+x.scheme.Timestamp.From, "check timestamp.from of the scheme"
	case ReasonSignedPartMissing:
		d.Text, d.Hint = "a signed part is missing: signed is "+x.scheme.Signed, "check signed of the scheme"
	case ReasonBodyEmpty:
		d.Text, d.Hint = "the body is empty", "it was not sent by the service, or a proxy or tunnel removed the body"
	default:
		secrets := "the secret does not make"
		if n := len(x.secrets); n > 1 {
			secrets = fmt.Sprintf("none of the %d webhook secrets makes", n)
		}
		d.Text = secrets + " this signature: another secret was used, or the body or a signed header was changed"
		d.Hint = "compare the secret with the one in the portal; if other deliveries verify, this one was changed or forged"
	}
}
