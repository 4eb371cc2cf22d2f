package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outputDoc is the reference of JSON members, written from the types below.
const outputDoc = "docs/output.md"

var update = flag.Bool("update", false, "write "+outputDoc)

// outputs has what commands print as JSON, and the type behind it.
var outputs = []struct{ commands, name string }{
	{"create, runs resume, runs retry", "cli/send.Result"},
	{"create --dry-run", "cli/create.dryRunResult"},
	{"check", "findings.Finding"},
	{"list", "cli/view.Tracking"},
	{"show, wait", "cli/view.Answer"},
	{"wait --watch: change", "cli/track.changeJSON"},
	{"wait --watch: summary", "cli/track.summaryJSON"},
	{"stats", "cli/track.sumsJSON"},
	{"report", "cli/track.reportJSON"},
	{"runs list, runs show", "cli/runs.Run"},
	{"runs rows", "cli/view.Row"},
	{"runs dismiss", "cli/runs.dismissedJSON"},
	{"listen: ready", "cli/listen.readyJSON"},
	{"events list, events wait, listen: event", "cli/view.Event"},
	{"listen: forward", "cli/listen.attemptJSON"},
	{"listen: summary", "cli/listen.summaryJSON"},
	{"listen --forget-target", "cli/listen.forgottenJSON"},
	{"events show", "cli/events.Shown"},
	{"events show --headers", "webhook.Field"},
	{"events diff", "cli/events.difference"},
	{"events list --dead, events list --pending", "cli/events.Forwarding"},
	{"events replay, events send", "cli/events.Sent"},
	{"events replay, events send: summary", "cli/events.sendingSummaryJSON"},
	{"events export", "webhook.captureJSON"},
	{"events import", "cli/events.importedJSON"},
	{"events readmit", "cli/events.readmittedJSON"},
	{"inspect, sandbox", "cli/command.Ready"},
	{"signature learn", "cli/signature.learnJSON"},
	{"signature verify", "cli/signature.Verdict"},
	{"signature explain", "cli/signature.Explanation"},
	{"signature promote", "cli/signature.promotionJSON"},
	{"signature schemes", "cli/signature.schemeJSON"},
	{"init", "cli/setup.initResult"},
	{"auth login", "cli/setup.loginJSON"},
	{"auth status", "cli/setup.authJSON"},
	{"config get, config list", "cli/setup.settingJSON"},
	{"config path", "cli/setup.pathJSON"},
	{"config profiles", "cli/setup.profileJSON"},
	{"doctor", "cli/doctor.finding"},
	{"store path", "cli/storage.pathJSON"},
	{"store check", "cli/storage.checkJSON"},
	{"store backup", "cli/storage.backupJSON"},
	{"store backup of a server", "cli/storage.dumpJSON"},
	{"store restore", "cli/storage.restoredJSON"},
	{"store reset", "cli/storage.resetJSON"},
	{"store copy", "cli/storage.copyJSON"},
	{"store prune", "cli/storage.pruneJSON"},
	{"store erase", "cli/storage.erasedJSON"},
	{"store schema", "cli/storage.schemaJSON"},
	{"api --include", "cli/request.includedJSON"},
	{"observed", "observed.Entry"},
	{"version", "buildinfo.Info"},
	{"messages on stderr", "term.message"},
}

const outputIntro = `# Members of JSON results

One table for what each command prints with ` + "`-o json` or `-o jsonl`" + `. Lists are arrays of such objects with ` + "`-o json`" + `, one
object per line with ` + "`-o jsonl`" + `. Members keep their names and meaning; new ones may be added. ` + "`waybill help output`" + ` has
what holds for all of them.

- A name with ` + "`[]`" + ` is that of the elements of an array, one with a dot is inside an object.
- Type *any* is data of the service, or of a setting, as it is. Type *time* is RFC 3339 in UTC.
- Absent: *never*; *if empty* (an empty text, 0 or false is left out), *if none*; *null* if there is none.

This page is written from the code: ` + "`go test ./internal/arch -run TestOutputDoc -update`" + `.
`

// TestOutputDoc compares the page with the code.
func TestOutputDoc(t *testing.T) {
	tr := &outputTypes{tree: project(t), types: map[string]*outputType{}}
	tr.collect()
	want := tr.page(t)
	if *update {
		if err := os.WriteFile("../../"+outputDoc, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := fs.ReadFile(tr.tree.fsys, outputDoc); err != nil || string(got) != want {
		t.Errorf("%s is not what the code says (%v): run go test ./internal/arch -run TestOutputDoc -update", outputDoc, err)
	}
}

// outputTypes has the types of the program by package and name.
type outputTypes struct {
	tree  *tree
	types map[string]*outputType
}

type outputType struct {
	room    string // its package, as in outputs
	imports map[string]string
	spec    *ast.TypeSpec
	text    bool // it encodes itself as text
	shown   bool // the page has its members
}

func (o *outputTypes) collect() {
	texts := map[string]bool{}
	for _, r := range o.tree.rooms {
		room := strings.TrimPrefix(r.path, "internal/")
		for _, f := range r.files {
			if f.test {
				continue
			}
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && (fn.Name.Name == "MarshalText" || fn.Name.Name == "AppendText") {
					texts[room+"."+receiver(fn)] = true
				}
				if g, ok := d.(*ast.GenDecl); ok {
					o.add(room, f, g)
				}
			}
		}
	}
	for name, typ := range o.types {
		typ.text = texts[name]
	}
}

func (o *outputTypes) add(room string, f *file, d *ast.GenDecl) {
	imports := map[string]string{}
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		imports[path.Base(p)] = strings.TrimPrefix(strings.TrimPrefix(p, module+"/"), "internal/")
	}
	for _, s := range d.Specs {
		if s, ok := s.(*ast.TypeSpec); ok {
			o.types[room+"."+s.Name.Name] = &outputType{room: room, imports: imports, spec: s}
		}
	}
}

