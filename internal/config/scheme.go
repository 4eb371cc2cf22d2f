package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Scheme says how a sender signs its deliveries. What the configuration leaves
// out has its default here; whether the parts fit together is not checked.
//
// Assumed: the interface shows neither the signature's header nor its procedure.
type Scheme struct {
	Kind      string // hmac, digest or token
	Algorithm string // sha256, sha512, sha1 or md5
	Key       SchemeKey
	Signed    string // template of the signed bytes, such as {timestamp}.{body}
	Signature SchemeSignature
	Timestamp SchemeTimestamp
	PublicURL string // for {url}; empty if not set
	// AcceptWeak allows a digest without {secret}, which proves nothing.
	AcceptWeak bool
}

// SchemeKey says how the secret becomes a key.
type SchemeKey struct {
	StripPrefix string // cut off the secret before decoding; empty for nothing
	Encoding    string // utf8, base64 or hex
	Normalize   string // none, nfkd or nfc
}

// SchemeSignature says where a delivery carries its signature, and in which form.
type SchemeSignature struct {
	From      string // header:N, query:N or json:PATH
	Format    string // plain, list or kv
	Separator string // of list and kv: what stands between entries; empty for a space in list, a comma in kv
	Tag       string // of list and kv: which entries are signatures
	Prefix    string // required, then stripped; empty for none
	Encoding  string // hex, base64, base64url or base64any
}

// SchemeTimestamp says where a delivery carries its time, and how old it may be.
type SchemeTimestamp struct {
	From      string // header:N, sig:K or json:PATH; empty if there is none
	Unit      string // s, ms, rfc3339 or rfc2822
	Tolerance time.Duration
}

// schemePart is one text of a scheme: its name in the file, what it takes, and
// where it is kept.
type schemePart struct {
	name    string
	choices []string // nil for any text
	places  []string // kinds of KIND:NAME; nil for any text
	preset  string
	text    func(*Scheme) *string
}

// The parts of a scheme that are no text.
const (
	tolerance  = "timestamp.tolerance"
	acceptWeak = "accept_weak"
)

func schemeParts() []schemePart {
	return []schemePart{
		{"kind", []string{"hmac", "digest", "token"}, nil, "hmac", func(s *Scheme) *string { return &s.Kind }},
		{"algorithm", []string{"sha256", "sha512", "sha1", "md5"}, nil, "sha256", func(s *Scheme) *string { return &s.Algorithm }},
		{"key.strip_prefix", nil, nil, "", func(s *Scheme) *string { return &s.Key.StripPrefix }},
		{"key.encoding", []string{"utf8", "base64", "hex"}, nil, "utf8", func(s *Scheme) *string { return &s.Key.Encoding }},
		{"key.normalize", []string{"none", "nfkd", "nfc"}, nil, "none", func(s *Scheme) *string { return &s.Key.Normalize }},
		{"signed", nil, nil, "{body}", func(s *Scheme) *string { return &s.Signed }},
		{"signature.from", nil, []string{"header", "query", "json"}, "header:X-Signature", func(s *Scheme) *string { return &s.Signature.From }},
		{"signature.format", []string{"plain", "list", "kv"}, nil, "plain", func(s *Scheme) *string { return &s.Signature.Format }},
		{"signature.separator", []string{"", ",", ";", " ", "&", "|"}, nil, "", func(s *Scheme) *string { return &s.Signature.Separator }},
		{"signature.tag", nil, nil, "v1", func(s *Scheme) *string { return &s.Signature.Tag }},
		{"signature.prefix", nil, nil, "", func(s *Scheme) *string { return &s.Signature.Prefix }},
		{"signature.encoding", []string{"hex", "base64", "base64url", "base64any"}, nil, "hex", func(s *Scheme) *string { return &s.Signature.Encoding }},
		{"timestamp.from", nil, []string{"", "header", "sig", "json"}, "", func(s *Scheme) *string { return &s.Timestamp.From }},
		{"timestamp.unit", []string{"s", "ms", "rfc3339", "rfc2822"}, nil, "s", func(s *Scheme) *string { return &s.Timestamp.Unit }},
		{"public_url", nil, nil, "", func(s *Scheme) *string { return &s.PublicURL }},
	}
}

// schemeNames returns the name of every part of a scheme.
func schemeNames() []string {
	all := []string{tolerance, acceptWeak}
	for _, p := range schemeParts() {
		all = append(all, p.name)
	}
	return all
}

