package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// entries are the decoded signatures of a delivery, each with the length of the
// hash, and the timestamps beside them.
type entries struct {
	macs       [][]byte
	timestamps []string
}

// entries splits and decodes the signature's value. It ignores entries with
// other tags and, if one entry is well-formed, those that are not: a sender
// that changes its keys or its procedure lists both.
func (c *compiled) entries(d *delivery) (entries, Reason) {
	value, why := d.findOnce(c.signature, ReasonSignatureMissing)
	if why != "" {
		return entries{}, why
	}
	s := string(value)
	if c.signature.kind == sourceQuery {
		bare, err := url.PathUnescape(s) // a plus is a digit of base64 here, not a space
		if err != nil {
			return entries{}, ReasonSignatureMalformed
		}
		s = bare
	}
	tagged, e, ok := c.split(s)
	if !ok {
		return entries{}, ReasonSignatureMalformed
	}
	if len(tagged) == 0 {
		return entries{}, ReasonSignatureMissing
	}
	for _, t := range tagged {
		if mac, ok := c.decode(t); ok {
			e.macs = append(e.macs, mac)
		}
	}
	if len(e.macs) == 0 {
		return entries{}, ReasonSignatureMalformed
	}
	return e, ""
}

// separators returns what separates entries, and tag and value within one; both
// are empty in a format with a single entry.
func (s Signature) separators() (between, within string) {
	switch s.Format {
	case FormatList:
		return cmp.Or(s.Separator, " "), ","
	case FormatKV:
		return cmp.Or(s.Separator, ","), "="
	default:
		return "", ""
	}
}

// split returns the values with the scheme's tag, and the timestamps.
func (c *compiled) split(s string) (tagged []string, e entries, ok bool) {
	between, within := c.scheme.Signature.separators()
	if between == "" {
		return []string{s}, e, true
	}
	for item := range strings.SplitSeq(s, between) {
		if item = strings.Trim(item, " \t"); item == "" {
			continue
		}
		tag, value, ok := strings.Cut(item, within)
		switch {
		case !ok:
			return nil, e, false
		case tag == c.scheme.Signature.Tag:
			tagged = append(tagged, value)
		case c.timestamp.kind == sourceSibling && tag == c.timestamp.name:
			e.timestamps = append(e.timestamps, value)
		}
	}
	return tagged, e, len(e.timestamps) <= 1
}

// decode returns the bytes of one signature; false unless it has its prefix,
// is in its encoding and is whole. Of a token it returns the bytes as they are.
func (c *compiled) decode(s string) ([]byte, bool) {
	sig := c.scheme.Signature
	s, ok := strings.CutPrefix(s, sig.Prefix)
	if !ok || s == "" {
		return nil, false
	}
	if c.scheme.Kind == KindToken {
		return []byte(s), true
	}
	var mac []byte
	var err error
	switch sig.Encoding {
	case EncodingHex:
		mac, err = hex.DecodeString(s)
	case EncodingBase64:
		mac, err = strictBase64(base64.StdEncoding, s)
	case EncodingBase64URL:
		mac, err = urlBase64(s)
	case EncodingBase64Any:
		if mac, err = strictBase64(base64.StdEncoding, s); err != nil {
			mac, err = urlBase64(s)
		}
	}
	return mac, err == nil && len(mac) == c.newHash().Size()
}

// urlBase64 decodes base64url with its padding or without.
func urlBase64(s string) ([]byte, error) {
	if strings.HasSuffix(s, "=") {
		return strictBase64(base64.URLEncoding, s)
	}
	return strictBase64(base64.RawURLEncoding, s)
}

// encode is the reverse of decode, without the prefix.
func (c *compiled) encode(mac []byte) string {
	if c.scheme.Kind == KindToken {
		return string(mac)
	}
	switch c.scheme.Signature.Encoding {
	case EncodingBase64, EncodingBase64Any:
		return base64.StdEncoding.EncodeToString(mac)
	case EncodingBase64URL:
		return base64.RawURLEncoding.EncodeToString(mac)
	default:
		return hex.EncodeToString(mac)
	}
}