func (o *outputTypes) page(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(outputIntro)
	for _, out := range outputs {
		typ := o.types[out.name]
		if typ == nil {
			t.Fatalf("no type %s", out.name)
		}
		b.WriteString("\n## " + out.commands + "\n\n| member | type | unit | absent | about |\n|---|---|---|---|---|\n")
		before := b.Len()
		o.members(&b, typ, "", []*outputType{typ})
		if b.Len() == before {
			t.Errorf("%s has no members", out.name)
		}
	}
	for name, typ := range o.types {
		// The inspector's are between its page and its server, which are one program.
		if strings.HasPrefix(typ.room, "cli/") && typ.room != "cli/inspect" && !typ.shown && typ.hasMembers() {
			t.Errorf("%s has members of JSON and is in no table: add it to outputs", name)
		}
	}
	return b.String()
}

// hasMembers reports whether the type is a struct with members of JSON.
func (typ *outputType) hasMembers() bool {
	fields, ok := typ.spec.Type.(*ast.StructType)
	return ok && slices.ContainsFunc(fields.Fields.List, func(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "json:") })
}

// members writes a row for each member of a struct, those of embedded structs and of
// objects inside included. above has the types that it is in.
func (o *outputTypes) members(b *strings.Builder, typ *outputType, prefix string, above []*outputType) {
	fields, ok := typ.spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	typ.shown = true
	for _, f := range fields.Fields.List {
		tag := ""
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag = reflect.StructTag(text).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		inner := o.named(typ, f.Type)
		switch {
		case len(f.Names) == 0 && name == "" && inner != nil:
			o.members(b, inner, prefix, append(slices.Clip(above), inner))
		case name == "" || name == "-":
		default:
			o.member(b, typ, f, prefix+name, options != "", above)
		}
	}
}

func (o *outputTypes) member(b *strings.Builder, typ *outputType, f *ast.Field, name string, omitted bool, above []*outputType) {
	kind, array, inner := o.kind(typ, f.Type)
	same := false
	for _, a := range above {
		same = same || a == inner
	}
	if same {
		kind += " like this one"
	}
	absent := "never"
	_, pointer := f.Type.(*ast.StarExpr)
	switch {
	case omitted && (pointer || kind == "time"):
		absent = "if none"
	case omitted:
		absent = "if empty"
	case pointer || kind == "any":
		absent = "null"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", name+array, kind, unit(name, kind), absent, about(f))
	if inner != nil && !same {
		o.members(b, inner, name+array+".", append(slices.Clip(above), inner))
	}
}

// kind returns the type of a member in words, "[]" if it is an array, and the struct
// of an object.
func (o *outputTypes) kind(typ *outputType, e ast.Expr) (kind, array string, inner *outputType) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return o.kind(typ, e.X)
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "base64", "", nil
		}
		kind, _, inner := o.kind(typ, e.Elt)
		return kind, "[]", inner
	case *ast.MapType:
		kind, array, _ := o.kind(typ, e.Value)
		if array != "" {
			kind = "array of " + kind
		}
		return "object of " + kind, "", nil
	case *ast.SelectorExpr:
		switch e.X.(*ast.Ident).Name + "." + e.Sel.Name {
		case "time.Time":
			return "time", "", nil
		case "json.RawMessage":
			return "any", "", nil
		}
	case *ast.Ident:
		if kind := basic[strings.TrimRight(e.Name, "0123456789")]; kind != "" {
			return kind, "", nil
		}
	}
	named := o.named(typ, e)
	switch {
	case named == nil:
		return "any", "", nil
	case named.text:
		return "string", "", nil
	}
	if _, ok := named.spec.Type.(*ast.StructType); ok {
		return "object", "", named
	}
	return o.kind(named, named.spec.Type)
}

var basic = map[string]string{
	"string": "string", "bool": "boolean", "int": "integer", "uint": "integer", "float": "number", "any": "any",
}

// named returns the type of ours that an expression in typ's file names, or nil.
func (o *outputTypes) named(typ *outputType, e ast.Expr) *outputType {
	switch e := e.(type) {
	case *ast.Ident:
		return o.types[typ.room+"."+e.Name]
	case *ast.SelectorExpr:
		return o.types[typ.imports[e.X.(*ast.Ident).Name]+"."+e.Sel.Name]
	}
	return nil
}

func unit(name, kind string) string {
	name = name[strings.LastIndex(name, ".")+1:]
	switch {
	case kind != "integer" && kind != "number":
		return ""
	case strings.HasSuffix(name, "Seconds"):
		return "s"
	case strings.HasSuffix(strings.ToLower(name), "bytes"):
		return "bytes"
	case strings.HasSuffix(name, "Days"):
		return "days"
	}
	return ""
}

var docLink = regexp.MustCompile(`\[([\w.]+)\]`)

// about returns the comment beside a field.
func about(f *ast.Field) string {
	text := docLink.ReplaceAllString(strings.Join(strings.Fields(f.Comment.Text()), " "), "$1")
	return strings.ReplaceAll(text, "|", `\|`)
}
