package intake

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/waybill-cli/waybill/internal/tracking"
)

var errLong = errors.New("record too long")

// How a cell is written.
type quoting byte

const (
	unquoted   quoting = iota // plain
	quoted                    // in quotes, with inner quotes doubled
	strayQuote                // plain, but with a quote inside
)

// cell is the range of a cell in its record, quotes included.
type cell struct {
	start, end int
	quoting    quoting
}

// record is one record of a CSV file as written.
type record struct {
	raw     []byte // without line end; valid until the next record is read
	cells   []cell
	line    int               // physical line on which it starts, 1-based
	row     int               // as a spreadsheet numbers it, 1-based
	lineEnd bool              // false for the last record of a file without a final line end
	fault   *tracking.Problem // wrong quotes: the last cell then has all text from the faulty cell on; nil if none
}

// scanner splits delimited text into records and cells. Unlike encoding/csv, it keeps the text of a record for
// [Rejects], ends lines at CR if the file does, and keeps a quote inside an unquoted cell, so that a stray quote
// never swallows rows.
type scanner struct {
	win         *window
	delim       byte
	cr          bool // lines end with CR alone
	line        int  // physical line at the beginning of win, 1-based
	recordEnd   int  // bytes of the last record, without line end
	recordBytes int  // bytes of the last record, with line end
	recordLines int  // physical lines of the last record
	noRows      int  // earlier lines that are not rows in a spreadsheet
}

func newScanner(win *window) *scanner { return &scanner{win: win, line: 1} }

// skipBlank drops lines of spaces. It drops a line end only once the next byte is known: CRLF is one line end.
func (s *scanner) skipBlank() {
	for {
		text := s.win.bytes()
		line := 0 // start of the current line
		for i := 0; i < len(text); i++ {
			c := text[i]
			switch {
			case c == ' ' && s.delim != ' ':
				continue
			case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
				i++
			case c == '\n', c == '\r' && s.cr && i+1 < len(text):
			default:
				s.win.drop(line)
				return
			}
			line = i + 1
			s.line++
		}
		s.win.drop(line)
		if len(s.win.bytes()) > MaxRecord || !s.win.more() {
			return // lineAt returns the reason
		}
	}
}

// next reads the next record into rec. It returns errEnd, errLong, or the error of the reader.
func (s *scanner) next(rec *record) error {
	s.dropRecord()
	s.skipBlank()
	if err := s.addLine(); err != nil {
		return err
	}
	rec.line, rec.row, rec.fault, rec.cells = s.line, s.line-s.noRows, nil, rec.cells[:0]
	line := s.win.bytes()[:s.recordEnd]
	if bytes.IndexByte(line, '"') < 0 {
		rec.cells = split(rec.cells, line, s.delim)
	} else if err := s.splitQuoted(rec); err != nil {
		return err
	}
	rec.raw = s.win.bytes()[:s.recordEnd]
	rec.lineEnd = s.recordBytes > s.recordEnd
	return nil
}

func (s *scanner) dropRecord() {
	s.win.drop(s.recordBytes)
	s.line += s.recordLines
	s.noRows += max(s.recordLines-1, 0)
	s.recordEnd, s.recordBytes, s.recordLines = 0, 0, 0
}

// addLine takes the next line into the record.
func (s *scanner) addLine() error {
	end, after, err := s.lineAt(s.recordBytes)
	if err == nil {
		s.recordEnd, s.recordBytes = end, after
		s.recordLines++
	}
	return err
}

// peek returns the line behind rec, which was read last; nil if there is none.
func (s *scanner) peek(rec *record) []byte {
	end, _, err := s.lineAt(s.recordBytes)
	text := s.win.bytes() // it may have moved
	rec.raw = text[:len(rec.raw)]
	if err != nil {
		return nil
	}
	return text[s.recordBytes:end]
}

func split(cells []cell, line []byte, delim byte) []cell {
	at := 0
	for {
		n := bytes.IndexByte(line[at:], delim)
		if n < 0 {
			return append(cells, cell{start: at, end: len(line)})
		}
		cells = append(cells, cell{start: at, end: at + n})
		at += n + 1
	}
}

