package intake

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// none is the index of an absent column.
const none = -1

// columns maps fields to the columns of a table.
type columns struct {
	header  []string // names, without quotes and surrounding white space
	ref     int
	number  int
	code    int   // none if there is no such column, or carrier names are read instead
	carrier int   // the column of carrier names; none if codes are read
	errors  []int // the columns called waybillError
	last    int   // the last column in use
}

func (c *columns) ofCarrier() int { return max(c.code, c.carrier) }

func (c *columns) name(at int) string {
	if at == none {
		return ""
	}
	return c.header[at]
}

// resolver finds the columns of fields. It keeps its first error.
type resolver struct {
	file   string
	line   int
	header []string
	mapped []bool // columns that were given by name
	err    error  // a [*ColumnError]
}

// newResolver returns a resolver. It has an error if the header contains values instead of names.
func newResolver(file string, line int, header []string) *resolver {
	r := &resolver{file: file, line: line, header: header, mapped: make([]bool, len(header))}
	if cell := isData(header); cell != "" {
		r.err = &ColumnError{
			File: file, Line: line, Fields: slices.Clone(refFields), Header: header, data: true,
			reason: fmt.Sprintf("the line has data, such as %s, and no names of columns", show(cell)),
		}
	}
	return r
}

// resolve finds the columns of the fields: by o.Map, then by the interface's own names, then by synonyms.
func resolve(file string, line int, header []string, o Options) (columns, error) {
	r := newResolver(file, line, header)
	of := map[string]int{}
	for _, field := range slices.Sorted(maps.Keys(o.Map)) {
		of[field] = r.byName(field, o.Map[field])
	}
	var missing []string
	for _, field := range refFields {
		if _, ok := of[field]; ok {
			continue
		}
		if of[field] = r.byRank(field); of[field] == none {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		r.fail(missing, "no column for "+strings.Join(missing, " and "), nil)
	}
	c := columns{header: header, ref: of[tracking.FieldReferID], number: of[tracking.FieldNumber]}
	c.code, c.carrier = r.carrierColumns(of, o.Carriers)
	if r.err != nil {
		return columns{}, r.err
	}
	c.last = max(c.ref, c.number, c.code)
	if len(o.Carriers) > 0 {
		c.last = max(c.last, c.carrier)
	}
	c.errors = r.columnsLike(errorColumn)
	return c, nil
}

// columnsLike returns the columns whose names equal name, ignoring case and punctuation.
func (r *resolver) columnsLike(name string) []int {
	folded := foldName(name)
	return r.matching(func(h string) bool { return foldName(h) == folded })
}

func (r *resolver) matching(match func(string) bool) []int {
	var at []int
	for i, name := range r.header {
		if match(name) {
			at = append(at, i)
		}
	}
	return at
}

// byName finds the column with a name: exactly, else the only one that is equal ignoring case and punctuation.
func (r *resolver) byName(field, name string) int {
	at := r.matching(func(h string) bool { return h == name })
	if len(at) == 0 && foldName(name) != "" {
		at = r.columnsLike(name)
	}
	switch len(at) {
	case 0:
		r.fail([]string{field}, fmt.Sprintf("no column %s, which --map names for %s", show(name), field), nil)
	case 1:
		r.mapped[at[0]] = true
		return at[0]
	default:
		r.fail([]string{field},
			fmt.Sprintf("%d columns are named %s, which --map names for %s", len(at), show(name), field), at)
	}
	return none
}

func (r *resolver) byRank(field string) int {
	at := r.bestColumns(field)
	if len(at) == 1 {
		return at[0]
	}
	if len(at) > 1 {
		r.fail([]string{field}, fmt.Sprintf("%d columns could be %s", len(at), field), at)
	}
	return none
}

// bestColumns returns the best columns for a field. A mapped column matches another field only by its own name.
func (r *resolver) bestColumns(field string) []int {
	var at []int
	highest := 1
	for i, name := range r.header {
		n := r.rank(field, name)
		if n < highest || (r.mapped[i] && n < 2) {
			continue
		}
		if n > highest {
			at, highest = at[:0], n
		}
		at = append(at, i)
	}
	return at
}

// carrierColumns finds the column of codes, else of names; --map wins. Without codes, names may be ambiguous.
func (r *resolver) carrierColumns(given map[string]int, codes map[string]string) (code, name int) {
	if at, ok := given[FieldCarrier]; ok {
		return none, at
	}
	if at, ok := given[tracking.FieldCarrierCode]; ok {
		return at, none
	}
	if code = r.byRank(tracking.FieldCarrierCode); code != none {
		return code, none
	}
	at := r.bestColumns(FieldCarrier)
	if len(at) == 0 {
		return none, none
	}
	if len(at) > 1 && len(codes) > 0 {
		r.fail([]string{FieldCarrier}, fmt.Sprintf("%d columns could hold carrier names", len(at)), at)
	}
	return none, at[0]
}

//go:embed headers.tsv
var headers string

// synonyms returns the folded names that exports give to a field, each with the column that must be present too, or
// "". The interface's own name of a field has precedence over them.
var synonyms = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for line := range strings.Lines(headers) {
		columns := strings.Split(line, "\t") // field, language or program, names
		field := columns[0]
		if all[field] == nil {
			all[field] = map[string]string{}
		}
		for entry := range strings.SplitSeq(columns[2], ";") {
			name, beside, _ := strings.Cut(entry, "@")
			all[field][foldName(name)] = foldName(beside)
		}
	}
	return all
})

