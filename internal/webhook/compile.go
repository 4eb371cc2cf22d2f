package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // some senders use it, in schemes that are configured by name
	"crypto/sha1" //nolint:gosec // likewise
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"maps"
	"net/url"
	"slices"
	"strings"
)

type compiled struct {
	scheme    Scheme // with its defaults
	parts     []part // of the template
	signature source
	timestamp source
	newHash   func() hash.Hash
}

// compile returns a [*SchemeError] for the first invalid setting.
func compile(s Scheme) (*compiled, error) {
	c := &compiled{scheme: s.WithDefaults()}
	checks := []func() error{c.checkWords, c.checkTemplate, c.checkSignature, c.checkTimestamp, c.checkURL}
	for _, check := range checks {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// separatorsBetween lists the possible separators between entries, likeliest first. None is a digit of an encoding.
var separatorsBetween = []string{",", ";", " ", "&", "|"}

// Setting is a setting of a scheme whose value is text.
type Setting struct {
	Name  string   // as in the configuration and in [SchemeError]
	Words []string // the allowed values; nil for any text
	Of    func(*Scheme) *string
}

// Choices returns the allowed values as a list for people.
func (s Setting) Choices() string {
	if slices.Contains(s.Words, " ") { // separators, which would not show without quotes
		return fmt.Sprintf("%q", s.Words)
	}
	return strings.Join(s.Words, ", ")
}

var settings = []Setting{
	{"kind", []string{KindHMAC, KindDigest, KindToken}, func(s *Scheme) *string { return &s.Kind }},
	{"algorithm", []string{AlgorithmSHA256, AlgorithmSHA512, AlgorithmSHA1, AlgorithmMD5}, func(s *Scheme) *string {
		return &s.Algorithm
	}},
	{"key.strip_prefix", nil, func(s *Scheme) *string { return &s.Key.StripPrefix }},
	{"key.encoding", []string{EncodingUTF8, EncodingBase64, EncodingHex}, func(s *Scheme) *string {
		return &s.Key.Encoding
	}},
	{"key.normalize", []string{NormalizeNone, NormalizeNFKD, NormalizeNFC}, func(s *Scheme) *string {
		return &s.Key.Normalize
	}},
	{"signed", nil, func(s *Scheme) *string { return &s.Signed }},
	{"signature.from", nil, func(s *Scheme) *string { return &s.Signature.From }},
	{"signature.format", []string{FormatPlain, FormatList, FormatKV}, func(s *Scheme) *string {
		return &s.Signature.Format
	}},
	{"signature.separator", separatorsBetween, func(s *Scheme) *string { return &s.Signature.Separator }},
	{"signature.tag", nil, func(s *Scheme) *string { return &s.Signature.Tag }},
	{"signature.prefix", nil, func(s *Scheme) *string { return &s.Signature.Prefix }},
	{
		"signature.encoding",
		[]string{EncodingHex, EncodingBase64, EncodingBase64URL, EncodingBase64Any},
		func(s *Scheme) *string { return &s.Signature.Encoding },
	},
	{"timestamp.from", nil, func(s *Scheme) *string { return &s.Timestamp.From }},
	{"timestamp.unit", []string{UnitSeconds, UnitMilliseconds, UnitRFC3339, UnitRFC2822}, func(s *Scheme) *string {
		return &s.Timestamp.Unit
	}},
	{"public_url", nil, func(s *Scheme) *string { return &s.PublicURL }},
}

// Settings returns the settings of a scheme whose values are text.
func Settings() []Setting { return slices.Clone(settings) }

func (c *compiled) checkWords() error {
	s := &c.scheme
	for _, set := range settings {
		value := *set.Of(s)
		if set.Words != nil && value != "" && !slices.Contains(set.Words, value) {
			return wrong(set.Name, "%q is none of %s", value, set.Choices())
		}
	}
	if s.Key.Normalize != NormalizeNone && s.Key.Encoding != EncodingUTF8 {
		return wrong("key.normalize", "%q is for key.encoding %s only", s.Key.Normalize, EncodingUTF8)
	}
	if s.Algorithm == AlgorithmMD5 && s.Kind != KindDigest {
		return wrong("algorithm", "%s is for kind %s only", AlgorithmMD5, KindDigest)
	}
	c.newHash = hashes[s.Algorithm]
	return nil
}

var hashes = map[string]func() hash.Hash{
	AlgorithmSHA256: sha256.New, AlgorithmSHA512: sha512.New, AlgorithmSHA1: sha1.New, AlgorithmMD5: md5.New,
}

func (c *compiled) checkTemplate() error {
	s := &c.scheme
	if s.Kind == KindToken {
		return s.checkToken()
	}
	var err error
	c.parts, err = parseTemplate(s.Signed)
	varies := func(p part) bool { return p.name != "" && p.name != partSecret }
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(c.parts, varies):
		return wrong("signed", "%q is the same for every delivery; use %s", s.Signed, placeholders)
	case !c.keyed() && !s.AcceptWeak:
		return wrong("signed", "%q does not contain {secret}: without it, anybody can compute a plain hash; "+
			"kind %s needs no {secret}", s.Signed, KindHMAC)
	}
	return nil
}

func (s *Scheme) checkToken() error {
	switch {
	case s.Signed != "{body}":
		return wrong("signed", "kind %s signs nothing; omit it", KindToken)
	case s.Key.Encoding != EncodingUTF8:
		return wrong("key.encoding", "kind %s compares the secret as it is; use %s", KindToken, EncodingUTF8)
	}
	return nil
}

func (c *compiled) checkSignature() error {
	s := &c.scheme.Signature
	between, within := s.separators()
	var ok bool
	c.signature, ok = parseSource(s.From)
	isSigned := func(p part) bool { return p.source.same(c.signature) }
	switch {
	case !ok || c.signature.kind == sourceSibling:
		return wrong("signature.from", "%q is not header:NAME, query:NAME or json:/PATH", s.From)
	case s.Separator != "" && s.Format == FormatPlain:
		return wrong("signature.separator", "is for signature.format %s and %s only", FormatList, FormatKV)
	case s.Separator != "" && between == within:
		return wrong("signature.separator", "%q can't separate entries of format %s; use one of %q",
			s.Separator, s.Format, separatorsBetween)
	case s.Format != FormatPlain && strings.ContainsAny(s.Tag, ",= \t"+between):
		return wrong("signature.tag", "%q contains a comma, an equals sign, a space or the separator", s.Tag)
	case between != "" && strings.Contains(s.Prefix, between):
		return wrong("signature.prefix", "%q contains the separator of entries of format %s", s.Prefix, s.Format)
	case slices.ContainsFunc(c.parts, isSigned):
		return wrong("signed", "%q contains the signature itself", c.scheme.Signed)
	case c.signature.kind == sourceJSON && (has(c.parts, partBody) || has(c.parts, partForm)):
		return wrong("signature.from", "%q is inside the body, but signed %q contains the whole body; "+
			"a signature can't cover itself", s.From, c.scheme.Signed)
	}
	return nil
}

func (c *compiled) checkTimestamp() error {
	t, signature := &c.scheme.Timestamp, &c.scheme.Signature
	var ok bool
	c.timestamp, ok = parseSource(t.From)
	isBeside := c.timestamp.kind == sourceSibling
	between, _ := signature.separators()
	covers := func(p part) bool {
		return p.name == partTimestamp || p.source.same(c.timestamp) || p.name == partBody && c.timestamp.kind == sourceJSON
	}
	switch {
	case t.Tolerance < 0:
		return wrong("timestamp.tolerance", "%v is negative", t.Tolerance)
	case t.From == "" && has(c.parts, partTimestamp):
		return wrong("timestamp.from", "signed contains {timestamp}; set where it is: header:NAME, sig:KEY or json:/PATH")
	case t.From == "":
		return nil
	case !ok || c.timestamp.kind == sourceQuery:
		return wrong("timestamp.from", "%q is not header:NAME, sig:KEY or json:/PATH", t.From)
	case isBeside && signature.Format == FormatPlain:
		return wrong("timestamp.from", "%q needs signature.format %s or %s", t.From, FormatList, FormatKV)
	case isBeside && c.timestamp.name == signature.Tag:
		return wrong("timestamp.from", "%q is the tag of the signatures", t.From)
	case isBeside && strings.Contains(c.timestamp.name, between):
		return wrong("timestamp.from", "%q contains the separator of the entries", t.From)
	case isBeside && t.Unit == UnitRFC2822 && (between == "," || between == " "):
		return wrong("timestamp.unit", "%s contains commas and spaces, which end an entry of format %s",
			t.Unit, signature.Format)
	case c.timestamp.same(c.signature):
		return wrong("timestamp.from", "%q is the place of the signature", t.From)
	case !slices.ContainsFunc(c.parts, covers):
		return wrong("timestamp.from", "the timestamp is not signed, so anybody could change it; "+
			"add {timestamp} to signed, or omit timestamp.from")
	}
	return nil
}

func (c *compiled) checkURL() error {
	u, err := url.Parse(c.scheme.PublicURL)
	switch {
	case c.scheme.PublicURL == "" && has(c.parts, partURL):
		return wrong("public_url", "signed contains {url}; set the address that the sender uses")
	case c.scheme.PublicURL == "":
		return nil
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return wrong("public_url", "%q is not an http or https address", c.scheme.PublicURL)
	}
	return nil
}

// keyed reports whether making a signature requires the secret.
func (c *compiled) keyed() bool {
	return c.scheme.Kind != KindDigest || has(c.parts, partSecret)
}

// mac returns the value that a signature is compared with. For a token that is its digest.
func (c *compiled) mac(parts []Part, key []byte) []byte {
	if c.scheme.Kind == KindToken {
		return tokenDigest(key)
	}
	h := c.newHash()
	if c.scheme.Kind == KindHMAC {
		h = hmac.New(c.newHash, key)
	}
	for i, p := range c.parts {
		if p.name == partSecret {
			h.Write(key)
		} else {
			h.Write(parts[i].Bytes)
		}
	}
	return h.Sum(nil)
}

// Placeholders without a source; the others name one.
const (
	partBody      = "body"
	partTimestamp = "timestamp"
	partSecret    = "secret"
	partMethod    = "method"
	partURL       = "url"
	partPath      = "path"
	partForm      = "formsorted"
)

const placeholders = "{body}, {timestamp}, {secret}, {method}, {url}, {path}, " +
	"{header:NAME}, {query:NAME}, {json:/PATH} or {formsorted}"

// part is text or a placeholder. It is parsed before any request is read, so a sender's text can't become one.
type part struct {
	name   string // of a placeholder: the text between its braces; empty for text
	text   string
	source source // named by a placeholder
}

func parseTemplate(s string) ([]part, error) {
	var parts []part
	rest := s
	for rest != "" {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(parts, part{text: rest}), nil
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return nil, wrong("signed", "%q has an unmatched brace; braces are for placeholders only", s)
		}
		if open > 0 {
			parts = append(parts, part{text: rest[:open]})
		}
		p, ok := parsePlaceholder(rest[open+1 : end])
		if !ok {
			return nil, wrong("signed", "unknown placeholder %q; use %s", rest[open:end+1], placeholders)
		}
		parts = append(parts, p)
		rest = rest[end+1:]
	}
	return parts, nil
}

