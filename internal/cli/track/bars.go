package track

import (
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

const (
	maxSumName = 24
	minSumName = 14
	minBar     = 6

	transitWidth = len("MEDIAN TRANSIT")
	maxBar       = 60
)

// drawSums draws sections for people: aligned, with a bar in each line that uses the terminal's width.
func (l *listing) drawSums(s *sums, sections []section) error {
	d := drawing{out: l.call.Out.Out(), name: minSumName, blocks: l.call.IO.UTF8()}
	for i := range sections {
		sections[i].shorten()
		for _, line := range sections[i].lines {
			d.name = max(d.name, min(term.DisplayWidth(term.Visible(line.name)), maxSumName))
		}
	}
	for _, line := range s.summary.Lines(d.out.Width()) {
		d.line(term.Normal, line)
	}
	for _, sec := range sections {
		d.draw(sec)
	}
	return d.out.Printf("%s", d.text)
}

// shorten drops lines beyond a section's limit for terminals, and notes their number.
func (s *section) shorten() {
	most := map[string]int{"carrier": maxCarriers, "first run": maxRuns, "transit time": maxTransitDays}[s.title]
	if most == 0 || len(s.lines) <= most {
		return
	}
	var rest int64
	for _, line := range s.lines[most:] {
		rest += line.n
	}
	more := fmt.Sprintf("%s more with %s", command.Number(int64(len(s.lines)-most)), command.Plural(rest, "tracking"))
	s.note = strings.TrimSpace("… and " + more + ". " + s.note)
	s.lines = s.lines[:most]
}

type drawing struct {
	out     *term.Writer
	text    term.Styled // drawn so far
	name    int         // width of the names in columns
	transit bool        // show transit times: the section has them, and there is room
	blocks  bool        // draw bars with block characters
}

func (d *drawing) line(s term.Style, text string) { d.text += d.out.Style(s, text) + "\n" }

func (d *drawing) draw(sec section) {
	second, transit, width := "SHARE", "", d.name+2+len("TRACKINGS")+2+len("DELIVERED")
	if sec.delivered {
		second = "DELIVERED"
	}
	if d.transit = sec.transit && width+2+transitWidth <= d.out.Width(); d.transit {
		transit, width = "MEDIAN TRANSIT", width+2+transitWidth
	}
	bar := min(d.out.Width()-width-2, maxBar)
	if bar < minBar {
		bar = 0
	}
	d.text += "\n"
	d.line(term.Heading, d.cells(strings.ToUpper(sec.title), "TRACKINGS", second, transit, ""))
	var most int64
	for _, line := range sec.lines {
		most = max(most, line.n)
	}
	for _, line := range sec.lines {
		share := percent(line.n, sec.of)
		if sec.delivered {
			share = percent(line.delivered(), line.n)
		}
		if d.transit {
			transit = line.transit.typical()
		}
		d.line(term.Normal, d.cells(line.name, command.Number(line.n), share, transit, d.bar(line.n, most, bar)))
	}
	if sec.note != "" {
		d.line(term.Normal, sec.note)
	}
}

func (d *drawing) cells(name, trackings, share, transit, bar string) string {
	name = term.Truncate(term.Visible(name), d.name)
	line := name + strings.Repeat(" ", max(d.name-term.DisplayWidth(name), 0))
	line += fmt.Sprintf("  %*s  %*s", len("TRACKINGS"), trackings, len("DELIVERED"), share)
	if d.transit {
		line += fmt.Sprintf("  %*s", transitWidth, transit)
	}
	return strings.TrimRight(line+"  "+bar, " ")
}

func (t transit) typical() string {
	if t == nil {
		return ""
	}
	return command.Plural(t.within(0.5), "day")
}

func percent(n, of int64) string {
	switch share := 100 * float64(n) / float64(of); {
	case of == 0 || n == 0:
		return "0 %"
	case n == of:
		return "100 %"
	case share < 0.1:
		return "<0.1 %"
	case share > 99.9:
		return ">99.9 %"
	default:
		return fmt.Sprintf("%.1f %%", share)
	}
}

func (d *drawing) bar(n, most int64, columns int) string {
	if n == 0 || columns == 0 {
		return ""
	}
	if !d.blocks {
		return strings.Repeat("#", max(int(n*int64(columns)/most), 1))
	}
	eighths := max(int(n*int64(8*columns)/most), 1)
	last := []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}[eighths%8]
	return strings.Repeat("█", eighths/8) + last
}
