package carriers

import (
	"cmp"
	_ "embed" // the tables
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
)

type form struct {
	Form

	pattern *regexp.Regexp
	prefix  string            // that every match begins with; may be empty
	from    int               // the check digit's rule covers the text from this character
	prepend string            // and this text before it
	fits    func(string) bool // nil without a published rule

	least, most int // length of numbers
}

func (f *form) matches(s string) bool {
	return f.least <= len(s) && len(s) <= f.most && strings.HasPrefix(s, f.prefix) && f.pattern.MatchString(s)
}

// lengths returns the least and the largest length of what a pattern without * and + matches.
func lengths(re *syntax.Regexp) (least, most int) {
	for i, sub := range re.Sub {
		if a, b := lengths(sub); re.Op == syntax.OpAlternate && i > 0 {
			least, most = min(least, a), max(most, b)
		} else {
			least, most = least+a, most+b
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune), len(re.Rune)
	case syntax.OpCharClass:
		return 1, 1
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		least, most = least*re.Min, most*re.Max
	}
	return least, most
}

// formTable has one form per line: carrier, name, pattern, rule, index of the first character that the rule covers,
// text put before it, whether other carriers deliver it (shared) or only its length identifies it (loose), and source.
//
//go:embed forms.tsv
var formTable string

// rules maps names in the table to the published rules.
var rules = map[string]func(string) bool{
	"alternating": alternating, "astra": astra, "fedex12": fedex12, "fedex14": fedex14, "gls": gls, "gs1": gs1,
	"identcode": identcode, "iso7064": iso7064, "luhn": luhn, "mod7": mod7, "s10": s10,
	"usps20": usps20, "usps420": usps420,
}

// forms returns the forms in the order of the table: forms with a prefix are before forms with only a length.
var forms = sync.OnceValue(func() []*form {
	var all []*form
	for line := range strings.Lines(formTable) {
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t")
		f := &form{fits: rules[columns[3]], prepend: columns[5]}
		f.pattern = regexp.MustCompile("^(?:" + patternSigns.Replace(columns[2]) + ")$")
		parsed, _ := syntax.Parse(f.pattern.String(), syntax.Perl) // as it was compiled
		f.least, f.most = lengths(parsed)
		f.prefix, _ = f.pattern.LiteralPrefix()
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

// patternSigns expands abbreviations in patterns: # is a digit, @ a capital letter, * either of them. A dot is literal;
// the rest is as in package regexp.
var patternSigns = strings.NewReplacer("#", "[0-9]", "@", "[A-Z]", "*", "[0-9A-Z]", ".", `\.`)

// posts maps the country code at the end of S10 numbers to the postal service, if its name is well known. YP and WW are
// not countries: operators use them.
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

// A rule reports whether the last character of s is the check digit of those before it. s has only characters that
// the form allows.

// weighted returns the sum of the digits of s, each times the weight at its position; the weights repeat.
func weighted(s string, weights ...int) int {
	sum := 0
	for i := range len(s) {
		sum += int(s[i]-'0') * weights[i%len(weights)]
	}
	return sum
}

func cut(s string) (string, int) { return s[:len(s)-1], int(s[len(s)-1] - '0') }

// fill returns the digit that makes sum a multiple of 10.
func fill(sum int) int { return (10 - sum%10) % 10 }

// gs1Sum returns the weighted sum of GS1: from the last digit backwards, the weights are 3, 1, 3 and so on.
func gs1Sum(body string) int {
	if len(body)%2 == 1 {
		return weighted(body, 3, 1)
	}
	return weighted(body, 1, 3)
}

// gs1 is the rule of GS1 numbers, and of most other numbers with modulus 10.
func gs1(s string) bool {
	body, check := cut(s)
	return fill(gs1Sum(body)) == check
}

// gls is the rule of GS1 with 1 added to the sum. The third and fourth digit of a number are the kind of shipment.
func gls(s string) bool {
	body, check := cut(s)
	return fill(gs1Sum(body)+1) == check
}

// alternating doubles every second character. The value of a letter is its ASCII code minus 3, modulo 10.
func alternating(s string) bool {
	body, check := cut(s)
	sum := 0
	for i := range len(body) {
		value := int(body[i] - '0')
		if body[i] >= 'A' {
			value = int(body[i]-3) % 10
		}
		sum += value * (1 + i%2)
	}
	return fill(sum) == check
}

// luhn is the rule of ISO/IEC 7812.
func luhn(s string) bool {
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}

// mod7 is the rule that the check digit is the remainder of the digits before it, as one number, divided by 7.
func mod7(s string) bool {
	body, check := cut(s)
	rest := 0
	for i := range len(body) {
		rest = (rest*10 + int(body[i]-'0')) % 7
	}
	return rest == check
}

// identcode weights the digits with 4 and 9 in turn.
func identcode(s string) bool {
	body, check := cut(s)
	return fill(weighted(body, 4, 9)) == check
}

// fedex returns the rule that applies weights in turn, modulo 11.
func fedex(weights ...int) func(string) bool {
	return func(s string) bool {
		body, check := cut(s)
		return weighted(body, weights...)%11%10 == check
	}
}

// fedex14 is for the number of 14 digits inside a longer barcode.
var fedex12, fedex14 = fedex(3, 1, 7), fedex(1, 7, 3)

// astra is for 32 digits: digits 17 to 28 are a tracking number, and the last 4 identify the form of the label.
func astra(s string) bool { return fedex12(s[16:28]) }

// usps20 is for 20 digits, with a check digit computed with or without the application identifier 91 before them.
func usps20(s string) bool { return gs1(s) || gs1("91"+s) }

// usps420 is for the number after 420 and a ZIP code. It has an application identifier, or lacks 91 or 92.
func usps420(s string) bool {
	for _, zip := range []int{5, 9} {
		if len(s) < zip+20 {
			continue
		}
		body := s[zip:]
		if len(body) == 20 && (gs1("92"+body) || gs1("91"+body)) {
			return true
		}
		if (len(body) == 22 || len(body) == 26) && body[0] == '9' && body[1] >= '1' && body[1] <= '5' && gs1(body) {
			return true
		}
	}
	return false
}

// s10 is the rule of the Universal Postal Union. No postal service has a code that ISO 3166 leaves to its users.
func s10(s string) bool {
	if userAssigned(s[11:]) {
		return false
	}
	rest := weighted(s[2:10], 8, 6, 4, 2, 3, 5, 9, 7) % 11
	return "50987654321"[rest] == s[10] // 11 minus rest, but 0 for 10 and 5 for 11
}

// userAssigned reports whether code is AA, QM to QZ, XA to XZ or ZZ, except XK, which is used for Kosovo.
func userAssigned(code string) bool {
	return code == "AA" || code == "ZZ" || code[0] == 'Q' && code[1] >= 'M' || code[0] == 'X' && code != "XK"
}

// iso7064 is the rule of ISO/IEC 7064, mod 37,36.
func iso7064(s string) bool {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	p := 36
	for i := range len(s) - 1 {
		sum := cmp.Or((p+strings.IndexByte(alphabet, s[i]))%36, 36)
		p = sum * 2 % 37
	}
	return alphabet[(37-p)%36] == s[len(s)-1]
}