// fieldNames are the names of a field in the service's interface.
//
// Interface: Resources and their fields, tracking creation item.
var fieldNames = map[string][]string{
	tracking.FieldReferID:     {tracking.FieldReferID},
	tracking.FieldNumber:      {tracking.FieldNumber},
	tracking.FieldCarrierCode: {tracking.FieldCarrierCode, carrierCodePath},
}

// carrierCodePath is the path of the carrier code in an item.
//
// Interface: Resources and their fields, tracking creation item.
const carrierCodePath = tracking.FieldMetadata + "." + tracking.FieldCarrierCode

// hintWords are parts of names, in several languages, from which hints propose columns. They select no column.
var hintWords = map[string][]string{
	tracking.FieldReferID: {
		"order", "bestell", "auftrag", "commande", "pedido", "ordine", "zamow", "zamów", "objedn", "ref",
		"注文", "订单", "заказ",
	},
	tracking.FieldNumber: {
		"track", "waybill", "awb", "sendung", "paket", "colis", "suivi", "envio", "envío", "seguimiento", "spedizione",
		"przesyl", "przesył", "zasil", "zásil", "consign", "parcel", "追跡", "运单", "快递", "трек",
	},
	tracking.FieldCarrierCode: {"carrier"},
	FieldCarrier:              {"carrier", "courier", "provider"},
}

// SoundsLike returns the field that a name suggests: rawTrackingNumber or [FieldCarrier], else "".
func SoundsLike(name string) string {
	for _, field := range []string{tracking.FieldNumber, FieldCarrier} {
		if sounds(field, name) {
			return field
		}
	}
	return ""
}

// foldName returns the form in which names are compared: letters and digits, without case and accents.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(s))
}

// nameRank returns 3 for the interface's name of a field, 2 if case or punctuation differ, 1 for a synonym, else 0.
func nameRank(field, name string) int {
	if slices.Contains(fieldNames[field], name) {
		return 3
	}
	folded := foldName(name)
	for _, o := range fieldNames[field] {
		if foldName(o) == folded {
			return 2
		}
	}
	if beside, ok := synonyms()[field][folded]; ok && beside == "" {
		return 1
	}
	return 0
}

// rank is nameRank for a name of the header, taking into account that a synonym may require another column.
func (r *resolver) rank(field, name string) int {
	if beside := synonyms()[field][foldName(name)]; beside != "" {
		return min(1, len(r.columnsLike(beside)))
	}
	return nameRank(field, name)
}

// intendedField returns the path of the item's field that an unknown JSON name probably means, or "".
func intendedField(name string) string {
	for _, field := range []string{tracking.FieldReferID, tracking.FieldNumber} {
		if nameRank(field, name) > 0 {
			return field
		}
	}
	if nameRank(tracking.FieldCarrierCode, name) > 0 || nameRank(FieldCarrier, name) > 0 {
		return carrierCodePath
	}
	if foldName(name) == tracking.FieldMetadata {
		return tracking.FieldMetadata
	}
	return ""
}

// Limits of the columns that are kept with rows but not sent.
const (
	MaxOwn     = 16   // columns of a table; the first ones are kept
	MaxOwnText = 1000 // bytes of a value; longer ones are not kept
)

type ownColumns struct {
	at    []int
	names []string // as JSON
	text  []byte   // of the current row
}

// keep keeps a column if its name is unique and there is room.
func (c *ownColumns) keep(header []string, at int) bool {
	name := header[at]
	sameName := func(i int) bool { return foldName(header[i]) == foldName(name) }
	if len(c.at) == MaxOwn || !typable(name) || slices.ContainsFunc(c.at, sameName) {
		return false
	}
	c.at, c.names = append(c.at, at), append(c.names, string(appendJSON(nil, []byte(name))))
	return true
}

// ownText returns the current record's values in own columns, as a JSON object; empty if there are none.
func (t *table) ownText() string {
	c := &t.own
	c.text = c.text[:0]
	for i, at := range c.at {
		value := t.cell(at).text
		if len(value) > MaxOwnText {
			t.sum.OwnLong++
		}
		if !utf8.Valid(value) {
			t.sum.OwnLatin++
			value = []byte(asWindows1252(string(value)))
		}
		if len(value) == 0 || len(value) > MaxOwnText {
			continue
		}
		before := byte(',')
		if len(c.text) == 0 {
			before = '{'
		}
		c.text = append(append(append(c.text, before), c.names[i]...), ':')
		c.text = appendJSON(c.text, value)
	}
	if len(c.text) == 0 {
		return ""
	}
	return string(append(c.text, '}'))
}

// asWindows1252 returns s, decoded as Windows-1252 if it is not UTF-8: Western versions of Excel write that.
func asWindows1252(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	s, _ = charmap.Windows1252.NewDecoder().String(s) // every byte has a character
	return s
}

func appendJSON(dst, text []byte) []byte {
	plain := func(c byte) bool { return c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' }
	for _, c := range text {
		if !plain(c) {
			text, _ = json.Marshal(string(text)) //nolint:errchkjson // strings always encode
			return append(dst, text...)          //nolint:gocritic // each value ends the function
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}
