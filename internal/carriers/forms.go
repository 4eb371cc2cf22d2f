package carriers

import (
	_ "embed" // the tables
	"regexp"
	"strconv"
	"strings"
	"sync"
)

type form struct {
	Form

	pattern *regexp.Regexp
	from    int               // what the rule covers begins at this character
	prepend string            // and with this
	fits    func(string) bool // nil without a published rule
}

// formTable has a form a line: carrier, name, pattern, rule, where what the rule covers begins and what is put before
// it, whether other carriers deliver it (shared) or only its length tells it (loose), and the source.
//
//go:embed forms.tsv
var formTable string

// rules are the published rules, by their names in the table.
var rules = map[string]func(string) bool{
	"alternating": alternating, "astra": astra, "fedex12": fedex12, "fedex14": fedex14, "gls": gls, "gs1": gs1,
	"identcode": identcode, "iso7064": iso7064, "luhn": luhn, "mod7": mod7, "s10": s10,
	"usps20": usps20, "usps420": usps420,
}

// forms is read from the top: what has a beginning of its own stands before what has only a length.
var forms = sync.OnceValue(func() []*form {
	var all []*form
	for line := range strings.Lines(formTable) {
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t")
		f := &form{fits: rules[columns[3]], prepend: columns[5]}
		f.pattern = regexp.MustCompile("^(?:" + patternSigns.Replace(columns[2]) + ")$")
		f.from, _ = strconv.Atoi(columns[4]) // empty for the first character
		f.Form = Form{
			Carrier: columns[0], Name: columns[1], Source: columns[7],
			Checked: f.fits != nil, Shared: columns[6] == "shared", Loose: columns[6] == "loose",
		}
		all = append(all, f)
	}
	return all
})

func (f *form) named(s string) Form {
	named := f.Form
	if named.Carrier == "" {
		named.Carrier = postalService(s[11:])
		if userAssigned(s[11:]) {
			named.Name += " (no country has the code " + s[11:] + ")"
		}
	}
	return named
}

// patternSigns are what patterns write shortly: # is a digit, @ a capital letter, *
// either of them. The rest is as in package regexp, but for the dot, which is itself.
var patternSigns = strings.NewReplacer("#", "[0-9]", "@", "[A-Z]", "*", "[0-9A-Z]", ".", `\.`)

// posts are the postal services that people know by name, by the country code
// that ends their S10 numbers. YP and WW are no countries: operators use them.
//
//go:embed posts.tsv
var posts string

func postalService(code string) string {
	for line := range strings.Lines(posts) {
		if name, ok := strings.CutPrefix(line, code+"\t"); ok {
			return strings.TrimSpace(name)
		}
	}
	return "postal service of " + code
}
