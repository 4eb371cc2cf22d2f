package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/disk"
)

const (
	defaultSchema  = "waybill"
	connectTimeout = 5 * time.Second // per address, unless the target sets it
)

// Target is a store on a server: a schema of a database, and how to connect to it.
type Target struct {
	config *pgx.ConnConfig
	schema string
}

// TargetError says why a target can't be used. It contains no secret, nor the target, which may contain one.
type TargetError struct {
	Message string
	Hint    string
}

var errSchemaName = &TargetError{
	"the schema's name is not allowed",
	"use at most 63 small letters, digits and underscores, a letter first, such as waybill; not pg_ at the beginning",
}

func (e *TargetError) Error() string { return e.Message }

// parameters lists what a URL may set besides its user, hosts and database, in libpq's terms. A password is not among
// them, since it would be visible in the list of processes and in the shell's history.
var parameters = []string{
	"host", "port", "user", "dbname", "service", "schema", "application_name", "connect_timeout", "options",
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcertmode", "sslsni", "sslnegotiation", "channel_binding",
	"require_auth", "target_session_attrs", "min_protocol_version", "max_protocol_version",
}

// ignored lists what a service may set and libpq understands, but has no meaning here: connections have their own
// settings.
var ignored = []string{
	"application_name", "fallback_application_name", "client_encoding", "timezone", "gssencmode", "sslcompression",
	"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "load_balance_hosts",
}

// unsupported lists variables that libpq honours and the driver does not: ignoring them would mean to connect
// elsewhere, or to trust more.
var unsupported = strings.Fields(
	"PGHOSTADDR PGREQUIREPEER PGSSLCRL PGSSLCRLDIR PGSSLMINPROTOCOLVERSION PGSSLMAXPROTOCOLVERSION")

// isSchemaName reports whether PostgreSQL takes a name without quotes, and does not reserve it.
func isSchemaName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz_"
	return name != "" && len(name) <= 63 && name[0] > '9' && strings.Trim(name, letters+"0123456789") == "" &&
		!strings.HasPrefix(name, "pg_") && name != "information_schema"
}

// ParseOptions control which targets are refused: with Insecure, TLS need not verify the server.
type ParseOptions struct{ Insecure bool }

