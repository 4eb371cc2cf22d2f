package arch

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms lists every package, and which of ours it may import. Tests may import
// what they like.
var rooms = map[string][]string{
	// Nouns: the standard library only, and no I/O.
	"internal/jsonscan": {},
	"internal/tracking": {"internal/carriers", "internal/jsonscan", "internal/pace"}, // pace: its table of outcomes names what each says about pace
	"internal/webhook":  {"internal/jsonscan"},
	"internal/pace":     {},
	"internal/carriers": {},

	// Edges: one foreign technology each.
	"internal/term":          {"internal/jsonscan", "internal/redact"},
	"internal/term/termtest": {}, // for tests alone
	"internal/render":        {"internal/term", "internal/xlsx"},
	"internal/report":        {"internal/term"},
	"internal/shell":         {},
	"internal/config":        {"internal/disk", "internal/jsonscan", "internal/shell", "internal/tracking", "internal/webhook"},
	"internal/config/edit":   {"internal/config", "internal/disk", "internal/webhook"},
	"internal/buildinfo":     {},
	"internal/disk":          {},
	"internal/keyring":       {},
	"internal/redact":        {"internal/jsonscan"},

	// Contracts: what is remembered, in words and interfaces.
	"internal/ledger":   {"internal/tracking"},
	"internal/inbox":    {"internal/webhook"},
	"internal/observed": {"internal/jsonscan"},

	// Adapters.
	"internal/xlsx":           {},
	"internal/intake":         {"internal/carriers", "internal/disk", "internal/jsonscan", "internal/shell", "internal/tracking", "internal/xlsx"},
	"internal/api":            {"internal/redact", "internal/tracking"},
	"internal/sandbox":        {"internal/tracking", "internal/webhook"},
	"internal/sandbox/shapes": {}, // for tests alone
	"internal/store":          {"internal/disk", "internal/jsonscan", "internal/ledger", "internal/inbox", "internal/observed", "internal/tracking", "internal/webhook"},
	"internal/store/sqlite":   {"internal/disk", "internal/store", "internal/tracking"},
	"internal/store/postgres": {"internal/disk", "internal/redact", "internal/store", "internal/tracking"},
	"internal/storetest":      {"internal/ledger", "internal/inbox", "internal/observed", "internal/tracking", "internal/webhook"},

	// Use cases: contracts and small interfaces.
	"internal/bulk":    {"internal/ledger", "internal/tracking", "internal/pace", "internal/query"},
	"internal/query":   {"internal/follow", "internal/inbox", "internal/ledger", "internal/pace", "internal/poll", "internal/tracking"},
	"internal/poll":    {"internal/disk", "internal/pace"},
	"internal/listen":  {"internal/inbox", "internal/pace", "internal/webhook"},
	"internal/forward": {"internal/inbox", "internal/jsonscan", "internal/redact", "internal/tracking", "internal/webhook", "internal/pace"},
	"internal/replay":  {"internal/inbox", "internal/webhook", "internal/forward"},
	"internal/follow": {
		"internal/inbox", "internal/ledger", "internal/observed", "internal/pace", "internal/tracking", "internal/webhook",
	},
	"internal/inspect": {},

	"internal/findings": {"internal/carriers", "internal/disk", "internal/intake", "internal/shell", "internal/tracking", "internal/xlsx"},

	// Composition.
	"internal/app": program,
	// The command line, a package per noun; what several of them need stands first.
	"internal/cli/command":   commands(),
	"internal/cli/view":      commands("command"),
	"internal/cli/clitest":   commands("command"), // for tests alone
	"internal/cli/helptest":  {},                  // tests alone
	"internal/cli/input":     commands("command"),
	"internal/cli/complete":  commands("command", "view"),
	"internal/cli/track":     commands("command", "input", "view"),
	"internal/cli/send":      commands("command", "track", "view"),
	"internal/cli/check":     commands("command", "input"),
	"internal/cli/create":    commands("check", "command", "input", "send", "track", "view"),
	"internal/cli/runs":      commands("command", "send", "view"),
	"internal/cli/signature": commands("command", "view"),
	"internal/cli/events":    commands("command", "input", "signature", "view"),
	"internal/cli/inspect":   commands("command", "events", "runs", "signature", "track", "view"),
	"internal/cli/listen":    commands("command", "events", "inspect", "signature", "view"),
	"internal/cli/setup":     commands("command", "view"),
	"internal/cli/observed":  commands("command", "view"),
	"internal/cli/request":   commands("command"),
	"internal/cli/storage":   commands("command", "input", "view"),
	"internal/cli/doctor":    commands("command", "events", "observed"),
	"internal/cli":           commands("check", "command", "complete", "create", "doctor", "events", "inspect", "listen", "observed", "request", "runs", "setup", "signature", "storage", "track"),
	"cmd/waybill":            {"internal/cli"},

	// Outside the program.
	"internal/pgtest":   {}, // for tests alone
	"internal/manpages": {"internal/app", "internal/buildinfo", "internal/cli", "internal/cli/command", "internal/term"},
	"internal/arch":     {},
}

