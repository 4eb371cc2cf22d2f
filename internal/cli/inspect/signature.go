package inspect

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const (
	maxPartText   = 4 << 10          // bytes of a signed part that is text
	maxPartHex    = 1 << 10          // bytes of another signed part
	maxDiagnosed  = 256 << 10        // bytes of the largest body that is diagnosed
	diagnosisTime = 10 * time.Second // for a diagnosis
)

// signatureJSON is the verification of a delivery by the current settings, as of its receipt.
type signatureJSON struct {
	*signature.Verdict // null members if there is no scheme or no secret

	Problem string     `json:"problem,omitempty"` // why it can't be verified
	Hint    string     `json:"hint,omitempty"`
	Steps   []stepJSON `json:"steps"`
}

type stepJSON struct {
	Step   string      `json:"step"`   // scheme, signature, timestamp, signed, secret, comparison, clock or verdict
	Title  string      `json:"title"`  // of the step, for people
	Result string      `json:"result"` // ok, failed, skipped, or empty if nothing is decided here
	Text   string      `json:"text"`
	Values []valueJSON `json:"values,omitempty"`
}

type valueJSON struct {
	Name string `json:"name"`
	contentJSON
}

const (
	passed  = "ok"
	failed  = "failed"
	skipped = "skipped"
)

func (p *Page) signature(d found) *signatureJSON {
	j := &signatureJSON{Steps: []stepJSON{}}
	v, err := signature.NewVerifier(p.Call.Session, "")
	if err != nil {
		e := p.explain(err)
		j.Problem, j.Hint = e.Message, e.Hint
		return j
	}
	t := v.Trace(d.Request(), d.ReceivedAt)
	verdict := signature.NewVerdict(d.ID(), v.Name, d.Sample(), t.Verdict)
	j.Verdict = &verdict
	x := explainer{t, v.Name, d}
	j.Steps = append(j.Steps, x.scheme(), x.received("signature", "Signature", t.Signature, x.signature))
	if t.Timestamp.From != "" {
		j.Steps = append(j.Steps, x.received("timestamp", "Timestamp", t.Timestamp, x.timestamp))
	}
	if t.Parts != nil {
		j.Steps = append(j.Steps, x.signed())
	}
	j.Steps = append(j.Steps, x.secrets(), x.comparison())
	if t.Timestamp.From != "" {
		j.Steps = append(j.Steps, x.clock())
	}
	j.Steps = append(j.Steps, x.verdict())
	return j
}

type explainer struct {
	webhook.Trace
	name string // of the scheme
	d    found
}

// value returns a value for the page. Values of headers with names of credentials are masked.
func (x explainer) value(name, from, value string) valueJSON {
	shown := x.d.mask.Text(value)
	if _, source, _ := strings.Cut(from, ":"); value != "" && redact.IsCredential(source) {
		shown = webhook.Mask
	}
	v := valueJSON{name, newContent([]byte(shown), maxPartText, maxPartHex)}
	v.Bytes, v.Masked = len(value), shown != value
	if value == webhook.Mask {
		v.Bytes, v.Masked = 0, true // hides the length of a token too
	}
	return v
}

func (x explainer) scheme() stepJSON {
	s := x.Scheme
	text := map[string]string{webhook.KindHMAC: "HMAC-", webhook.KindDigest: "a plain hash, "}[s.Kind] +
		strings.ToUpper(s.Algorithm) + " of " + s.Signed + ", in " + s.Signature.Encoding
	if s.Kind == webhook.KindToken {
		text = "the secret itself, in clear"
	}
	step := stepJSON{Step: "scheme", Title: "Scheme", Text: fmt.Sprintf("%s: %s, at %s", x.name, text, s.Signature.From)}
	if s.Signature.Prefix != "" {
		step.Text += fmt.Sprintf(" after %q", s.Signature.Prefix)
	}
	step.Text += "; " + x.Strength.String()
	return step
}

// received returns the step for a value that must occur exactly once. check returns the result and text for it.
func (x explainer) received(name, title string, at webhook.Found, check func() (result, text string)) stepJSON {
	step := stepJSON{Step: name, Title: title, Result: failed, Text: "There is no " + name + " at " + at.From}
	switch {
	case at.Times == 0:
		return step
	case at.Times > 1:
		step.Text = fmt.Sprintf("%s is there %d times", at.From, at.Times)
	default:
		step.Result, step.Text = check()
	}
	step.Values = append(step.Values, x.value("received", at.From, at.Value))
	return step
}

func (x explainer) signature() (result, text string) {
	from, scheme := x.Signature.From, x.Scheme.Signature
	wellFormed := 0
	for _, e := range x.Entries {
		if e.WellFormed {
			wellFormed++
		}
	}
	switch {
	case x.Entries == nil && scheme.Format != webhook.FormatPlain:
		return failed, fmt.Sprintf("The value at %s has no entry with tag %q in format %s", from, scheme.Tag, scheme.Format)
	case wellFormed == 0:
		return failed, "The value at " + from + " is not in the form of the scheme: its prefix, encoding or length differs"
	}
	return passed, fmt.Sprintf("Read from %s: %s", from, command.Plural(wellFormed, "signature"))
}

func (x explainer) timestamp() (result, text string) {
	from := x.Timestamp.From
	if x.Time.IsZero() {
		return failed, fmt.Sprintf("The timestamp at %s can't be read as %s", from, x.Scheme.Timestamp.Unit)
	}
	return passed, fmt.Sprintf("Signed at %s, by %s", x.Time.UTC().Format(time.RFC3339), from)
}