// Parse parses a target: postgres://USER@HOST:PORT/DATABASE?schema=NAME, any part of which may be missing, or
// service=NAME. Missing parts come from the PG* environment, the service file and the password file, as for other
// clients of PostgreSQL. TLS must verify a server that is not this machine, unless o says otherwise. The error is a
// [*TargetError]. It opens no connection.
func Parse(text string, o ParseOptions) (Target, error) {
	if name, ok := strings.CutPrefix(text, "service="); ok {
		text = "postgres://?service=" + url.QueryEscape(name)
	}
	for _, name := range unsupported {
		if os.Getenv(name) != "" {
			return Target{}, &TargetError{"the variable " + name + " is not supported", "unset " + name + " for waybill"}
		}
	}
	config, err := parseConfig(text)
	if err != nil {
		return Target{}, err
	}
	if !o.Insecure && fallsBack(config) {
		// The default, sslmode=prefer, would accept any certificate or none.
		if config, err = parseConfig(withVerification(text)); err != nil {
			return Target{}, err
		}
	}
	t := Target{config: config, schema: defaultSchema}
	if t.Unverified() && !o.Insecure {
		return Target{}, &TargetError{
			"sslmode does not verify the server " + t.names(),
			"remove sslmode or PGSSLMODE, which leaves verify-full; or allow it with --insecure-store",
		}
	}
	if err := t.takeParameters(); err != nil {
		return Target{}, err
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	if slices.ContainsFunc(hosts(config), anyoneListens) {
		config.RequireAuth = provenAuth
	}
	return t, cmp.Or(passfileExposed(config), serviceFileExposed(text))
}

func parseConfig(text string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfigWithOptions(text, pgx.ParseConfigOptions{
		ParseConfigOptions: pgconn.ParseConfigOptions{ConnStringAllowedKeys: parameters},
	})
	if err == nil {
		return config, nil
	}
	// Its text may contain a part of a password. Of its causes, only file errors are safe.
	message := "not a PostgreSQL store, or the service or a PG* variable that it uses has an error"
	wrong := wrongOption(text)
	file, isFile := errors.AsType[*os.PathError](err)
	switch {
	case isFile:
		message = nameFile(text, file)
	case wrong != "":
		message = wrong
	case namesService(text):
		message = serviceError()
	}
	return nil, &TargetError{message, "write it as postgres://USER@HOST/DATABASE?schema=NAME or service=NAME, " +
		"of ~/.pg_service.conf or PGSERVICEFILE; give a password by store_password_file, PGPASSWORD or PGPASSFILE"}
}

// options lists settings that the driver checks: against a pattern, or as a file if there is no pattern.
var options = []struct{ name, variable, pattern, takes string }{
	{"port", "PGPORT", `[1-9][0-9]{0,4}(,[1-9][0-9]{0,4})*`, "a port"},
	{"connect_timeout", "PGCONNECT_TIMEOUT", `[0-9]+`, "a number of seconds"},
	{
		"sslmode", "PGSSLMODE", `disable|allow|prefer|require|verify-ca|verify-full`,
		"disable, allow, prefer, require, verify-ca or verify-full",
	},
	{"sslnegotiation", "PGSSLNEGOTIATION", `postgres|direct`, "postgres or direct"},
	{
		"target_session_attrs", "PGTARGETSESSIONATTRS", `any|read-write|read-only|primary|standby|prefer-standby`,
		"any, read-write, read-only, primary, standby or prefer-standby",
	},
	{"sslrootcert", "PGSSLROOTCERT", "", ""},
	{"sslcert", "PGSSLCERT", "", ""},
	{"sslkey", "PGSSLKEY", "", ""},
}

// optionValue returns the value that a URL or a variable sets, and which of them does.
func optionValue(text, name, variable string) (value, setter string) {
	u, err := url.Parse(text)
	if err == nil && u.Query().Has(name) {
		return u.Query().Get(name), name
	}
	return os.Getenv(variable), variable
}

// wrongOption says which parameter is not supported or which value is invalid; "" if none. It omits words without a
// value, which may be a part of a password.
func wrongOption(text string) string {
	if u, err := url.Parse(text); err == nil {
		if _, has := u.User.Password(); has {
			return "the URL has a password"
		}
		for name, values := range u.Query() {
			if !slices.Contains(parameters, name) && values[0] != "" {
				return fmt.Sprintf("parameter %q of the URL is not supported", name)
			}
		}
	}
	for _, o := range options {
		value, setter := optionValue(text, o.name, o.variable)
		if value != "" && o.pattern != "" && !regexp.MustCompile("^("+o.pattern+")$").MatchString(value) {
			return fmt.Sprintf("%s is %q, and takes %s", setter, value, o.takes)
		}
	}
	return ""
}

func nameFile(text string, err *os.PathError) string {
	for _, o := range options {
		if value, setter := optionValue(text, o.name, o.variable); o.pattern == "" && value == err.Path {
			return setter + ": " + err.Error()
		}
	}
	return err.Error()
}

func serviceError() string {
	path, setter := serviceFile()
	if _, err := os.Stat(path); err != nil {
		return setter + ": " + err.Error()
	}
	return "no such service in " + path + ", or it has an error"
}

// fallsBack reports whether a connection to another machine would be made without TLS if TLS fails, or vice versa.
func fallsBack(config *pgx.ConnConfig) bool {
	all := hosts(config)
	for i, h := range all[1:] {
		before := all[i]
		sameAddress := h.Host == before.Host && h.Port == before.Port
		if sameAddress && (h.TLSConfig == nil) != (before.TLSConfig == nil) && !isLocal(h.Host) {
			return true
		}
	}
	return false
}

func withVerification(text string) string {
	separator := "?"
	if strings.Contains(text, "?") {
		separator = "&"
	}
	return text + separator + "sslmode=verify-full"
}

func hosts(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

// unverified reports whether another machine could pose as the host.
func unverified(h *pgconn.FallbackConfig) bool { return !isLocal(h.Host) && takesAny(h) }

// takesAny reports whether TLS does not verify the host.
func takesAny(h *pgconn.FallbackConfig) bool {
	return h.TLSConfig == nil || h.TLSConfig.InsecureSkipVerify //nolint:forbidigo // only read
}

// isLocal reports whether a host can only be this machine.
func isLocal(host string) bool {
	if host == "localhost" || isSocket(host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// provenAuth are the ways to log in, as in require_auth, that reveal no password to a program that merely listens in
// place of the server.
const provenAuth = "scram-sha-256,none"

// anyoneListens reports whether another user of this machine could pose as the server: its port is free while it is
// down.
func anyoneListens(h *pgconn.FallbackConfig) bool {
	return isLocal(h.Host) && !isSocket(h.Host) && takesAny(h)
}

func isSocket(host string) bool { return filepath.IsAbs(host) || strings.HasPrefix(host, "/") }

// takeParameters removes our parameters from the server's, and refuses unknown ones.
func (t *Target) takeParameters() error {
	sent := map[string]string{}
	for key, value := range t.config.RuntimeParams {
		switch {
		case key == "schema":
			t.schema = value
		case key == "options":
			sent[key] = value
		case !slices.Contains(ignored, key):
			return &TargetError{fmt.Sprintf("parameter %q of the service is not supported", key), "remove it from the service"}
		}
	}
	t.config.RuntimeParams = sent
	if !isSchemaName(t.schema) {
		return errSchemaName
	}
	return nil
}

// passfileExposed returns an error if the password comes from a file that others can read, which libpq ignores.
func passfileExposed(config *pgx.ConnConfig) error {
	path := os.Getenv("PGPASSFILE")
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".pgpass")
	}
	if runtime.GOOS == "windows" || config.Password == "" || os.Getenv("PGPASSWORD") != "" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return &TargetError{"other users can read the password file " + path, "restrict access with chmod 600 " + path}
	}
	return nil
}

// serviceFileExposed returns an error if others can change the service file, which says where passwords are sent.
func serviceFileExposed(text string) error {
	if !namesService(text) {
		return nil
	}
	path, _ := serviceFile()
	info, err := os.Stat(path)
	if err != nil {
		return &TargetError{serviceError(), "check PGSERVICEFILE"}
	}
	if who := disk.ChangersOf(path, info); who.Text != "" {
		return &TargetError{
			"service file " + path + " not used: " + who.Text,
			"use one that only you can write to, in a folder that only you can write to",
		}
	}
	return nil
}

func namesService(text string) bool {
	return strings.Contains(text, "service=") || os.Getenv("PGSERVICE") != ""
}

// serviceFile returns the path of the service file, and a prefix for errors about it.
func serviceFile() (path, setter string) {
	path, setter = os.Getenv("PGSERVICEFILE"), "PGSERVICEFILE"
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path, setter = filepath.Join(home, ".pg_service.conf"), "no such service"
	}
	return path, setter
}

// Unverified reports whether another machine could pose as the server.
func (t Target) Unverified() bool { return slices.ContainsFunc(hosts(t.config), unverified) }

func (t Target) names() string {
	var all []string
	for _, h := range hosts(t.config) {
		if !slices.Contains(all, h.Host) {
			all = append(all, h.Host)
		}
	}
	return strings.Join(all, ", ")
}

// Place returns the target as a URL without secrets. It identifies the same store in another environment too, as far
// as a URL can.
func (t Target) Place() string {
	query := url.Values{}
	var addresses []string
	for _, h := range hosts(t.config) {
		address := net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port)))
		if isSocket(h.Host) {
			query["host"], query["port"] = []string{h.Host}, []string{strconv.Itoa(int(h.Port))}
		} else if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	user, database := t.config.User, cmp.Or(t.config.Database, t.config.User)
	query.Set("schema", t.schema)
	return "postgres://" + url.User(user).String() + "@" + strings.Join(addresses, ",") +
		"/" + url.PathEscape(database) + "?" + strings.ReplaceAll(query.Encode(), "%2F", "/")
}
