package config

import (
	"net"
	"strconv"
	"strings"
	"unicode"
)

// The checks of single texts. Each returns what is wanted instead, or nothing.

// oneLine wants no control or format characters and no outer space.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return "text without control characters"
	}
	if strings.TrimSpace(s) != s {
		return "text without space at its start or end"
	}
	return ""
}

func filled(s string) string {
	if strings.TrimSpace(s) == "" {
		return "text that is not empty"
	}
	return ""
}

func oneLineFilled(s string) string {
	if w := filled(s); w != "" {
		return w
	}
	return oneLine(s)
}

// identifier wants one word.
func identifier(s string) string {
	if strings.ContainsFunc(s, unicode.IsSpace) {
		return "one word without spaces"
	}
	return oneLineFilled(s)
}

// HostPort returns what an address to listen on should be, or nothing if s is
// one: HOST:PORT, where HOST may be empty and PORT 0.
func HostPort(s string) string {
	const want = "HOST:PORT such as 127.0.0.1:8377"
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return want
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return want
	}
	return oneLine(s)
}

// secretPlace wants where a secret is, not the secret.
func secretPlace(s string) string {
	kind, place, _ := strings.Cut(s, ":")
	if kind != "env" && kind != "file" || strings.TrimSpace(place) == "" {
		return "env:NAME or file:PATH, never the secret itself"
	}
	return oneLine(s)
}

// MapFields returns the fields that `map` names columns for.
func MapFields() []string { return []string{"referId", "rawTrackingNumber", "carrierCode", "carrier"} }

// field returns the field that name means in any spelling, or nothing.
func field(name string) string {
	switch strings.ReplaceAll(plainWord(name), " ", "") {
	case "referid":
		return "referId"
	case "rawtrackingnumber", "trackingnumber":
		return "rawTrackingNumber"
	case "carriercode", "metadata.carriercode":
		return "carrierCode"
	case "carrier":
		return "carrier"
	}
	return ""
}

// CheckMapName returns a [*KeyError] if name can't be that of a saved mapping.
func CheckMapName(name string) error {
	if want := mapName(name); want != "" {
		return &KeyError{Message: "the name of a mapping must be " + want + ", not " + short(name), Hint: "use --save-map NAME"}
	}
	return nil
}

// mapName wants the name of a mapping.
func mapName(name string) string {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return "letters, digits, - and _"
	}
	return ""
}
