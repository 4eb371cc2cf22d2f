package compare

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// differenceJSON is a difference in our output. A source that has nothing, or was
// not asked, is null.
type differenceJSON struct {
	Difference     kind    `json:"difference"`
	Field          string  `json:"field,omitempty"` // of differs
	ReferID        string  `json:"referId"`
	TrackingNumber string  `json:"trackingNumber"`
	InputFile      string  `json:"inputFile,omitempty"` // where the row stands, empty for those of no file
	Line           int     `json:"line,omitempty"`
	File           *string `json:"file"`
	Store          *string `json:"store"`
	Service        *string `json:"service"`
	Events         *string `json:"events"`
	Run            string  `json:"run,omitempty"`
	Message        string  `json:"message,omitempty"`
	NextCommand    string  `json:"nextCommand"`
}

func (c *comparison) json(d difference) differenceJSON {
	value := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	j := differenceJSON{
		Difference: d.kind, Field: d.field, ReferID: d.row.Item.ReferID, TrackingNumber: d.row.Item.Number,
		InputFile: d.row.File, Line: d.row.Line, File: value(d.file), Store: value(d.store), Service: value(d.service), Events: value(d.events),
		Message: d.reason, NextCommand: c.counts.command(d),
	}
	if d.run != 0 {
		j.Run = strconv.FormatInt(d.run, 10)
	}
	return j
}

// print prints the differences as they are found, and for people their counts.
func (c *comparison) print(ctx context.Context) error {
	l := command.Listing[difference]{
		Out: c.call.Out, Columns: columns(c),
		JSON: func(d difference) any { return c.json(d) },
	}
	return l.Print(c.call.IO, c.differences(ctx))
}

// columns returns the columns of differences.
func columns(c *comparison) []command.Column[difference] {
	return []command.Column[difference]{
		{Column: render.Column{Name: "INPUT", CSV: "-", Rank: 2}, Cell: func(d difference) string {
			if d.row.File == "" {
				return ""
			}
			return fmt.Sprintf("%s:%d", d.row.File, d.row.Line)
		}},
		{Column: render.Column{Name: "REFERENCE", CSV: "referId", ID: true}, Cell: func(d difference) string { return d.row.Item.ReferID }},
		{Column: render.Column{Name: "NUMBER", CSV: "rawTrackingNumber", ID: true}, Cell: func(d difference) string { return d.row.Item.Number }},
		{Column: render.Column{Name: "CARRIER", CSV: "carrierCode", ID: true, Extra: true}, Cell: func(d difference) string { return d.row.Item.CarrierCode }},
		{Column: render.Column{Name: "DIFFERENCE", Tally: true, CSV: "difference"}, CSVCell: func(d difference) string { return string(d.kind) }, Cell: func(d difference) string {
			if d.field != "" {
				return d.kind.words() + ": " + d.field
			}
			return d.kind.words()
		}},
		{Column: render.Column{Name: "FIELD", CSV: "field", Extra: true}, Cell: func(d difference) string { return d.field }},
		{Column: render.Column{Name: "FILE", CSV: "file"}, Cell: func(d difference) string { return d.file }},
		{Column: render.Column{Name: "STORE", CSV: "store"}, Cell: func(d difference) string { return d.store }},
		{Column: render.Column{Name: "SERVICE", CSV: "service"}, CSVCell: func(d difference) string { return d.service }, Cell: func(d difference) string {
			if d.service == absent {
				return "not found"
			}
			return d.service
		}},
		{Column: render.Column{Name: "EVENTS", CSV: "events", Rank: 1}, Cell: func(d difference) string { return d.events }},
		{Column: render.Column{Name: "INPUT FILE", CSV: "inputFile", Extra: true}, Cell: func(d difference) string { return d.row.File }},
		{Column: render.Column{Name: "LINE", CSV: "line", Right: true, Extra: true}, Cell: func(d difference) string {
			if d.row.Line == 0 {
				return ""
			}
			return strconv.Itoa(d.row.Line)
		}},
		{Column: render.Column{Name: "RUN", CSV: "run", Extra: true}, Cell: func(d difference) string { return c.json(d).Run }},
		{Column: render.Column{Name: "MESSAGE", CSV: "message", Extra: true}, Cell: func(d difference) string { return d.reason }},
	}
}

