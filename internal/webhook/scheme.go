package webhook

import (
	"cmp"
	"fmt"
	"time"
)

// Kinds of schemes.
const (
	KindHMAC   = "hmac"   // a keyed hash
	KindDigest = "digest" // a plain hash over a template that holds {secret}
	KindToken  = "token"  // the secret itself, in clear; authenticates no body
)

// Hash algorithms.
const (
	AlgorithmSHA256 = "sha256"
	AlgorithmSHA512 = "sha512"
	AlgorithmSHA1   = "sha1"
	AlgorithmMD5    = "md5" // of kind digest only
)

// Encodings of keys and signatures.
const (
	EncodingUTF8      = "utf8" // keys only: the text as it is
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

// Formats of the value that a signature stands in.
const (
	FormatPlain = "plain" // the value is the signature
	FormatList  = "list"  // tag,value by spaces, or by another separator
	FormatKV    = "kv"    // k=v by commas, or by another separator
)

// Units of timestamps.
const (
	UnitSeconds      = "s"
	UnitMilliseconds = "ms"
	UnitRFC3339      = "rfc3339"
	UnitRFC2822      = "rfc2822"
)

// DefaultTolerance is how far a timestamp may be from the clock.
const DefaultTolerance = 5 * time.Minute

// Scheme says how deliveries are signed. Fields are named and mean what they
// do in the configuration, under `webhook.schemes`. An empty one has its
// default: see [Scheme.WithDefaults].
//
// Interface: Authentication, 4.
// Assumed: the signature header and the procedure are not shown.
type Scheme struct {
	Kind      string // hmac, digest or token
	Algorithm string // sha256, sha512, sha1, or md5 for digest
	Key       Key
	// Signed is the template of the bytes that are signed. It holds text and
	// {body} {timestamp} {secret} {method} {url} {path} {header:N} {query:N}
	// {json:PATH} {formsorted}. PATH is an RFC 6901 pointer. Bytes go in as
	// they were received: {path} and {query:N} with their percent escapes;
	// of JSON, the text of a string or the literal of any other value;
	// {formsorted} is each distinct field of a form, name and value, sorted.
	Signed    string
	Signature Signature
	Timestamp Timestamp
	PublicURL string // for {url}, as the sender knows it; never taken from a request
	// AcceptWeak allows a digest without {secret}, which anybody can make:
	// what it confirms is that bytes arrived whole, not who sent them.
	AcceptWeak bool
}

// Key says how a secret becomes a key, in the order of the fields.
type Key struct {
	StripPrefix string // removed from the front of the secret if it is there
	Encoding    string // utf8, base64 or hex
	Normalize   string // none, nfkd or nfc; of utf8 only
}

// Signature says where the signature stands and what it looks like.
type Signature struct {
	From      string // header:N, query:N or json:PATH
	Format    string // plain, list or kv
	Separator string // of list and kv: what stands between entries; empty for that of the format
	Tag       string // of list and kv: which entries are signatures
	Prefix    string // required before each signature, then taken off
	Encoding  string // hex, base64, base64url or base64any; a token has none
}

// Timestamp says where the time of signing stands. It must be among what is
// signed.
type Timestamp struct {
	From      string        // header:N, sig:K (beside the signature, in list and kv) or json:PATH; empty for none
	Unit      string        // s, ms, rfc3339 or rfc2822
	Tolerance time.Duration // either way; 0 is the default
}

// SchemeError says which setting of a scheme is wrong. It never shows a secret.
type SchemeError struct {
	Field   string // as in the configuration, such as signature.from or secrets[1]
	Problem string // what is wrong, and what is allowed
}

func (e *SchemeError) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) *SchemeError {
	return &SchemeError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// WithDefaults returns s with every empty field filled in, but for those whose
// default is empty.
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

// Check returns nil if s can be used, else a [*SchemeError] for the first
// setting that is wrong.
func (s Scheme) Check() error {
	if _, err := compile(s); err != nil {
		return err
	}
	return nil
}

// CoversBody reports whether every byte of the body is among what is signed.
// Where it is not, whoever sees one delivery can make up others. {json:PATH}
// covers parts only, {formsorted} leaves open where a name ends, and a hash
// without a secret covers nothing. It is false for a scheme that can't be used.
func (s Scheme) CoversBody() bool {
	c, err := compile(s)
	return err == nil && c.coversBody()
}
