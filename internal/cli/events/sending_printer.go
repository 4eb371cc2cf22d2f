package events

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// Sent is one sending in our output.
type Sent struct {
	Type           string  `json:"type"`               // replay or send
	Delivery       string  `json:"delivery,omitempty"` // of replay: as IDs are written
	Attempt        int     `json:"attempt,omitempty"`  // of replay
	EventID        string  `json:"eventId,omitempty"`  // of send: the first event's
	Copy           int     `json:"copy"`               // above 0: sent before, by --duplicate
	Target         string  `json:"target"`             // without its query
	Status         int     `json:"status"`             // 0 if no answer came
	Expected       bool    `json:"expected"`
	ElapsedSeconds float64 `json:"elapsedSeconds"`
	Problem        string  `json:"problem,omitempty"`
	Location       string  `json:"location,omitempty"` // of a redirect, which was not followed
	Reply          string  `json:"reply"`              // start of the answer
}

type sendingSummaryJSON struct {
	Type           string  `json:"type"` // summary
	Seed           uint64  `json:"seed"`
	Planned        int     `json:"planned"`
	Expected       int     `json:"expected"`
	Unexpected     int     `json:"unexpected"`
	Unsent         int     `json:"unsent"`
	Unreachable    int     `json:"unreachable"`
	Unanswered     int     `json:"unanswered"`
	Left           int     `json:"left"` // planned and not done
	ElapsedSeconds float64 `json:"elapsedSeconds"`
}

type sendingPrinter struct {
	k    *sending
	out  *command.Output
	list *render.List         // of JSON
	rows *command.Table[Sent] // of CSV, or of chosen columns; with neither it prints lines

	unexpected map[int]int // answers by their status
}

func newSendingPrinter(k *sending) (p *sendingPrinter, err error) {
	p = &sendingPrinter{k: k, out: k.call.Out, unexpected: map[int]int{}}
	switch {
	case p.out.Machine():
		p.list = p.out.BeginList()
	case p.out.IsCSV() || p.out.HasColumns():
		p.rows, err = command.BeginTable(p.out, sentColumns())
	}
	return p, err
}

func sentColumns() []command.Column[Sent] {
	return []command.Column[Sent]{
		{Column: render.Column{Name: "DELIVERY", ID: true}, Cell: func(j Sent) string { return j.Delivery + j.EventID }},
		{Column: render.Column{Name: "COPY", Right: true}, Cell: func(j Sent) string { return fmt.Sprint(j.Copy) }},
		{Column: render.Column{Name: "TARGET"}, Cell: func(j Sent) string { return j.Target }},
		{Column: render.Column{Name: "STATUS", Right: true}, Cell: func(j Sent) string { return fmt.Sprint(j.Status) }},
		{Column: render.Column{Name: "EXPECTED"}, Cell: func(j Sent) string { return fmt.Sprint(j.Expected) }},
		{Column: render.Column{Name: "SECONDS", Right: true}, Cell: func(j Sent) string { return fmt.Sprint(j.ElapsedSeconds) }},
		{Column: render.Column{Name: "PROBLEM", Flex: true}, Cell: func(j Sent) string { return j.Problem }},
	}
}

// NewSent returns the result of a sending, of a type.
func NewSent(kind string, r forward.Result) Sent {
	j := Sent{
		Type: kind, Copy: r.Copy, Status: r.Status, Expected: r.Expected, ElapsedSeconds: r.Took.Round(time.Microsecond).Seconds(),
		Reply: string(r.Reply),
	}
	if r.Location != "" {
		j.Location = forward.ShowAddress(r.Location)
	}
	if r.To != nil {
		j.Target = forward.ShowURL(r.To)
	}
	if r.Err != nil {
		j.Problem = forward.Problem(r.Answer, r.Err)
	}
	return j
}

func (p *sendingPrinter) print(r forward.Result) error {
	j := NewSent(p.k.kind, r)
	if r.Err == nil && !r.Expected {
		p.unexpected[r.Status]++
	}
	p.k.fill(&j, r.Index)
	switch {
	case p.list != nil:
		return p.list.Add(j)
	case p.rows != nil:
		return p.rows.Add(j)
	default:
		return p.line(r, j)
	}
}

func (p *sendingPrinter) line(r forward.Result, j Sent) error {
	what, style := "as expected", term.Good
	how := fmt.Sprintf("%d in %v", r.Status, r.Took.Round(time.Millisecond))
	switch {
	case r.Unsent():
		what, style, how = "not sent", term.Bad, j.Problem
	case r.Err != nil:
		what, style, how = "no answer", term.Bad, j.Problem
	case !r.Expected:
		what, style = "not expected", term.Bad
	}
	if r.Err == nil && r.Location != "" {
		how += ", a redirect to " + command.Quoted(j.Location) + ", which is not followed"
	}
	if reply := firstLine(r.Reply); reply != "" {
		how += ": " + reply
	}
	to := ""
	if p.k.several && j.Target != "" {
		to = "to " + j.Target + ": "
	}
	return p.out.Line("%s  %-4s  %s  %s%s", view.Clock(time.Now()), p.k.describe(r.Index)+copyNumber(r.Copy), p.out.Out().Style(style, fmt.Sprintf("%-12s", what)), to, how)
}

func copyNumber(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" copy %d", n)
}

func firstLine(reply []byte) string {
	const limit = 100 // characters
	line, _, _ := strings.Cut(strings.TrimSpace(string(reply)), "\n")
	if r := []rune(line); len(r) > limit {
		line = string(r[:limit]) + "…"
	}
	return line
}

func (p *sendingPrinter) printSummary(t forward.Tally, took time.Duration) error {
	left := t.Planned - t.Tried()
	if p.list != nil {
		return errors.Join(p.list.Add(sendingSummaryJSON{
			Type: "summary", Seed: p.k.Faults.Seed, Planned: t.Planned, Expected: t.Expected, Unexpected: t.Unexpected, Unsent: t.Unsent,
			Unreachable: t.Unreachable, Unanswered: t.Unanswered, Left: left, ElapsedSeconds: took.Round(time.Millisecond).Seconds(),
		}), p.list.Close())
	}
	number := func(n int) string { return command.Number(int64(n)) }
	parts := []string{fmt.Sprintf("%s answered %s as expected", number(t.Expected), p.k.Expect)}
	for _, status := range slices.Sorted(maps.Keys(p.unexpected)) {
		parts = append(parts, fmt.Sprintf("%s answered %d", number(p.unexpected[status]), status))
	}
	for _, part := range []struct {
		n    int
		what string
	}{
		{t.Unreachable, "without a connection"},
		{t.Unanswered, "without an answer"},
		{t.Unsent, "not sent"},
		{left, "left"},
	} {
		if part.n > 0 {
			parts = append(parts, number(part.n)+" "+part.what)
		}
	}
	p.k.call.IO.Note("%s sent: %s", number(t.Expected+t.Unexpected+t.Unanswered), strings.Join(parts, ", "))
	if p.rows != nil {
		return p.rows.Flush()
	}
	return nil
}
