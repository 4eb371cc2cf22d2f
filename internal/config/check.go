package config

import (
	"cmp"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The checks of single texts. Each returns what is expected instead of s, or "" if s is valid.

// lineError refuses control and format characters, and surrounding space.
func lineError(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return "text without control characters"
	}
	if strings.TrimSpace(s) != s {
		return "text without space at its start or end"
	}
	return ""
}

func emptyError(s string) string {
	if strings.TrimSpace(s) == "" {
		return "text that is not empty"
	}
	return ""
}

func filledLineError(s string) string {
	return cmp.Or(emptyError(s), lineError(s))
}

// profileNameError accepts a name that can be the file name of the profile's store, next to waybill.db.
func profileNameError(s string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
	}
	if s == "" || s[0] == '.' || strings.ContainsFunc(s, odd) || strings.EqualFold(s, "waybill") {
		return "only letters, digits, dots, hyphens and underscores, no dot first, and not be waybill"
	}
	return ""
}

func identifierError(s string) string {
	if strings.ContainsFunc(s, unicode.IsSpace) {
		return "one word without spaces"
	}
	return filledLineError(s)
}

// HostPort returns "" if s is HOST:PORT, else a description of this form. HOST may be empty and PORT 0.
func HostPort(s string) string {
	const want = "HOST:PORT such as 127.0.0.1:8377"
	_, port, err := net.SplitHostPort(s)
	if _, errPort := strconv.ParseUint(port, 10, 16); err != nil || errPort != nil {
		return want
	}
	return lineError(s)
}

func placeError(s string) string {
	kind, place, _ := strings.Cut(s, ":")
	if kind != "env" && kind != "file" || strings.TrimSpace(place) == "" {
		return "env:NAME or file:PATH, never the secret itself"
	}
	return lineError(s)
}

// MapFields returns the fields that the setting `map` can assign columns to.
func MapFields() []string { return []string{"referId", "rawTrackingNumber", "carrierCode", "carrier"} }

// field returns the field with this name in any spelling, or "".
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

// CheckMapName returns a [*KeyError] if name is not a valid name for a saved mapping.
func CheckMapName(name string) error {
	if want := mapNameError(name); want != "" {
		return wrong("the name of a mapping must be "+want+", not "+short(name), "use --save-map NAME")
	}
	return nil
}

func mapNameError(name string) string {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return "letters, digits, - and _"
	}
	return ""
}

// IsServer reports whether a store is on a PostgreSQL server: postgres://…, postgresql://… or service=NAME.
func IsServer(store string) bool {
	_, ok := cutServer(store)
	return ok
}

func cutServer(store string) (rest string, ok bool) {
	for _, scheme := range []string{"postgres://", "postgresql://", "service="} {
		if rest, ok := strings.CutPrefix(store, scheme); ok {
			return rest, true
		}
	}
	return "", false
}

// storePlaceError accepts a path or a server. Any other URL, taken as a path, would create folders.
func storePlaceError(s string) string {
	if rest, ok := cutServer(s); ok {
		return serverStore(s, rest)
	}
	path := s[len(filepath.VolumeName(s)):]
	scheme, rest, _ := strings.Cut(path, ":")
	first, _, isOption := strings.Cut(s, "=") // the form that psql accepts
	switch {
	case strings.Contains(path, "://"):
		return "the path of a file such as /srv/waybill/waybill.db, not a URL, or postgres://USER@HOST/DATABASE"
	case strings.Contains(rest, "@"),
		strings.HasPrefix(strings.ToLower(scheme), "postgres") && strings.HasPrefix(rest, "/"), // a slash is missing
		isOption && slices.Contains([]string{"host", "hostaddr", "port", "user", "password", "dbname", "sslmode"}, first):
		return "the path of a file such as /srv/waybill/waybill.db, or postgres://USER@HOST/DATABASE"
	}
	return ""
}

// serverStore refuses a password, which would show in the process list, in the shell history, and wherever the store
// is named. It also refuses @ and # in other places, as they may be part of a password.
func serverStore(s, rest string) string {
	const elsewhere = "without a password: give it by store_password_file, PGPASSWORD or PGPASSFILE"
	if strings.HasPrefix(s, "service=") {
		if rest == "" || strings.ContainsAny(rest, " \t'\"\\=") {
			return "service=NAME, with the name of a service in ~/.pg_service.conf or PGSERVICEFILE"
		}
		return lineError(s)
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	at := strings.LastIndexByte(authority, '@')
	named := func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		return err != nil || strings.Contains(strings.ToLower(plain), "password")
	}
	hostAndPort := regexp.MustCompile(`^(\[[^\[\]]+\]:?|[^\[\]:]*:?)[0-9]*$`)
	_, query, _ := strings.Cut(tail, "?")
	switch {
	case strings.Contains(authority[:max(at, 0)], ":"), slices.ContainsFunc(strings.Split(query, "&"), named):
		return "a PostgreSQL store " + elsewhere
	case strings.ContainsAny(tail, "@#"),
		slices.ContainsFunc(strings.Split(authority[at+1:], ","), func(h string) bool { return !hostAndPort.MatchString(h) }):
		return "postgres://USER@HOST:PORT/DATABASE?schema=NAME, with other characters as %40 and the like, and " + elsewhere
	}
	return lineError(s)
}
