package redact

import (
	"net/url"
	"slices"
	"strings"
)

// IsCredential reports whether a header is named like one that holds a credential.
// Hyphens and underscores do not count.
func IsCredential(name string) bool {
	short := shortName(name)
	words := []string{"authorization", "cookie", "token", "secret", "password", "passwd", "apikey", "authkey"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(short, word) }) ||
		hasLastWord(name, "auth", "pwd", "jwt", "bearer")
}

// IsCredentialParameter reports whether a parameter of a query, as it was sent, is named
// like one that holds a credential or a signature.
func IsCredentialParameter(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	return IsCredential(name) || slices.Contains([]string{"code", "key", "session", "sessionid", "sid"}, shortName(name)) || hasLastWord(name, "sig", "signature", "credential")
}

func shortName(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// hasLastWord reports whether a name is one of the words, or ends with one after - or _.
func hasLastWord(name string, words ...string) bool {
	return slices.Contains(words, strings.ToLower(name[strings.LastIndexAny(name, "-_")+1:]))
}