// commands lists what a package of the command line may import: all of the
// program, and those of its own kind.
func commands(own ...string) []string {
	all := append([]string{"internal/app"}, program...)
	for _, name := range own {
		all = append(all, "internal/cli/"+name)
	}
	return all
}

// program lists what the composition may put together.
var program = []string{
	"internal/jsonscan", "internal/tracking", "internal/webhook", "internal/pace", "internal/carriers", "internal/shell",
	"internal/term", "internal/render", "internal/report", "internal/config", "internal/config/edit", "internal/buildinfo", "internal/disk", "internal/keyring", "internal/redact",
	"internal/ledger", "internal/inbox", "internal/observed",
	"internal/xlsx", "internal/intake", "internal/api", "internal/sandbox", "internal/store", "internal/store/postgres", "internal/store/sqlite",
	"internal/bulk", "internal/query", "internal/poll", "internal/listen", "internal/forward", "internal/replay", "internal/follow", "internal/findings", "internal/inspect",
}

// tests marks a dependency that only tests may import.
const tests = "tests"

// owners lists who may import a dependency directly. Tests may import any of
// them; what isn't here may not be imported at all. Behind /... stand all that
// lie below too.
var owners = map[string][]string{
	"github.com/spf13/cobra":               {"internal/cli/...", "internal/manpages"},
	"github.com/spf13/cobra/doc":           {"internal/manpages"},
	"github.com/spf13/pflag":               {"internal/cli/...", "internal/config", "internal/manpages"},
	"github.com/spf13/viper":               {"internal/config"},
	"github.com/go-viper/mapstructure/v2":  {"internal/config"},
	"go.yaml.in/yaml/v3":                   {"internal/config", "internal/config/edit"},
	"golang.org/x/sys":                     {"internal/config", "internal/disk", "internal/term", "internal/store", "internal/store/postgres", "internal/store/sqlite"},
	"github.com/olekukonko/tablewriter":    {"internal/render"},
	"github.com/itchyny/gojq":              {"internal/render"},
	"github.com/clipperhouse/displaywidth": {"internal/render", "internal/term"},
	"github.com/briandowns/spinner":        {"internal/term"},
	"golang.org/x/term":                    {"internal/term"},
	"modernc.org/sqlite":                   {"internal/store/sqlite"},
	"github.com/gofrs/flock":               {"internal/config/edit", "internal/store/sqlite"},
	"github.com/zalando/go-keyring":        {"internal/keyring"},
	"github.com/jackc/pgx/v5":              {"internal/store/postgres", "internal/pgtest"},
	"golang.org/x/text":                    {"internal/cli/track", "internal/intake", "internal/webhook"},
	"golang.org/x/sync":                    {"internal/bulk", "internal/poll", "internal/listen", "internal/forward", "internal/store", "internal/cli/..."},
	"github.com/rogpeppe/go-internal":      {tests},
	"github.com/google/go-cmp":             {tests, "internal/storetest"},
	"go.uber.org/goleak":                   {tests},
	"github.com/creack/pty":                {tests},
	"github.com/chromedp/chromedp":         {tests},
	"github.com/chromedp/cdproto":          {tests},
	"github.com/xuri/excelize/v2":          {tests},
}