// lineAt finds the end of the line at from, without and with its line end, counted from the window's beginning.
func (s *scanner) lineAt(from int) (end, after int, err error) {
	at := from
	for {
		text := s.win.bytes()
		if n := s.indexLineEnd(text[at:]); n >= 0 {
			end, after = s.afterLineEnd(at + n)
			break
		}
		at = len(text)
		if at > MaxRecord {
			return 0, 0, errLong
		}
		if s.win.more() {
			continue
		}
		if !errors.Is(s.win.err, errEnd) {
			return 0, 0, s.win.err
		}
		if at == from {
			return 0, 0, errEnd
		}
		end, after = at, at
		break
	}
	if after > MaxRecord {
		return 0, 0, errLong
	}
	if text := s.win.bytes(); !s.cr && end > from && text[end-1] == '\r' {
		end--
	}
	return end, after, nil
}

func (s *scanner) indexLineEnd(text []byte) int {
	if s.cr {
		return bytes.IndexAny(text, "\r\n")
	}
	return bytes.IndexByte(text, '\n')
}

// afterLineEnd returns end, where a line end begins, and where the next line begins.
func (s *scanner) afterLineEnd(end int) (int, int) {
	if s.win.bytes()[end] == '\r' {
		if text := s.win.fill(end + 2); len(text) > end+1 && text[end+1] == '\n' {
			return end, end + 2
		}
	}
	return end, end + 1
}

// splitQuoted splits a record with quotes into cells. It takes further lines into it where quotes say so.
func (s *scanner) splitQuoted(rec *record) error {
	at := 0
	for {
		text := s.win.bytes()
		if at < s.recordEnd && text[at] == '"' {
			start := at
			end, closed, err := s.closingQuote(at)
			if err != nil {
				return err
			}
			text = s.win.bytes()
			for at = end; at < s.recordEnd && besideQuote(text[at]) && text[at] != s.delim; {
				at++
			}
			if !closed || at < s.recordEnd && text[at] != s.delim {
				rec.cells = append(rec.cells, cell{start: start, end: s.recordEnd, quoting: strayQuote})
				rec.fault = s.newFault(rec.line, closed)
				return nil
			}
			rec.cells = append(rec.cells, cell{start: start, end: end, quoting: quoted})
		} else {
			c := cell{start: at, end: s.recordEnd}
			if n := bytes.IndexByte(text[at:s.recordEnd], s.delim); n >= 0 {
				c.end = at + n
			}
			if bytes.IndexByte(text[c.start:c.end], '"') >= 0 {
				c.quoting = strayQuote
			}
			rec.cells = append(rec.cells, c)
			at = c.end
		}
		if at == s.recordEnd {
			return nil
		}
		at++
	}
}

// closingQuote finds the quote that closes the one at open, and returns the offset after it.
func (s *scanner) closingQuote(open int) (at int, closed bool, err error) {
	at = open + 1
	for {
		text := s.win.bytes()
		n := bytes.IndexByte(text[at:s.recordEnd], '"')
		if n < 0 {
			at = s.recordBytes
			if err := s.addLine(); errors.Is(err, errEnd) {
				return s.recordEnd, false, nil
			} else if err != nil {
				return 0, false, err
			}
			continue
		}
		at += n + 1
		if at < s.recordEnd && text[at] == '"' {
			at++
			continue
		}
		return at, true, nil
	}
}

func (s *scanner) newFault(line int, closed bool) *tracking.Problem {
	f := &tracking.Problem{
		Message: "text after the closing quote of a cell",
		Hint:    "double a quote inside a quoted cell, or remove the quotes around the cell",
	}
	if !closed {
		f.Message, f.Hint = "quote not closed", "close the quote; double a quote inside a quoted cell"
	}
	if s.recordLines > 1 {
		f.Message = fmt.Sprintf("%s; the row would span lines %d to %d", f.Message, line, line+s.recordLines-1)
	}
	return f
}

func besideQuote(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

func (s *scanner) countLineEnds(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if s.cr {
		n += bytes.Count(text, []byte{'\r'}) - bytes.Count(text, []byte("\r\n"))
	}
	return n
}