func (x explainer) signed() stepJSON {
	step := stepJSON{Step: "signed", Title: "What is signed", Result: passed, Text: x.Scheme.Signed}
	for _, part := range x.Parts {
		var v valueJSON
		switch {
		case part.Reason != "":
			step.Result, step.Text = failed, "A part that is signed is missing: {"+part.Name+"}"
			continue
		case part.Name == "secret":
			v = x.value("{secret}", "", webhook.Mask)
		case part.Name == "url":
			v = x.value("{url}", "", forward.ShowAddress(string(part.Bytes)))
		case part.Name == "body":
			v = valueJSON{"{body}", content(x.d.mask, part.Bytes, maxPartText, maxPartHex)}
		case part.Name == "":
			v = x.value("", "", string(part.Bytes))
		default:
			v = x.value("{"+part.Name+"}", part.Name, string(part.Bytes))
		}
		step.Values = append(step.Values, v)
	}
	return step
}

func (x explainer) secrets() stepJSON {
	key := x.Scheme.Key
	how := "as it is"
	if key.Encoding != webhook.EncodingUTF8 {
		how = "decoded from " + key.Encoding
	}
	if key.StripPrefix != "" {
		how += fmt.Sprintf(", without its prefix %q", key.StripPrefix)
	}
	if key.Normalize != webhook.NormalizeNone {
		how += ", in normal form " + strings.ToUpper(key.Normalize)
	}
	text := fmt.Sprintf("Each secret is used %s: %s", how, strings.Join(x.Secrets, ", "))
	return stepJSON{Step: "secret", Title: "Secrets", Text: text}
}

func (x explainer) comparison() stepJSON {
	step := stepJSON{Step: "comparison", Title: "Expected and received", Result: failed}
	step.Text = "No secret makes this signature"
	switch {
	case x.Expected == nil:
		step.Result, step.Text = skipped, "Nothing to compare: a part that is signed is missing"
		return step
	case len(x.Entries) == 0:
		step.Result, step.Text = skipped, "No signature to compare with"
	}
	for _, e := range x.Expected {
		name := "expected with " + e.Secret
		if e.Matches {
			step.Result, step.Text = passed, "The signature is the one that "+e.Secret+" makes"
			name += ", equal"
		} else if x.Scheme.Kind != webhook.KindToken {
			name += ", its start"
		}
		step.Values = append(step.Values, x.value(name, "", e.Value))
	}
	for _, e := range x.Entries {
		name := "received"
		if !e.WellFormed {
			name = "received, not in the form of the scheme"
		}
		step.Values = append(step.Values, x.value(name, x.Signature.From, e.Text))
	}
	return step
}

func (x explainer) clock() stepJSON {
	if x.Time.IsZero() {
		return stepJSON{Step: "clock", Title: "Clock", Result: skipped, Text: "No time to compare with the clock"}
	}
	skew, side := x.Time.Sub(x.d.ReceivedAt), "before"
	if skew > 0 {
		side = "after"
	}
	tolerance := x.Scheme.Timestamp.Tolerance
	text := fmt.Sprintf("Signed %s %s it was received; %s allowed",
		skew.Abs().Round(time.Millisecond), side, config.FormatDuration(tolerance))
	step := stepJSON{Step: "clock", Title: "Clock", Result: passed, Text: text}
	if skew.Abs() > tolerance {
		step.Result = failed
	}
	return step
}

func (x explainer) verdict() stepJSON {
	v := x.Trace.Verdict
	step := stepJSON{Step: "verdict", Title: "Verdict", Result: failed, Text: "It does not verify: " + string(v.Reason)}
	if v.OK {
		step.Result, step.Text = passed, "It verifies with "+v.SecretName
		if !v.BodyAuthenticated {
			step.Text += "; body not authenticated"
		}
	}
	return step
}

type diagnosisJSON struct {
	signature.Explanation
	FitsYAML string `json:"fitsYAML,omitempty"` // the scheme that it verifies in, as the configuration has it
	Learn    string `json:"learn,omitempty"`    // the command that finds and sets a scheme that fits
}

func (p *Page) diagnose(r *http.Request) (any, error) {
	d, err := p.findWhole(r)
	if err != nil {
		return nil, err
	}
	name, _, err := signature.SchemeInForce(p.Call.Session, "")
	if err != nil {
		return nil, err
	}
	hint := "run `" + p.Call.CommandLine("signature", "explain", d.ID()) + "`"
	if len(d.Body) > maxDiagnosed {
		const message = "the body is too large to search for the cause here"
		return nil, failure(http.StatusUnprocessableEntity, command.Usage, message, hint)
	}
	ctx, cancel := context.WithTimeout(r.Context(), diagnosisTime)
	defer cancel()
	j, err := signature.Explain(ctx, p.Call.Session, d.ID(), name, d.Sample(), view.HeaderOptions{})
	if ctx.Err() != nil && r.Context().Err() == nil {
		err = failure(http.StatusServiceUnavailable, command.Pending, "the search for the cause took too long", hint)
	}
	if err != nil {
		return nil, err
	}
	j.Text = d.mask.Text(j.Text)
	out := diagnosisJSON{Explanation: j}
	if j.FitsIn != nil {
		out.FitsYAML = edit.SchemeYAML(*j.FitsIn)
		out.Learn = p.learnCommand()
	}
	return out, nil
}
