package intake

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// delimiters are the possible delimiters of a header, the most common first.
const delimiters = ",;\t|"

// Header returns the column names of a table, or none for JSON. Its errors are those of [Open].
func Header(name string, r io.Reader, o Options) ([]string, error) {
	in, err := Open(name, r, o)
	if wrong, ok := errors.AsType[*ColumnError](err); ok {
		return wrong.Header, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if t, ok := in.rows.(*table); ok {
		return t.cols.header, nil
	}
	return nil, nil
}

func newTable(r *Reader, o Options, scan *scanner) (*table, error) {
	t := &table{file: r.name, opt: o, carrier: newCarriers(o), sum: &r.sum, scan: scan}
	name, names := o.Map[FieldCarrier]
	if _, codes := o.Map[tracking.FieldCarrierCode]; codes && names {
		return t, &OptionError{
			Option: "--map", Value: FieldCarrier + "=" + name, Reason: "carrierCode has a column as well",
			hint: "map carrierCode if the column has codes, carrier if it has names",
		}
	}
	return t, nil
}

func openTable(r *Reader, win *window, o Options) error {
	t, err := newTable(r, o, newScanner(win))
	if err != nil {
		return err
	}
	sep, err := t.preamble()
	if err == nil {
		err = t.readHeader(sep)
	}
	switch {
	case errors.Is(err, errEnd):
		r.rows, r.sum.Format = t, CSV
		return nil
	case errors.Is(err, errLong):
		return &FileError{
			File: t.file, Line: t.scan.line, Message: "the header is longer than 1 MiB",
			hint: "check that the file is a table with a header line, and that every quote in it is closed",
		}
	case err != nil:
		return err
	}
	r.rows, r.carriers = t, t.carrier
	r.sum.Delimiter, r.sum.Format = rune(t.scan.delim), CSV
	t.summarizeColumns(&r.sum)
	switch {
	case t.list:
		r.sum.Format, r.sum.Delimiter = List, 0
	case t.scan.delim == '\t':
		r.sum.Format = TSV
	}
	r.dialect = t.dialect()
	r.dialect.sep = sep != 0
	return nil
}

// preamble detects the line ends, drops lines before the header, and returns the delimiter of sep=;, or 0.
func (t *table) preamble() (sep byte, err error) {
	first, err := t.firstLine()
	if err != nil {
		return 0, err
	}
	n := len(first)
	rest := t.scan.win.fill(n + 16)[n:]
	left := bytes.TrimLeft(rest, "\r")
	t.scan.cr = len(left) < len(rest) && len(left) > 0 && left[0] != '\n'
	for {
		t.scan.skipBlank()
		end, after, err := t.scan.lineAt(0)
		if err != nil {
			return 0, err
		}
		line := t.scan.win.bytes()[:end]
		switch {
		case len(bytes.Trim(line, delimiters+" \r\v\f")) == 0:
		case sep == 0 && len(line) >= 4 && strings.EqualFold(string(line[:4]), "sep="):
			if sep, err = t.separator(line[4:]); err != nil {
				return 0, err
			}
			t.scan.noRows++
		default:
			return sep, nil
		}
		t.scan.win.drop(after)
		t.scan.line++
	}
}

func (t *table) separator(rest []byte) (byte, error) {
	if s := bytes.TrimRight(rest, "\r"); len(s) == 1 && s[0] < utf8.RuneSelf && s[0] != '"' &&
		(s[0] == '\t' || unicode.IsPunct(rune(s[0])) || unicode.IsSymbol(rune(s[0]))) {
		return s[0], nil
	}
	return 0, &FileError{
		File: t.file, Line: t.scan.line, Message: "sep= must name one delimiter, not " + show(string(rest)),
		hint: "write sep=; or another delimiter, or remove the line",
	}
}

func (t *table) readHeader(sep byte) error {
	var search headerSearch
	for n := range headerRows {
		names, err := t.readNames(sep)
		if errors.Is(err, errEnd) && n > 0 {
			break
		}
		if err != nil {
			return err
		}
		if err = t.resolve(t.rec.line, names); err == nil {
			if t.first = t.list; n > 0 {
				t.sum.HeaderRow = t.rec.row
			}
			return t.checkHeaderText()
		}
		if err := search.miss(err, names); err != nil {
			return err
		}
	}
	if e := search.best; !utf8.ValidString(strings.Join(e.Header, "")) {
		return &FileError{
			File: t.file, Message: "the header is not valid UTF-8, and " + e.reason,
			hint: "pass the file's encoding, such as --encoding windows-1252, or " + saveAsUTF8,
		}
	}
	return search.failure()
}

// checkHeaderText returns an error for a header with a NUL, which also occurs in UTF-16 without a byte order mark.
func (t *table) checkHeaderText() error {
	if t.list || bytes.IndexByte(t.rec.raw, 0) < 0 {
		return nil
	}
	return &FileError{
		File: t.file, Line: t.rec.line, Message: "control character U+0000 in the header",
		hint: "remove it, or pass the file's encoding, such as --encoding utf-16le",
	}
}

// readNames reads the next line, which may be the header. sep is its delimiter, or 0 if unknown.
func (t *table) readNames(sep byte) ([]string, error) {
	t.scan.dropRecord()
	line, err := t.firstLine()
	if err != nil {
		return nil, err
	}
	switch {
	case sep != 0:
		t.scan.delim = sep
	case t.opt.Format == TSV:
		t.scan.delim = '\t'
	default:
		t.scan.delim = guessDelimiter(line, t.file)
	}
	if err := t.scan.next(&t.rec); err != nil {
		return nil, err
	}
	if f := t.rec.fault; f != nil {
		return nil, &FileError{File: t.file, Line: t.rec.line, Message: "unreadable header: " + f.Message, hint: f.Hint}
	}
	names := make([]string, len(t.rec.cells))
	for i := range names {
		names[i] = string(t.cell(i).text)
	}
	return names, nil
}

func (t *table) resolve(line int, names []string) (err error) {
	if t.opt.Refs {
		return t.resolveRefs(line, names)
	}
	t.cols, err = resolve(t.file, line, names, t.opt)
	return err
}

// firstLine returns the text up to the next line end outside quotes, or up to any line end if a quote never closes.
func (t *table) firstLine() ([]byte, error) {
	win := t.scan.win
	for {
		text := win.bytes()
		if n := lineBreak(text); n >= 0 && n <= MaxRecord {
			return text[:n], nil
		}
		if len(text) <= MaxRecord && win.more() {
			continue
		}
		if win.err != nil && !errors.Is(win.err, errEnd) {
			return nil, win.err
		}
		if n := bytes.IndexAny(text, "\r\n"); n >= 0 && n <= MaxRecord {
			return text[:n], nil
		}
		if len(text) > MaxRecord {
			return nil, errLong
		}
		return text, nil
	}
}

// lineBreak returns the offset of the first line end outside quotes, or -1.
func lineBreak(text []byte) int {
	inside := false
	for i, c := range text {
		switch {
		case c == '"':
			inside = !inside
		case (c == '\n' || c == '\r') && !inside:
			return i
		}
	}
	return -1
}

// guessDelimiter returns the most frequent delimiter; of equals by the file's extension, then by most fields found.
func guessDelimiter(header []byte, file string) byte {
	var count [len(delimiters)]int
	inside, most := false, 0
	for _, c := range header {
		if c == '"' {
			inside = !inside
		}
		if at := strings.IndexByte(delimiters, c); at >= 0 && !inside {
			count[at]++
			most = max(most, count[at])
		}
	}
	best, found := byte(','), -1
	for i, n := range count {
		if n < most || most == 0 {
			continue
		}
		delim := delimiters[i]
		if ext := strings.ToLower(path.Ext(file)); delim == '\t' && (ext == ".tsv" || ext == ".tab") {
			return delim
		}
		if f := countFields(header, delim); f > found {
			best, found = delim, f
		}
	}
	return best
}

// countFields counts the identifiers that have a column in a header split at delim.
func countFields(header []byte, delim byte) int {
	n := 0
	names := strings.Split(string(header), string(rune(delim)))
	for _, field := range refFields {
		if slices.ContainsFunc(names, func(name string) bool { return nameRank(field, strings.Trim(name, `" `)) > 0 }) {
			n++
		}
	}
	return n
}
