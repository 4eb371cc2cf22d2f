package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// CheckBaseURL returns a base URL in normal form; a [*KeyError] if it is invalid, or is http that is not allowed.
func (c Config) CheckBaseURL(raw string) (string, error) {
	normal, err := normalizeURL(raw)
	if err == nil && !c.InsecureHTTP {
		err = checkEncrypted(normal)
	}
	return normal, at(err, "base_url", Origin{})
}

// IsSameBaseURL reports whether text is the base URL normal, in any spelling.
func IsSameBaseURL(text, normal string) bool {
	same, err := normalizeURL(strings.TrimSpace(text))
	return err == nil && same == normal
}

// normalizeURL returns the normal form of a base URL: lower-case scheme and host, no default port, no trailing slash.
// It refuses a user name, a query and a fragment.
func normalizeURL(raw string) (string, error) {
	const form = "write it as https://api.example.com or https://api.example.com/path"
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Scheme == "" || u.Host == "" {
		// The text may contain a password, and the parser's error repeats the text.
		if url := suggestURL(raw); url != "" {
			return "", wrong("not a URL with https:// and a host", "did you mean "+url+"?")
		}
		return "", wrong("not a URL with https:// and a host", form)
	}
	scheme := strings.ToLower(u.Scheme)
	host, hostIsValid := normalHost(u.Hostname())
	port, portIsValid := normalPort(scheme, u.Port())
	switch {
	case u.User != nil:
		return "", wrong("contains a user name or password",
			form+"; put the key into WAYBILL_API_KEY or a file named by api_key_file")
	case strings.ContainsAny(raw, "?#"):
		return "", wrong("contains a query or fragment (? or #)", form)
	case scheme != "https" && scheme != "http":
		return "", wrong("scheme "+strconv.Quote(short(scheme))+" is not https", form)
	case !hostIsValid:
		return "", wrong("the host is not a name or an address", form)
	case !portIsValid:
		return "", wrong("the port is not a number from 1 to 65535", form)
	}
	return scheme + "://" + host + port + strings.TrimRight(u.EscapedPath(), "/"), nil
}

// checkEncrypted refuses http to a host that is not this machine.
func checkEncrypted(normal string) error {
	u, err := url.Parse(normal)
	if err == nil && u.Scheme == "http" && !loopback(u.Hostname()) {
		host, _ := normalHost(u.Hostname())
		err = wrong("http would send the API key unencrypted to "+host, "use https, or allow http with --insecure-http")
	}
	return err
}

func suggestURL(raw string) string {
	if strings.ContainsAny(raw, "@?#") || strings.Contains(raw, "://") {
		return ""
	}
	for _, scheme := range []string{"http://", "https://"} { // http is for loopback only
		if url, err := normalizeURL(scheme + raw); err == nil && checkEncrypted(url) == nil {
			return url
		}
	}
	return ""
}

func normalHost(host string) (string, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Is6() {
			return "[" + addr.String() + "]", addr.Zone() == ""
		}
		return addr.String(), true
	}
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`/\?#@<>"'%:[]{}|^`+"`", r)
	}
	return strings.ToLower(host), host != "" && !strings.ContainsFunc(host, bad)
}

// normalPort returns `:PORT`, or "" for the scheme's default port.
func normalPort(scheme, port string) (string, bool) {
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case port == "", scheme == "https" && n == 443, scheme == "http" && n == 80:
		return "", true
	case err != nil || n == 0:
		return "", false
	}
	return ":" + strconv.FormatUint(n, 10), true
}

// loopback reports whether a normalized host is always this machine.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback()
}

// SameLoopback replaces the host of an account on this machine with 127.0.0.1, so that all loopback addresses compare
// equal. It returns any other account unchanged, and false.
func SameLoopback(account string) (string, bool) {
	u, err := url.Parse(account)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !loopback(u.Hostname()) {
		return account, false
	}
	u.Host = strings.TrimSuffix(net.JoinHostPort("127.0.0.1", u.Port()), ":")
	return u.String(), true
}