// words returns a kind for people.
func (k kind) words() string {
	if k == withoutStatus {
		return "no status yet"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

// shownCommands is how many commands are shown for one kind.
const shownCommands = 3

// counts counts rows and differences, and collects the commands that settle them.
type counts struct {
	rows, agree int64
	of          map[kind]int64
	commands    map[kind][]string // the first few
	more        map[kind]bool     // there are further commands
	failed      command.Code      // of what was not compared
	hint        string            // likewise
	anyThere    bool              // the service has some of what is missing here
	otherNumber bool              // some rows have another number here

	create string // the command that creates the file's rows
	line   func(words ...string) string
}

func (n *counts) add(d difference) {
	if n.of == nil {
		n.of, n.commands, n.more = map[kind]int64{}, map[kind][]string{}, map[kind]bool{}
	}
	n.of[d.kind]++
	if d.kind == notCompared {
		code, hint := command.CodeAndHint(d.err)
		if n.failed = command.Worst(n.failed, code); n.hint == "" {
			n.hint = hint
		}
	}
	n.otherNumber = n.otherNumber || d.field == "trackingNumber" && d.file != d.store
	if d.kind == missingHere {
		n.anyThere = n.anyThere || d.service != "" && d.service != absent
		return
	}
	switch line := n.command(d); {
	case slices.Contains(n.commands[d.kind], line):
	case len(n.commands[d.kind]) == shownCommands:
		n.more[d.kind] = true
	default:
		n.commands[d.kind] = append(n.commands[d.kind], line)
	}
}

// command returns the command that settles a difference, or shows more of it.
func (n *counts) command(d difference) string {
	run := strconv.FormatInt(d.run, 10)
	switch {
	case d.kind == missingHere && d.service != "" && d.service != absent:
		return n.create + " --check-first"
	case d.kind == missingHere, d.kind == pending && d.run == 0:
		return n.create
	case d.run == 0:
	case d.kind == pending, d.kind == unknown:
		return n.line("runs", "resume", run)
	case d.kind == rejected:
		return n.line("runs", "rows", run, "--state", string(ledger.Rejected), "-o", "csv", "--out", "bad.csv")
	case d.kind == missingThere:
		return n.line("runs", "retry", run, "--absent")
	case d.kind == withoutStatus:
		return n.line("wait", "--run", run)
	}
	if ref := d.row.Item.ReferID; !strings.HasPrefix(ref, "-") {
		return n.line("show", ref)
	}
	return n.line("show", "--", d.row.Item.ReferID)
}

// total returns how many differences there are.
func (n *counts) total() (all int64) {
	for _, count := range n.of {
		all += count
	}
	return all
}

// summary lists the counts of the kinds.
func (n *counts) summary() string {
	parts := []string{command.Number(n.agree) + " agree"}
	for _, k := range kinds() {
		if n.of[k] > 0 {
			parts = append(parts, command.Number(n.of[k])+" "+k.words())
		}
	}
	return strings.Join(parts, ", ")
}

// advice says what the commands of a kind do.
func advice(k kind) string {
	switch k {
	case pending:
		return "this sends them"
	case rejected:
		return "fix them in this CSV and create it; dismiss rows that need no tracking with `waybill runs dismiss`"
	case unknown:
		return "this checks them with the service, and sends those that it does not have"
	case missingThere:
		return "this checks them again, and sends those that the service does not have"
	case withoutStatus:
		return "this waits for their status"
	case notCompared:
		return "this shows the service's response"
	default:
		return "this shows the tracking"
	}
}

// printCommands prints the commands that settle the differences.
func (n *counts) printCommands(io *term.IO, repeatable bool) {
	for _, k := range kinds() {
		switch {
		case n.of[k] == 0:
			continue
		case k == missingHere:
			text, line := "this creates them", n.create
			if n.anyThere {
				text, line = "the service has some of them; this creates the others", n.create+" --check-first"
			}
			if n.otherNumber {
				text += ", and adds the rows with another trackingNumber to their orders"
			}
			if !repeatable {
				text += ", with the same input again"
			}
			io.Note("%s: %s", k.words(), text)
			io.Next(line)
			continue
		}
		more := ""
		if n.more[k] {
			more = "; the first are"
		}
		io.Note("%s: %s%s", k.words(), advice(k), more)
		for _, line := range n.commands[k] {
			io.Next(line)
		}
	}
}
