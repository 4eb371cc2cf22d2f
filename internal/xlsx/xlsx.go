// Package xlsx reads and writes XLSX workbooks as streams, in memory that does not grow with the number of rows. It
// returns how each cell is displayed and what its number format hides, which no library that we found does. It changes
// no text and calculates nothing: a formula has the value that was saved with it.
package xlsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of a sheet, as in Excel.
const (
	MaxRows    = 1 << 20 // rows of a sheet
	MaxColumns = 1 << 14 // columns of a sheet
	MaxText    = 32_767  // UTF-16 code units of a cell
)

// Kind says why a workbook can't be read.
type Kind byte

// Kinds of errors.
const (
	Broken    Kind = iota // damaged, incomplete, or made to be huge
	Protected             // encrypted with a password
	Foreign               // of another format; Message names it
)

// Error is the reason why a workbook, or the rest of it, can't be read.
type Error struct {
	Kind    Kind
	Part    string // of the archive, empty for all of it
	Cell    string // such as B17, empty if none is meant
	Message string
	hint    string
}

func (e *Error) Error() string {
	switch {
	case e.Cell != "":
		return e.Cell + ": " + e.Message
	case e.Part != "":
		return fmt.Sprintf("%.100q: %s", e.Part, e.Message)
	}
	return e.Message
}

// Hint returns what to do about the error.
func (e *Error) Hint() string { return e.hint }

// Hints for workbooks that can't be read.
const (
	hintSaveAgain = "open it in a spreadsheet and save it again as XLSX, or export it again"
	hintCut       = "check that the file is complete: copy or download it again, or " + hintSaveAgain
	hintForeign   = "no spreadsheet writes such a file: check where it comes from"
	hintCopy      = "copy the table to a sheet and save it as XLSX"
	hintResave    = "open it in a spreadsheet and save it as XLSX or as CSV UTF-8"
	hintProtected = "open it in a spreadsheet, remove the password " +
		"(File > Info > Protect Workbook > Encrypt with Password) and save it"
)

func broken(part, message, hint string) *Error {
	return &Error{Part: part, Message: message, hint: hint}
}

func foreign(message, hint string) *Error { return &Error{Kind: Foreign, Message: message, hint: hint} }

// Sheet is one sheet of a workbook.
type Sheet struct {
	Name   string
	Hidden bool
	Table  bool // it has cells, unlike a chart
	part   string
}

// Workbook is an open workbook. It is not safe for concurrent use.
type Workbook struct {
	Sheets  []Sheet
	parts   archive
	date04  bool // days count from 1904
	formats []format
	strings *sharedStrings
}

// Magic reports whether head starts a file that [Open] knows: a zip archive, or a container of encrypted or old files.
func Magic(head []byte) bool {
	return slices.ContainsFunc([]string{"PK\x03\x04", "PK\x05\x06", oleMagic}, func(magic string) bool {
		return bytes.HasPrefix(head, []byte(magic))
	})
}

