package webhook

// Preset is a scheme that has a name, after how it is made.
type Preset struct {
	Name   string
	About  string // one line for people
	Scheme Scheme
}

// Presets returns the schemes that can be used by name alone. Whether the
// service signs in any of these ways is not known; a configured scheme that
// differs in one setting is as good.
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
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}