// nouns lists the packages that do no I/O, and what they may import from
// outside the standard library.
var nouns = map[string][]string{
	"internal/jsonscan": {},
	"internal/tracking": {},
	"internal/pace":     {},
	"internal/observed": {},
	"internal/webhook":  {"golang.org/x/text/unicode/norm"},
}

// touchesTheWorld lists roots of the standard library that do I/O, or that are
// there for it. A noun may import nothing at or below them, but for stillPure.
var (
	touchesTheWorld = []string{
		"crypto/tls", "crypto/x509", "database", "debug", "embed", "expvar", "flag", "go", "html/template", "io/fs",
		"io/ioutil", "log", "net", "os", "path/filepath", "plugin", "runtime", "syscall", "testing", "text/template",
	}
	stillPure = []string{"net/mail", "net/netip", "net/textproto", "net/url"}
)

// concreteStores lists the packages of stores. Who uses one knows the contracts
// alone: besides the store itself, only knowStores name more of it than its
// errors. Tests may.
var (
	concreteStores = []string{"internal/store"}
	knowStores     = []string{"internal/app", "internal/cli/doctor", "internal/cli/storage", "internal/store/sqlite", "internal/store/postgres"}
)

func TestRooms(t *testing.T)           { hold(t, wrongRooms(rooms)) }
func TestOwners(t *testing.T)          { hold(t, wrongOwners(owners)) }
func TestNouns(t *testing.T)           { hold(t, impureNouns) }
func TestNoConcreteStore(t *testing.T) { hold(t, namedStores) }

// wrongRooms finds packages that the table doesn't list, lines of the table
// that no package answers to, and imports between rooms that it doesn't allow.
func wrongRooms(table map[string][]string) rule {
	return func(t *tree) []problem {
		var out []problem
		seen := map[string]bool{}
		for _, r := range t.rooms {
			seen[r.path] = true
			if _, ok := table[r.path]; !ok {
				out = append(out, problem{r.path, "not in the table of rooms"})
			}
		}
		for _, p := range slices.Sorted(maps.Keys(table)) {
			if !seen[p] {
				out = append(out, problem{p, "is in the table of rooms, but there is no such package"})
			}
		}
		t.eachImport(func(r *room, f *file, imported string, at problem) {
			allowed, listed := table[r.path]
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && listed && !f.test && !slices.Contains(allowed, ours) {
				at.text = r.path + " may not import " + ours
				out = append(out, at)
			}
		})
		return out
	}
}

// wrongOwners finds imports of dependencies by packages that do not own them,
// dependencies without an owner, and owners of what nobody imports.
func wrongOwners(table map[string][]string) rule {
	return func(t *tree) []problem {
		var out []problem
		used := map[string]bool{}
		t.eachImport(func(r *room, f *file, imported string, at problem) {
			if !foreign(imported) {
				return
			}
			dep := ownedAs(table, imported)
			used[dep] = true
			switch {
			case dep == "":
				at.text = imported + " has no owner"
				out = append(out, at)
			case !f.test && !owns(table[dep], r.path):
				at.text = r.path + " may not import " + imported + ", which belongs to " + strings.Join(table[dep], ", ")
				out = append(out, at)
			}
		})
		for _, dep := range slices.Sorted(maps.Keys(table)) {
			if !used[dep] {
				out = append(out, problem{dep, "has an owner, but nobody imports it"})
			}
		}
		for _, dep := range t.direct() {
			if ownedAs(table, dep) == "" {
				out = append(out, problem{"go.mod", dep + " has no owner"})
			}
		}
		return out
	}
}

// owns reports whether a package is among the owners.
func owns(owners []string, path string) bool {
	return slices.ContainsFunc(owners, func(o string) bool {
		root, below := strings.CutSuffix(o, "/...")
		return path == root || below && strings.HasPrefix(path, root+"/")
	})
}

// ownedAs returns the line of the table that an import path falls under, or
// an empty string.
func ownedAs(table map[string][]string, imported string) string {
	for p := imported; p != "."; p = path.Dir(p) {
		if _, ok := table[p]; ok {
			return p
		}
	}
	return ""
}