// newScheme returns a scheme with every default.
func newScheme() Scheme {
	s := Scheme{Timestamp: SchemeTimestamp{Tolerance: 5 * time.Minute}}
	for _, p := range schemeParts() {
		*p.text(&s) = p.preset
	}
	return s
}

// set sets the part of that name.
func (s *Scheme) set(name, value string) *KeyError {
	if name == tolerance {
		d, err := ParseDuration(value)
		if err != nil {
			return wrong(err.Error(), "")
		}
		if d <= 0 {
			return wrong("wants more than 0, not \""+short(value)+"\"", "no clock agrees to that; leave it out for 5m")
		}
		s.Timestamp.Tolerance = d
		return nil
	}
	if name == acceptWeak {
		if s.AcceptWeak = value == "true"; !s.AcceptWeak && value != "false" {
			return wrong("wants true or false, not \""+short(value)+"\"", "")
		}
		return nil
	}
	i := slices.IndexFunc(schemeParts(), func(p schemePart) bool { return p.name == name })
	p := schemeParts()[i]
	if want := p.unmet(value); want != "" {
		return wrong("wants "+want+", not \""+short(value)+"\"", "")
	}
	*p.text(s) = value
	return nil
}

// unmet returns what the part wants if value is not it.
func (p schemePart) unmet(value string) string {
	if p.choices != nil && !slices.Contains(p.choices, value) {
		if p.choices[0] == "" { // signs, which would not show without quotes
			return fmt.Sprintf("one of %q", p.choices[1:])
		}
		return "one of " + strings.Join(p.choices, ", ")
	}
	if p.places == nil || value == "" && slices.Contains(p.places, "") {
		return ""
	}
	kind, name, _ := strings.Cut(value, ":")
	if kind == "" || !slices.Contains(p.places, kind) || name == "" && kind != "json" {
		return "one of " + strings.Join(slices.DeleteFunc(slices.Clone(p.places), func(k string) bool { return k == "" }), ":…, ") + ":…"
	}
	if kind == "json" {
		return pointer(name)
	}
	return oneLineFilled(name)
}

// plain gives the scheme as it stands in a file.
func (s Scheme) plain() map[string]any {
	all := map[string]any{}
	put := func(name string, value any) {
		section, last, nested := strings.Cut(name, ".")
		if !nested {
			all[name] = value
			return
		}
		part, ok := all[section].(map[string]any)
		if !ok {
			part = map[string]any{}
			all[section] = part
		}
		part[last] = value
	}
	for _, p := range schemeParts() {
		put(p.name, *p.text(&s))
	}
	put(tolerance, FormatDuration(s.Timestamp.Tolerance))
	put(acceptWeak, s.AcceptWeak)
	return all
}

// Settings gives the scheme as it stands in a file, every part with its value,
// as maps of JSON's own types.
func (s Scheme) Settings() map[string]any { return s.plain() }

// YAML gives the scheme as it is written into a file: the parts that differ
// from their defaults, and the kind.
func (s Scheme) YAML() string {
	text, err := yaml.Marshal(s.node())
	if err != nil {
		return "" // of texts alone it cannot fail
	}
	return string(text)
}

// node is the scheme for a file, without what has its default.
func (s Scheme) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name, value string, style yaml.Style) {
		at := n
		section, last, nested := strings.Cut(name, ".")
		if nested {
			at, _ = child(n, section) // what was made here is a mapping
			at.Style = yaml.FlowStyle
			name = last
		}
		at.Content = append(at.Content, textNode(name, 0), textNode(value, style))
	}
	for _, p := range schemeParts() {
		if value := *p.text(&s); value != p.preset || p.name == "kind" {
			style := yaml.Style(0)
			if strings.ContainsAny(value, "{}:,;&|\n ") {
				style = yaml.DoubleQuotedStyle
			}
			put(p.name, value, style)
		}
	}
	if d := newScheme().Timestamp.Tolerance; s.Timestamp.Tolerance != d {
		put(tolerance, FormatDuration(s.Timestamp.Tolerance), 0)
	}
	if s.AcceptWeak {
		n.Content = append(n.Content, textNode(acceptWeak, 0), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	return n
}

// pointer wants an RFC 6901 pointer.
func pointer(s string) string {
	const want = "an RFC 6901 pointer such as /meta/code"
	if s != "" && s[0] != '/' {
		return want
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return want
		}
	}
	return ""
}