func parsePlaceholder(name string) (part, bool) {
	switch name {
	case partBody, partTimestamp, partSecret, partMethod, partURL, partPath, partForm:
		return part{name: name}, true
	}
	at, ok := parseSource(name)
	return part{name: name, source: at}, ok && at.kind != sourceSibling
}

func has(parts []part, placeholder string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.name == placeholder })
}

// readParts returns all signed parts of a delivery, and the first reason why one can't be used.
func (c *compiled) readParts(d *delivery, timestamp Found) (parts []Part, why Reason) {
	parts = slices.Grow(parts, len(c.parts))
	for _, p := range c.parts {
		part := Part{Name: p.name}
		part.Bytes, part.Reason = c.pieceOf(p, d, timestamp)
		parts, why = append(parts, part), cmp.Or(why, part.Reason)
	}
	return parts, why
}

// pieceOf returns nil for the secret, which compiled.mac adds.
func (c *compiled) pieceOf(p part, d *delivery, timestamp Found) ([]byte, Reason) {
	switch p.name {
	case "":
		return []byte(p.text), ""
	case partBody:
		return d.Body, ""
	case partTimestamp:
		if timestamp.Times == 0 {
			return nil, ReasonTimestampMissing
		}
		return []byte(timestamp.Value), ""
	case partSecret:
		return nil, ""
	case partMethod:
		return []byte(d.Method), ""
	case partURL:
		return []byte(c.scheme.PublicURL), ""
	case partPath:
		return []byte(d.Path), ""
	case partForm:
		if form, ok := sortedForm(d.Body); ok {
			return form, ""
		}
		return nil, ReasonSignedPartMissing
	}
	if p.source.kind == sourceJSON && d.lacks(p.source.path) {
		return nil, "" // senders that sign several fields omit absent ones
	}
	value, times := d.find(p.source)
	if why := unlessOnce(times, ReasonSignedPartMissing); why != "" {
		return nil, why
	}
	return value, ""
}

// sortedForm joins the distinct fields of a form as unescaped name and value, sorted; false if body is not a form.
func sortedForm(body []byte) ([]byte, bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, false
	}
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := form[name]
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			out = append(append(out, name...), value...)
		}
	}
	return out, true
}
