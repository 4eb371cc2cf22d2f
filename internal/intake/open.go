package intake

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"path"
	"strings"

	"golang.org/x/text/transform"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Open detects the format of r by its first bytes and returns a reader at its first data row. name is shown in
// errors, and decides where the content fits two formats. r is not closed; a workbook is read from it, which must be
// an [io.ReaderAt] and an [io.Seeker] then, until the reader is.
//
// The errors are [*FileError], [*OptionError], [*ColumnError], [*WorkbookError] and those
// of r. An input without rows is no error here: see [Reader.Next].
func Open(name string, r io.Reader, o Options) (*Reader, error) {
	o.Format = cmp.Or(o.Format, Auto)
	win := newWindow(r)
	win.file = name
	head := win.fill(headSize)
	if win.err != nil && !errors.Is(win.err, errEnd) {
		return nil, win.err
	}
	head = head[:min(len(head), headSize)]
	if err := refuseForeign(name, head); err != nil {
		return nil, err
	}
	out := &Reader{name: name, sum: Summary{AcceptOdd: o.AcceptOdd}}
	if isBook, err := o.isWorkbook(name, head); err != nil {
		return nil, err
	} else if isBook {
		return out, openWorkbook(out, r, o)
	}
	coding, err := detectEncoding(name, head, o.Encoding)
	if err != nil {
		return nil, err
	}
	win.drop(coding.bomSize)
	if coding.codec != nil {
		var raw io.Reader = win
		if coding.bomSize == 0 {
			raw = &utf8Guard{r: win, e: newEvidence(coding), err: utf8Conflict(name, o.Encoding)}
		}
		win = newWindow(transform.NewReader(raw, coding.codec.NewDecoder()))
		win.file = name
	}
	text := win.firstText()
	if err := refuseMarkup(name, text); err != nil {
		return nil, err
	}
	out.sum.Encoding = coding.name
	if o.Format == JSON || o.Format == JSONL || o.Format == Auto && o.isJSON(name, text) {
		err = openJSON(out, win, o)
	} else {
		err = openTable(out, win, o)
	}
	if err != nil {
		return nil, err
	}
	out.dialect.coding = coding
	return out, nil
}

// readError adds the input's name to an error of its reader, unless it has one.
func readError(name string, err error) error {
	if wrong, ok := errors.AsType[*FileError](err); ok {
		return wrong
	}
	if named, ok := errors.AsType[*ReadError](err); ok {
		return named
	}
	return &ReadError{File: name, Err: err}
}

// isWorkbook reports whether an input is an XLSX workbook. It returns an error if the options contradict that.
func (o Options) isWorkbook(name string, head []byte) (bool, error) {
	is := xlsx.Magic(head)
	switch {
	case is && o.Format != Auto && o.Format != XLSX && o.Format != List:
		return true, foreignFile(name, "an Excel workbook (xlsx)", "omit --format "+string(o.Format))
	case !is && o.Format == XLSX:
		reason := showName(name) + " is no Excel workbook"
		const hint = "omit --format: the content decides it"
		return false, &OptionError{Option: "--format", Value: string(XLSX), Reason: reason, hint: hint}
	case !is && o.Sheet != "":
		const hint = "omit --sheet: only XLSX workbooks have sheets"
		return false, &OptionError{Option: "--sheet", Value: o.Sheet, Reason: showName(name) + " has no sheets", hint: hint}
	}
	return is, nil
}

// firstTextSize is how many bytes of text determine the format.
const firstTextSize = 16

// firstText fills the window with the first text after white space, and returns the window.
func (w *window) firstText() []byte {
	for n := 64; ; n *= 2 {
		text := w.fill(n)
		if len(text) < n || n >= MaxRecord || len(bytes.TrimLeft(text, " \t\r\n")) >= firstTextSize {
			return text
		}
	}
}

// signatures are the kinds of binary files that are often given by mistake.
var signatures = []struct{ magic, kind, hint string }{
	{"\x1f\x8b", "compressed (gzip)", "unpack it and use the file inside"},
	{"%PDF-", "a PDF document", "export the table as CSV UTF-8"},
}

// refuseForeign returns an error if head is the beginning of a known binary format.
func refuseForeign(file string, head []byte) error {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.magic)) {
			return foreignFile(file, s.kind, s.hint)
		}
	}
	return nil
}

// markup lists the beginnings, in lower case, of pages and documents that are saved as tables.
var markup = map[string][]string{
	"a web page (HTML)": {"<!doctype", "<html", "<head", "<body", "<meta", "<table", "<!--"},
	"an XML document":   {"<?xml"},
}

func refuseMarkup(file string, text []byte) error {
	text = bytes.TrimLeft(text, " \t\r\n")
	for kind, beginnings := range markup {
		for _, magic := range beginnings {
			if strings.EqualFold(string(text[:min(len(text), len(magic))]), magic) {
				return foreignFile(file, kind, "download the export again as CSV; if a spreadsheet opens this file, "+saveAsUTF8)
			}
		}
	}
	return nil
}

// isJSON reports whether text is meant to be JSON; the file's name decides between an array and a table.
func (o Options) isJSON(file string, text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || (text[0] != '{' && text[0] != '[') {
		return false
	}
	rest := bytes.TrimLeft(text[1:], " \t\r\n")
	follows := `"}`
	if text[0] == '[' {
		follows = `{]`
		if o.Refs {
			follows += `"`
		}
	}
	if len(rest) == 0 || strings.IndexByte(follows, rest[0]) >= 0 {
		return true
	}
	switch strings.ToLower(path.Ext(strings.ReplaceAll(file, `\`, "/"))) {
	case ".csv", ".tsv", ".tab", ".txt":
		return false
	}
	return true
}

const readSize = 256 << 10 // bytes

var errEnd = errors.New("end of text")

// window is a buffered part of a stream. It grows on demand.
type window struct {
	r          io.Reader
	buf        []byte
	start, end int
	file       string // name of the stream, for errors
	err        error  // why there is no more: errEnd at the end, else from readError
}

func newWindow(r io.Reader) *window {
	return &window{r: r, buf: make([]byte, readSize)}
}

// bytes returns the bytes of the window, valid until more is called.
func (w *window) bytes() []byte { return w.buf[w.start:w.end] }

func (w *window) drop(n int) { w.start += n }

// more reads further bytes. It returns false if there are none; err says why.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	if w.start > 0 {
		copy(w.buf, w.buf[w.start:w.end])
		w.start, w.end = 0, w.end-w.start
	}
	if w.end == len(w.buf) {
		w.buf = append(w.buf, make([]byte, len(w.buf))...)
	}
	n := 0
	for n == 0 && w.err == nil {
		n, w.err = w.r.Read(w.buf[w.end:])
	}
	w.end += n
	if w.err == io.EOF { //nolint:errorlint // readers return io.EOF unwrapped
		w.err = errEnd
	} else if w.err != nil {
		w.err = readError(w.file, w.err)
	}
	return n > 0
}

func (w *window) fill(n int) []byte {
	for len(w.bytes()) < n && w.more() {
	}
	return w.bytes()
}

// Read returns the bytes of the window, then the rest of the stream.
func (w *window) Read(p []byte) (int, error) {
	if w.start == w.end && !w.more() {
		if errors.Is(w.err, errEnd) {
			return 0, io.EOF
		}
		return 0, w.err
	}
	n := copy(p, w.bytes())
	w.drop(n)
	return n, nil
}
