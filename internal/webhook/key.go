package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Secret is a webhook secret and where it came from. Printed, it is ***.
type Secret struct {
	Name  string // such as env:WAYBILL_WEBHOOK_SECRET; may be shown
	Value []byte // never shown
}

// String returns ***.
func (Secret) String() string { return "***" }

// Format writes *** whatever the verb, so that no way of printing shows the
// value.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// MarshalText returns ***; encoders and loggers use it.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// InClear returns the secrets that a delivery in this scheme may contain: each
// as it is and, for a token, the key derived from it.
func (s Scheme) InClear(secrets []Secret) []Secret {
	all := slices.Clone(secrets)
	for _, secret := range secrets {
		if s.Kind != KindToken {
			break
		}
		key, bad := s.WithDefaults().Key.derive(secret, "")
		if bad == nil && !bytes.Equal(key, secret.Value) {
			all = append(all, Secret{Name: secret.Name, Value: key})
		}
	}
	return all
}

// derive returns the key of a secret. field names the secret in an error.
func (k Key) derive(s Secret, field string) ([]byte, *SchemeError) {
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
	key := []byte(secret)
	var err error
	switch k.Encoding {
	case EncodingBase64:
		key, err = strictBase64(base64.StdEncoding, secret)
	case EncodingHex:
		key, err = hex.DecodeString(secret)
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

// usable returns the secrets that a key can be derived from, and their indexes.
func (k Key) usable(secrets []Secret) (usable []Secret, index []int) {
	for i, secret := range secrets {
		if _, bad := k.derive(secret, ""); bad == nil {
			usable, index = append(usable, secret), append(index, i)
		}
	}
	return usable, index
}

// strictBase64 decodes s, refusing line breaks and stray bits, which package
// base64 would let pass.
func strictBase64(enc *base64.Encoding, s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, base64.CorruptInputError(strings.IndexAny(s, "\r\n"))
	}
	return enc.Strict().DecodeString(s)
}
