// Package webhook reads deliveries of the service: whether a body is authentic, and which events it contains.
//
// The interface says of signatures only that they use SHA256. So the procedure is data: a [Scheme] says where the
// signature is and what it covers, a [Verifier] checks deliveries against it, and [Sign] makes matching signatures. A
// delivery is checked against one scheme only; just [Learn] tries many.
//
// [Decode] splits a body into events without changing or dropping a byte of it. It returns unreadable parts too, as
// rows with Part set, see [Row].
//
// The package does no input or output, and all of it is safe for concurrent use.
package webhook

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// Kinds of schemes.
const (
	KindHMAC   = "hmac"   // a keyed hash
	KindDigest = "digest" // a plain hash over a template that holds {secret}
	KindToken  = "token"  // the secret itself, in clear; does not authenticate the body
)

// Hash algorithms.
const (
	AlgorithmSHA256 = "sha256"
	AlgorithmSHA512 = "sha512"
	AlgorithmSHA1   = "sha1"
	AlgorithmMD5    = "md5" // kind digest only
)

// Encodings of keys and signatures.
const (
	EncodingUTF8      = "utf8" // keys only: the text itself
	EncodingHex       = "hex"
	EncodingBase64    = "base64"    // standard alphabet, padded
	EncodingBase64URL = "base64url" // signatures only; padding may be left out
	EncodingBase64Any = "base64any" // signatures only; each in base64 or base64url
)

// Normal forms of keys.
const (
	NormalizeNone = "none"
	NormalizeNFKD = "nfkd"
	NormalizeNFC  = "nfc"
)

// Formats of the value that contains a signature.
const (
	FormatPlain = "plain" // the value is the signature
	FormatList  = "list"  // tag,value pairs separated by spaces, or by another separator
	FormatKV    = "kv"    // k=v pairs separated by commas, or by another separator
)

// Units of timestamps.
const (
	UnitSeconds      = "s"
	UnitMilliseconds = "ms"
	UnitRFC3339      = "rfc3339"
	UnitRFC2822      = "rfc2822"
)

// DefaultTolerance is how far a timestamp may be from the clock, either way.
const DefaultTolerance = 5 * time.Minute

// Scheme says how deliveries are signed. Its fields have the names and meanings of the configuration keys under
// `webhook.schemes`. Empty fields have defaults: see [Scheme.WithDefaults].
//
// Interface: Authentication, 4.
// Assumed: the signature header and the procedure are not shown.
type Scheme struct {
	Kind      string // hmac, digest or token
	Algorithm string // sha256, sha512, sha1, or md5 for digest
	Key       Key
	// Signed is the template of the signed bytes. It holds text and {body} {timestamp} {secret} {method} {url} {path}
	// {header:N} {query:N} {json:PATH} {formsorted}. PATH is an RFC 6901 pointer. Bytes are used as received: {path} and
	// {query:N} with their percent escapes; from JSON, the text of a string or the literal of any other value;
	// {formsorted} is each distinct field of a form, name and value, sorted.
	Signed    string
	Signature Signature
	Timestamp Timestamp
	PublicURL string // for {url}, as the sender knows it; never taken from a request
	// AcceptWeak allows a digest without {secret}, which anybody can make: it shows only that bytes arrived whole.
	AcceptWeak bool
}

// Key says how a secret becomes a key, in the order of the fields.
type Key struct {
	StripPrefix string // removed from the front of the secret if it is there
	Encoding    string // utf8, base64 or hex
	Normalize   string // none, nfkd or nfc; only with utf8
}

// Signature says where the signature is and what it looks like.
type Signature struct {
	From      string // header:N, query:N or json:PATH
	Format    string // plain, list or kv
	Separator string // for list and kv: the separator between entries; empty for the format's default
	Tag       string // for list and kv: the tag of the entries that are signatures
	Prefix    string // required before each signature, and removed
	Encoding  string // hex, base64, base64url or base64any; a token has none
}

// Timestamp says where the time of signing is. It must be signed.
type Timestamp struct {
	From      string        // header:N, sig:K (next to the signature, in list and kv) or json:PATH; empty for none
	Unit      string        // s, ms, rfc3339 or rfc2822
	Tolerance time.Duration // either way; 0 for the default
}

// SchemeError says which setting of a scheme is wrong. It never shows a secret.
type SchemeError struct {
	Field   string // as in the configuration, such as signature.from or secrets[1]
	Problem string // what is wrong, and what is allowed
}

