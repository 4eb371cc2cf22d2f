package intake

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/text/transform"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Open detects the format of r by its first bytes and returns a reader at its
// first data row. name is shown in errors, and decides where the content fits
// two formats. r is not closed; a workbook is read from it, which must be an
// [io.ReaderAt] and an [io.Seeker] then, until the reader is.
//
// The errors are [*FileError], [*OptionError], [*ColumnError], [*WorkbookError] and those
// of r. An input without rows is no error here: see [Reader.Next].
func Open(name string, r io.Reader, o Options) (*Reader, error) { return open(name, r, o, openTable) }

// open is Open with what reads the header of delimited text.
func open(name string, r io.Reader, o Options, table func(*Reader, *window, charset, Options) error) (*Reader, error) {
	format, err := o.format()
	if err != nil {
		return nil, err
	}
	o.Format = format
	win := newWindow(r)
	head := win.fill(headSize)
	if win.err != nil && !errors.Is(win.err, errEnd) {
		return nil, readError(name, win.err)
	}
	head = head[:min(len(head), headSize)]
	if err := refuseForeign(name, head); err != nil {
		return nil, err
	}
	if isBook, err := o.isWorkbook(name, head); err != nil {
		return nil, err
	} else if isBook {
		out := &Reader{name: name}
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
	}
	text := win.firstText()
	if err := refuseMarkup(name, text); err != nil {
		return nil, err
	}
	out := &Reader{name: name}
	out.sum.Encoding = coding.name
	if format == JSON || format == JSONL || format == Auto && isJSON(name, text, o.Refs) {
		err = openJSON(out, win, coding, o)
	} else {
		err = table(out, win, coding, o)
	}
	if err != nil {
		return nil, err
	}
	out.dialect.coding = coding
	return out, nil
}

func readError(name string, err error) error {
	if wrong := (*FileError)(nil); errors.As(err, &wrong) {
		return wrong
	}
	return &ReadError{File: name, Err: err}
}

func (o Options) format() (Format, error) {
	switch f := Format(strings.ToLower(string(o.Format))); f {
	case "":
		return Auto, nil
	case Auto, CSV, TSV, JSON, JSONL, XLSX:
		return f, nil
	case List:
		if o.Refs {
			return f, nil
		}
	}
	hint := "use one of auto, xlsx, csv, tsv, json, jsonl"
	if o.Refs {
		hint += ", list"
	}
	return "", &OptionError{Option: "--format", Value: string(o.Format), Reason: "no such format", hint: hint}
}

// isWorkbook reports whether an input is an XLSX workbook, which is an error where
// something else is asked for.
func (o Options) isWorkbook(name string, head []byte) (bool, error) {
	is := xlsx.Magic(head)
	switch {
	case is && o.Format != Auto && o.Format != XLSX && o.Format != List:
		return true, foreignFile(name, "an Excel workbook (xlsx)", "omit --format "+string(o.Format))
	case !is && o.Format == XLSX:
		return false, &OptionError{Option: "--format", Value: string(XLSX), Reason: showName(name) + " is no Excel workbook", hint: "omit --format: the content decides it"}
	case !is && o.Sheet != "":
		return false, &OptionError{Option: "--sheet", Value: o.Sheet, Reason: showName(name) + " has no sheets", hint: "omit --sheet: only XLSX workbooks have sheets"}
	}
	return is, nil
}

// firstTextSize is how many bytes of text decide the format.
const firstTextSize = 16

// firstText fills the window with the first text after white space, and returns
// the window.
func (w *window) firstText() []byte {
	for n := 64; ; n *= 2 {
		text := w.fill(n)
		if len(text) < n || n >= MaxRecord || len(bytes.TrimLeft(text, " \t\r\n")) >= firstTextSize {
			return text
		}
	}
}
