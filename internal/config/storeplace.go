package config

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// IsServer reports whether a store is on a PostgreSQL server rather than in a file:
// postgres://…, postgresql://… or service=NAME.
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

// storePlace wants a path or a server. Any other URL would become folders.
func storePlace(s string) string {
	if rest, ok := cutServer(s); ok {
		return serverStore(s, rest)
	}
	if strings.Contains(s[len(filepath.VolumeName(s)):], "://") {
		return "the path of a file such as /srv/waybill/waybill.db, not a URL, or postgres://USER@HOST/DATABASE"
	}
	if looksLikeServer(s) {
		return "the path of a file such as /srv/waybill/waybill.db, or postgres://USER@HOST/DATABASE"
	}
	return ""
}

// looksLikeServer reports whether s is no path, but a server in other notations: those
// that psql takes, or a URL with a letter missing. It may hold a password.
func looksLikeServer(s string) bool {
	path := s[len(filepath.VolumeName(s)):]
	if scheme, rest, ok := strings.Cut(path, ":"); ok && (strings.Contains(rest, "@") || strings.HasPrefix(strings.ToLower(scheme), "postgres") && strings.HasPrefix(rest, "/")) {
		return true
	}
	first, _, found := strings.Cut(s, "=")
	return found && slices.Contains([]string{"host", "hostaddr", "port", "user", "password", "dbname", "sslmode"}, first)
}

// isHostAndPort reports whether s is a host of a server's URL, with or without a port.
func isHostAndPort(s string) bool {
	host, port, _ := strings.Cut(s, ":")
	if rest, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok = strings.Cut(rest, "]")
		port, _ = strings.CutPrefix(port, ":")
		if !ok || host == "" {
			return false
		}
	}
	return !strings.ContainsAny(host, "[]") && strings.Trim(port, "0123456789") == ""
}

// serverStore wants no password: it would stand in the list of processes, in the
// shell's history, and wherever the store is named. What may be a part of one, since it
// is not where a URL has it, is refused too.
func serverStore(s, rest string) string {
	const elsewhere = "without a password: give it by store_password_file, PGPASSWORD or PGPASSFILE"
	if strings.HasPrefix(s, "service=") {
		if rest == "" || strings.ContainsAny(rest, " \t'\"\\=") {
			return "service=NAME, with the name of a service in ~/.pg_service.conf or PGSERVICEFILE"
		}
		return oneLine(s)
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
	_, query, _ := strings.Cut(tail, "?")
	switch {
	case strings.Contains(authority[:max(at, 0)], ":"), slices.ContainsFunc(strings.Split(query, "&"), named):
		return "a PostgreSQL store " + elsewhere
	case strings.ContainsAny(tail, "@#"),
		slices.ContainsFunc(strings.Split(authority[at+1:], ","), func(h string) bool { return !isHostAndPort(h) }):
		return "postgres://USER@HOST:PORT/DATABASE?schema=NAME, with other characters as %40 and the like, and " + elsewhere
	}
	return oneLine(s)
}