func (e *SchemeError) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) error {
	return &SchemeError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// WithDefaults returns s with every empty field set to its default, which for some is empty.
func (s Scheme) WithDefaults() Scheme {
	s.Kind = cmp.Or(s.Kind, KindHMAC)
	s.Algorithm = cmp.Or(s.Algorithm, AlgorithmSHA256)
	s.Key.Encoding = cmp.Or(s.Key.Encoding, EncodingUTF8)
	s.Key.Normalize = cmp.Or(s.Key.Normalize, NormalizeNone)
	s.Signed = cmp.Or(s.Signed, "{body}")
	s.Signature.From = cmp.Or(s.Signature.From, "header:X-Signature")
	s.Signature.Format = cmp.Or(s.Signature.Format, FormatPlain)
	if own, _ := (Signature{Format: s.Signature.Format}).separators(); s.Signature.Separator == own {
		s.Signature.Separator = ""
	}
	s.Signature.Tag = cmp.Or(s.Signature.Tag, "v1")
	s.Signature.Encoding = cmp.Or(s.Signature.Encoding, EncodingHex)
	s.Timestamp.Unit = cmp.Or(s.Timestamp.Unit, UnitSeconds)
	s.Timestamp.Tolerance = cmp.Or(s.Timestamp.Tolerance, DefaultTolerance)
	return s
}

// Check returns nil if s is usable, else a [*SchemeError] for the first wrong setting.
func (s Scheme) Check() error {
	_, err := compile(s)
	return err
}

// CoversBody reports whether every byte of the body is signed. If not, anybody who sees one delivery can forge
// others. {json:PATH} covers only parts, {formsorted} does not fix where a name ends, and a hash without a secret
// covers nothing. It is false for an unusable scheme.
func (s Scheme) CoversBody() bool { return s.Strength() == StrengthBody }

// Strength says what a valid signature proves, at best.
type Strength string

// The strengths, from the best to none.
const (
	StrengthBody      Strength = "body"      // every byte of the body
	StrengthParts     Strength = "parts"     // parts of the body
	StrengthTimestamp Strength = "timestamp" // when it was signed, and nothing about the body
	StrengthNothing   Strength = "nothing"   // that the sender once signed something
	StrengthToken     Strength = "token"     // that the sender has the secret, which each delivery shows
	StrengthKeyless   Strength = "keyless"   // nothing: anybody can make it
)

// strengths describes the strengths for people, the best first.
var strengths = []struct {
	strength Strength
	words    string
}{
	{StrengthBody, "covers the body"},
	{StrengthParts, "covers only parts of the body: anybody who sees one delivery can forge the rest of the next"},
	{StrengthTimestamp, "covers only the timestamp: anybody who sees one delivery can forge the next"},
	{StrengthNothing, "covers neither body nor timestamp: anybody who sees one delivery can forge the next"},
	{StrengthToken, "token in clear: anybody who sees one delivery can forge the next"},
	{StrengthKeyless, "keyless hash: proves nothing"},
}

// String returns the strength in words for people.
func (s Strength) String() string {
	if i := s.rank(); i >= 0 {
		return strengths[i].words
	}
	return "unknown"
}

// rank orders strengths, the best first; it is -1 for an unknown one.
func (s Strength) rank() int {
	for i, row := range strengths {
		if row.strength == s {
			return i
		}
	}
	return -1
}

// Strength says what a delivery that verifies in this scheme proves; it is empty for an unusable scheme.
func (s Scheme) Strength() Strength {
	c, err := compile(s)
	if err != nil {
		return ""
	}
	return c.strength()
}

func (c *compiled) strength() Strength {
	isOfBody := func(p part) bool { return p.source.kind == sourceJSON && !p.source.same(c.timestamp) }
	switch {
	case c.scheme.Kind == KindToken:
		return StrengthToken
	case !c.keyed():
		return StrengthKeyless
	case has(c.parts, partBody):
		return StrengthBody
	case has(c.parts, partForm), slices.ContainsFunc(c.parts, isOfBody):
		return StrengthParts
	case c.timestamp.kind != sourceNone:
		return StrengthTimestamp
	default:
		return StrengthNothing
	}
}

// Preset is a named scheme. The name describes how signatures are made.
type Preset struct {
	Name   string
	About  string // one line for people
	Scheme Scheme
}

// Presets returns the schemes that can be selected by name. Whether the service signs in any of these ways is
// unknown.
func Presets() []Preset {
	return []Preset{
		{"hmac-body-hex", "HMAC-SHA256 of the body, in hex", Scheme{}},
		{"hmac-body-hex-prefixed", "HMAC-SHA256 of the body, in hex after sha256=", Scheme{
			Signature: Signature{From: "header:X-Hub-Signature-256", Prefix: "sha256="},
		}},
		{"hmac-body-hex-nfkd", "HMAC-SHA256 of the body, in hex after hmac-sha256-hex=; the key in normal form KD", Scheme{
			Key:       Key{Normalize: NormalizeNFKD},
			Signature: Signature{From: "header:X-Hmac-Signature", Prefix: "hmac-sha256-hex="},
		}},
		{"hmac-body-base64", "HMAC-SHA256 of the body, in base64", Scheme{
			Signature: Signature{Encoding: EncodingBase64},
		}},
		{"standard-webhooks", "Standard Webhooks 1.0.0: HMAC-SHA256 of id.timestamp.body, in base64", Scheme{
			Key:       Key{StripPrefix: "whsec_", Encoding: EncodingBase64},
			Signed:    "{header:webhook-id}.{timestamp}.{body}",
			Signature: Signature{From: "header:webhook-signature", Format: FormatList, Tag: "v1", Encoding: EncodingBase64},
			Timestamp: Timestamp{From: "header:webhook-timestamp"},
		}},
		{"timestamped-kv", "HMAC-SHA256 of timestamp.body, as t=…,v1=… in hex", Scheme{
			Signed:    "{timestamp}.{body}",
			Signature: Signature{Format: FormatKV, Tag: "v1"},
			Timestamp: Timestamp{From: "sig:t"},
		}},
		{"timestamped-kv-semicolon", "HMAC-SHA256 of timestamp:body, as ts=…;h1=… in hex", Scheme{
			Signed:    "{timestamp}:{body}",
			Signature: Signature{Format: FormatKV, Separator: ";", Tag: "h1"},
			Timestamp: Timestamp{From: "sig:ts"},
		}},
		{"timestamped-kv-base64url", "HMAC-SHA256 of timestamp.body, as t=…,v1=… in base64url, with milliseconds", Scheme{
			Signed:    "{timestamp}.{body}",
			Signature: Signature{Format: FormatKV, Tag: "v1", Encoding: EncodingBase64URL},
			Timestamp: Timestamp{From: "sig:t", Unit: UnitMilliseconds},
		}},
		{"versioned-timestamp-body", "HMAC-SHA256 of v0:timestamp:body, in hex after v0=", Scheme{
			Signed:    "v0:{timestamp}:{body}",
			Signature: Signature{Prefix: "v0="},
			Timestamp: Timestamp{From: "header:X-Request-Timestamp"},
		}},
		{"hmac-timestamp-hex", "HMAC-SHA256 of the timestamp alone, in hex; does not authenticate the body", Scheme{
			Signed:    "{timestamp}",
			Timestamp: Timestamp{From: "header:X-Timestamp"},
		}},
		{"digest-body-slash-key", "SHA-256 of body/secret, in hex", Scheme{
			Kind:      KindDigest,
			Signed:    "{body}/{secret}",
			Signature: Signature{From: "header:sign"},
		}},
		{"bearer-token", "the secret in clear, as Authorization: Bearer; does not authenticate the body", Scheme{
			Kind:      KindToken,
			Signature: Signature{From: "header:Authorization", Prefix: "Bearer "},
		}},
	}
}

// PresetByName returns the preset of that name, and false if there is none.
func PresetByName(name string) (Preset, bool) {
	all := Presets()
	if i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return Preset{}, false
}

// Secret is a webhook secret and its origin. It prints as ***.
type Secret struct {
	Name  string // such as env:WAYBILL_WEBHOOK_SECRET; may be shown
	Value []byte // never shown
}

// String returns ***.
func (Secret) String() string { return "***" }

// Format writes *** whatever the verb, so that no way of printing shows the value.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// MarshalText returns ***; encoders and loggers use it.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// InClear returns the secrets that a delivery may contain in clear: each secret itself and, for a token, its key.
func (s Scheme) InClear(secrets []Secret) []Secret {
	all := slices.Clone(secrets)
	for _, secret := range secrets {
		if s.Kind != KindToken {
			break
		}
		key, err := s.WithDefaults().Key.derive(secret, "")
		if err == nil && !bytes.Equal(key, secret.Value) {
			all = append(all, Secret{Name: secret.Name, Value: key})
		}
	}
	return all
}

// derive returns the key of a secret. field names the secret in the error, a [*SchemeError].
func (k Key) derive(s Secret, field string) ([]byte, error) {
	if s.Name != "" {
		field += " (" + s.Name + ")"
	}
	if len(s.Value) == 0 {
		return nil, wrong(field, "is empty; an empty secret verifies anything")
	}
	secret := strings.TrimPrefix(string(s.Value), k.StripPrefix)
	if secret == "" {
		return nil, wrong(field, "is empty without key.strip_prefix")
	}
	key, err := []byte(secret), error(nil)
	if encoding, ok := encodings[k.Encoding]; ok {
		key, err = encoding.decode(secret)
	}
	if err != nil {
		return nil, wrong(field, "is not %s, as key.encoding says; check for white space or a prefix", k.Encoding)
	}
	switch k.Normalize {
	case NormalizeNFKD:
		key = norm.NFKD.Bytes(key)
	case NormalizeNFC:
		key = norm.NFC.Bytes(key)
	}
	return key, nil
}

func (k Key) usable(secrets []Secret) (usable []Secret, index []int) {
	for i, secret := range secrets {
		if _, err := k.derive(secret, ""); err == nil {
			usable, index = append(usable, secret), append(index, i)
		}
	}
	return usable, index
}

// strictBase64 decodes s and refuses line breaks and stray bits, which package base64 would accept.
func strictBase64(enc *base64.Encoding, s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, base64.CorruptInputError(strings.IndexAny(s, "\r\n"))
	}
	return enc.Strict().DecodeString(s)
}