func impureNouns(t *tree) []problem {
	var out []problem
	t.eachImport(func(r *room, f *file, imported string, at problem) {
		allowed, noun := nouns[r.path]
		if !noun || f.test {
			return
		}
		switch {
		case foreign(imported):
			if !slices.Contains(allowed, imported) {
				at.text = r.path + " is a noun: it may not import " + imported
				out = append(out, at)
			}
		case under(touchesTheWorld, imported) && !under(stillPure, imported):
			at.text = r.path + " is a noun: it does no I/O, so it may not import " + imported
			out = append(out, at)
		}
	})
	return out
}

// namedStores finds what names a concrete store.
func namedStores(t *tree) []problem {
	var out []problem
	t.inspect(func(r *room, _ *file, n ast.Node) {
		pkg, name := r.selected(n)
		ours, ok := strings.CutPrefix(pkg, module+"/")
		if !ok || !slices.Contains(concreteStores, ours) || slices.Contains(knowStores, r.path) || strings.HasPrefix(name, "Err") {
			return
		}
		out = append(out, t.at(n, "%s names %s.%s: ask for a contract of ledger or inbox", r.path, path.Base(ours), name))
	})
	return out
}

// foreign reports whether an import path is neither ours nor the standard
// library's, whose paths begin with a word without a dot.
func foreign(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".") && imported != module && !strings.HasPrefix(imported, module+"/")
}

// under reports whether an import path is one of the roots or lies below one.
func under(roots []string, imported string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}

// eachImport calls visit for every import, those of tests included.
func (t *tree) eachImport(visit func(r *room, f *file, imported string, at problem)) {
	for _, r := range t.rooms {
		for _, f := range r.files {
			for _, spec := range f.ast.Imports {
				if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
					visit(r, f, imported, t.at(spec, ""))
				}
			}
		}
	}
}

func TestRoomsProof(t *testing.T) {
	table := map[string][]string{"internal/noun": {}, "internal/user": {"internal/noun"}}
	noun := "package noun"
	prove(t, wrongRooms(table), []proof{
		{"fine", map[string]string{
			"internal/noun/noun.go":      noun,
			"internal/noun/noun_test.go": `package noun_test; import _ "` + module + `/internal/user"`,
			"internal/user/user.go":      `package user; import _ "` + module + `/internal/noun"`,
			"testdata/odd.go":            "package odd",
			".bin/odd.go":                "package odd",
		}, nil},
		{"the wrong way round", map[string]string{
			"internal/noun/noun.go": `package noun; import "` + module + `/internal/user"`,
			"internal/user/user.go": "package user",
		}, []string{"internal/noun/noun.go:1: internal/noun may not import internal/user"}},
		{"not listed", map[string]string{
			"internal/noun/noun.go": noun, "internal/user/user.go": "package user", "internal/new/new_test.go": "package new",
		}, []string{"internal/new: not in the table"}},
		{"listed in vain", map[string]string{
			"internal/noun/noun.go": noun,
		}, []string{"internal/user: is in the table of rooms, but"}},
	})
}