const oleMagic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// Open reads the structure of a workbook of size bytes. temp creates a file for shared strings that are too large for
// memory; closing the workbook closes this file, which should remove it. The caller closes the workbook; r must stay
// open until then. The error is an [*Error], or an error of r or of the disk.
func Open(r io.ReaderAt, size int64, temp func() (*os.File, error)) (*Workbook, error) {
	head := make([]byte, len(oleMagic))
	if n, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if string(head[:n]) == oleMagic {
		return nil, refuseContainer(r)
	}
	parts, err := openArchive(r, size)
	if err != nil {
		return nil, err
	}
	b := &Workbook{parts: parts}
	main, err := b.mainPart()
	if err == nil {
		err = b.readMain(main, temp)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close releases the resources of the workbook.
func (b *Workbook) Close() {
	if b.strings != nil && b.strings.file != nil {
		_ = b.strings.file.Close() // this removes it
	}
}

type relation struct{ kind, target string }

// relations returns the relations of a part by ID; none if the part has no list of relations.
func (b *Workbook) relations(of string) (map[string]relation, error) {
	folder, file := path.Split(of)
	name := folder + "_rels/" + file + ".rels"
	all := map[string]relation{}
	if b.parts[partName(name)] == nil {
		return all, nil
	}
	s := b.scan(name, maxList)
	defer s.close()
	for s.nextStart() {
		if s.depth != 2 || s.name != "Relationship" {
			continue
		}
		target := s.attribute("Target")
		if !strings.HasPrefix(target, "/") {
			target = folder + target
		}
		all[s.attribute("Id")] = relation{path.Base(s.attribute("Type")), target}
		if len(all) > maxEntries {
			s.fail("it has too many references")
		}
	}
	return all, s.err
}

func (b *Workbook) mainPart() (string, error) {
	if b.parts["mimetype"] != nil && b.parts["content.xml"] != nil {
		return "", foreign("an OpenDocument file (ods)", hintResave)
	}
	if b.parts["index/document.iwa"] != nil {
		return "", foreign("a Numbers spreadsheet", "export it as XLSX or CSV and use that file")
	}
	if b.parts["[content_types].xml"] == nil {
		return "", foreign("an archive (zip)", "unpack it and use the file inside; if it is a workbook, "+hintSaveAgain)
	}
	all, err := b.relations("")
	if err != nil {
		return "", err
	}
	for _, rel := range all {
		if rel.kind != "officeDocument" {
			continue
		}
		name := partName(rel.target)
		switch {
		case strings.HasSuffix(name, ".bin"):
			return "", foreign("an Excel binary workbook (xlsb)", hintResave)
		case strings.HasPrefix(name, "word/"):
			return "", foreign("a Word document (docx)", hintCopy)
		case strings.HasPrefix(name, "ppt/"):
			return "", foreign("a PowerPoint presentation (pptx)", hintCopy)
		}
		return name, nil
	}
	return "", broken("_rels/.rels", "it names no workbook", hintSaveAgain)
}

// readMain reads the list of sheets, the styles and the shared strings.
func (b *Workbook) readMain(main string, temp func() (*os.File, error)) error {
	rels, err := b.relations(main)
	if err != nil {
		return err
	}
	s := b.scan(main, maxList)
	defer s.close()
	for s.nextStart() {
		switch {
		case s.depth == 1 && s.name != "workbook":
			s.fail("it is no list of sheets")
		case s.depth == 2 && s.name == "workbookPr":
			b.date04 = isTrue(s.attribute("date1904"))
		case s.depth == 3 && s.name == "sheet":
			state, rel := s.attribute("state"), rels[s.attribute("id")]
			b.Sheets = append(b.Sheets, Sheet{
				Name:   string(unescape([]byte(s.attribute("name")))),
				Hidden: state != "" && state != "visible",
				Table:  rel.kind == "worksheet",
				part:   rel.target,
			})
			if len(b.Sheets) > maxEntries {
				s.fail("it has too many sheets")
			}
		}
	}
	if s.err != nil {
		return s.err
	}
	for _, rel := range rels {
		switch rel.kind {
		case "styles":
			err = b.readStyles(rel.target)
		case "sharedStrings":
			err = b.readStrings(rel.target, temp)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Column returns the letters of a 0-based column: A for 0.
func Column(n int) string {
	if n < 26 {
		return string(rune('A' + n))
	}
	return Column(n/26-1) + string(rune('A'+n%26))
}

func parseAddress(s string) (column, row int, ok bool) {
	i := 0
	for ; i < len(s) && s[i] >= 'A' && s[i] <= 'Z' && column <= MaxColumns; i++ {
		column = column*26 + int(s[i]-'A') + 1
	}
	row, err := strconv.Atoi(s[i:])
	return column - 1, row, i > 0 && err == nil && column <= MaxColumns && row > 0
}

func parseRange(s string) (Range, bool) {
	first, last, several := strings.Cut(s, ":")
	if !several {
		last = first
	}
	c1, r1, ok1 := parseAddress(first)
	c2, r2, ok2 := parseAddress(last)
	return Range{r1, r2, c1, c2}, ok1 && ok2 && r1 <= r2 && c1 <= c2
}

// Address returns the address of a cell, such as B17 for column 1, 0-based, and row 17.
func Address(column, row int) string { return fmt.Sprintf("%s%d", Column(column), row) }
