package intake

import (
	"bytes"
	"path"
	"strings"

	"github.com/waybill-cli/waybill/internal/xlsx"
)

// fileSignature is the magic bytes of a kind of file.
type fileSignature struct {
	magic string
	kind  string
	hint  string
}

const saveAsXLSX = "save it as XLSX or as CSV UTF-8 and use that file"

const unpack = "unpack it and use the file inside"

// signatures are the kinds of binary file that are given by mistake.
var signatures = []fileSignature{
	{"\x1f\x8b", "compressed (gzip)", unpack},
	{"BZh91AY&SY", "compressed (bzip2)", unpack},
	{"\xfd7zXZ\x00", "compressed (xz)", unpack},
	{"\x28\xb5\x2f\xfd", "compressed (zstd)", unpack},
	{"7z\xbc\xaf\x27\x1c", "an archive (7z)", unpack},
	{"Rar!\x1a\x07", "an archive (rar)", unpack},
	{"%PDF-", "a PDF document", "export the table as CSV UTF-8"},
	{`{\rtf`, "a rich text document (rtf)", "copy the table to a sheet, then " + saveAsUTF8},
	{"SQLite format 3\x00", "an SQLite database", "export the table as CSV"},
	{"PAR1\x15", "a Parquet file", "export the table as CSV"},
}

// refuseForeign returns an error if head is the beginning of a kind of file
// that is known not to be a table in text.
func refuseForeign(file string, head []byte) error {
	if xlsx.Magic(head) {
		return otherArchive(file, head)
	}
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.magic)) {
			return foreignFile(file, s.kind, s.hint)
		}
	}
	return nil
}

// otherArchive returns an error for the zipped spreadsheets that are not read, by
// the names of their first parts.
func otherArchive(file string, head []byte) error {
	switch {
	case bytes.Contains(head, []byte("vnd.oasis.opendocument.spreadsheet")):
		return foreignFile(file, "an OpenDocument spreadsheet (ods)", saveAsXLSX)
	case bytes.Contains(head, []byte("Index/Document.iwa")):
		return foreignFile(file, "a Numbers spreadsheet", "export it as XLSX or CSV and use that file")
	}
	return nil
}

// markup are the beginnings of pages and documents that are saved under a
// table's name, in lower case.
var markup = []fileSignature{
	{"<!doctype", "a web page (HTML)", ""},
	{"<html", "a web page (HTML)", ""},
	{"<head", "a web page (HTML)", ""},
	{"<body", "a web page (HTML)", ""},
	{"<meta", "a web page (HTML)", ""},
	{"<table", "a web page (HTML)", ""},
	{"<!--", "a web page (HTML)", ""},
	{"<?xml", "an XML document", ""},
}

// refuseMarkup returns an error if text is the beginning of a web page or an
// XML document.
func refuseMarkup(file string, text []byte) error {
	text = bytes.TrimLeft(text, " \t\r\n")
	for _, m := range markup {
		if len(text) >= len(m.magic) && strings.EqualFold(string(text[:len(m.magic)]), m.magic) {
			return foreignFile(file, m.kind, "download the export again as CSV; if a spreadsheet opens this file, "+saveAsUTF8)
		}
	}
	return nil
}

// isJSON reports whether text is meant as JSON. Content decides; the file's
// name only where a table could begin like that too. With texts, an array may
// hold texts.
func isJSON(file string, text []byte, texts bool) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || (text[0] != '{' && text[0] != '[') {
		return false
	}
	rest := bytes.TrimLeft(text[1:], " \t\r\n")
	follows := `"}`
	if text[0] == '[' {
		follows = `{]`
		if texts {
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