func TestOwnersProof(t *testing.T) {
	table := map[string][]string{"x.org/dep/v2": {"internal/owner"}, "x.org/check": {tests}}
	mod := "module m\n\nrequire x.org/dep/v2 v2.0.0\nrequire (\n\tx.org/check v1.0.0\n\tx.org/far v1.0.0 // indirect\n)\n"
	owner := `package owner; import _ "x.org/dep/v2/sub"`
	ownerTest := `package owner; import (_ "x.org/check"; _ "x.org/dep/v2")`
	prove(t, wrongOwners(table), []proof{
		{"fine", map[string]string{
			"go.mod": mod, "internal/owner/owner.go": owner, "internal/owner/owner_test.go": ownerTest,
			"internal/other/other_test.go": `package other; import _ "x.org/dep/v2"`,
			"internal/other/other.go":      `package other; import (_ "net/http"; _ "` + module + `/internal/owner")`,
		}, nil},
		{"not the owner", map[string]string{
			"go.mod": mod, "internal/owner/owner.go": owner, "internal/owner/owner_test.go": ownerTest,
			"internal/other/other.go": `package other; import _ "x.org/dep/v2"`,
		}, []string{"internal/other/other.go:1: internal/other may not import x.org/dep/v2"}},
		{"below the owner", map[string]string{
			"go.mod": mod, "internal/owner/owner.go": owner, "internal/owner/owner_test.go": ownerTest,
			"internal/owner/below/b.go": `package below; import _ "x.org/dep/v2"`,
		}, []string{"internal/owner/below/b.go:1: internal/owner/below may not import x.org/dep/v2"}},
		{"for tests only", map[string]string{
			"go.mod": mod, "internal/owner/owner.go": owner, "internal/owner/check.go": `package owner; import _ "x.org/check"`,
		}, []string{"internal/owner/check.go:1: internal/owner may not import x.org/check, which belongs to tests"}},
		{"nobody's, in a test too", map[string]string{
			"go.mod": mod, "internal/owner/owner.go": owner, "internal/owner/owner_test.go": ownerTest,
			"internal/owner/more_test.go": `package owner; import _ "x.org/depot"`,
		}, []string{"internal/owner/more_test.go:1: x.org/depot has no owner"}},
		{"nobody imports it", map[string]string{
			"go.mod": mod, "internal/owner/owner.go": owner,
		}, []string{"x.org/check: has an owner, but nobody"}},
		{"required without an owner", map[string]string{
			"go.mod": mod + "require x.org/depot v1.0.0", "internal/owner/owner.go": owner, "internal/owner/owner_test.go": ownerTest,
		}, []string{"go.mod: x.org/depot has no owner"}},
	})
}

func TestNounsProof(t *testing.T) {
	noun := func(imported string) map[string]string {
		return map[string]string{"internal/webhook/w.go": `package webhook; import _ "` + imported + `"`}
	}
	const at = "internal/webhook/w.go:1: internal/webhook is a noun"
	prove(t, impureNouns, []proof{
		{"pure", noun("net/url"), nil},
		{"a hash", noun("crypto/sha256"), nil},
		{"its one dependency", noun("golang.org/x/text/unicode/norm"), nil},
		{"another of the same module", noun("golang.org/x/text/transform"), []string{at}},
		{"HTTP", noun("net/http"), []string{at}},
		{"files", noun("os"), []string{at}},
		{"signals", noun("os/signal"), []string{at}},
		{"a database", noun("database/sql"), []string{at}},
		{"logs", noun("log/slog"), []string{at}},
		{"the other noun has no dependency", map[string]string{
			"internal/tracking/t.go": `package tracking; import _ "golang.org/x/text/unicode/norm"`,
		}, []string{"internal/tracking/t.go:1: internal/tracking is a noun"}},
		{"tests may", map[string]string{"internal/webhook/w_test.go": `package webhook; import _ "os"`}, nil},
		{"so may others", map[string]string{"internal/api/a.go": `package api; import _ "os"`}, nil},
	})
}

func TestNoConcreteStoreProof(t *testing.T) {
	uses := func(name, expr string) map[string]string {
		return map[string]string{name: "package p; import db \"" + module + "/internal/store\"\n" + expr}
	}
	prove(t, namedStores, []proof{
		{"its type", uses("internal/cli/runs/r.go", "func f(*db.DB) {}"), []string{"internal/cli/runs/r.go:2: internal/cli/runs names store.DB"}},
		{"in a use case", uses("internal/bulk/b.go", "type job struct { s db.DB }"), []string{"internal/bulk/b.go:2: internal/bulk names store.DB"}},
		{"its constructor", uses("internal/query/q.go", "var _, _ = db.Open(nil, db.Options{})"), []string{"internal/query/q.go:2: internal/query names store.O", "internal/query/q.go:2: internal/query names store.O"}},
		{"its errors", uses("internal/cli/command/errors.go", "var _, _ = db.ErrFull, (*db.Error)(nil)"), nil},
		{"where it is opened", uses("internal/app/store.go", "func f(*db.DB) {}"), nil},
		{"tests may", uses("internal/bulk/b_test.go", "func f(*db.DB) {}"), nil},
		{"itself", map[string]string{"internal/store/s.go": "package store; type DB struct{}; func f(*DB) {}"}, nil},
	})
}
