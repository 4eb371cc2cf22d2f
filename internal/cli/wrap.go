package cli

import (
	"cmp"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

const (
	// narrowest is the width below which help is not wrapped: nothing readable would be left.
	narrowest = 40
	// pageWidth is the width of help that is not for a terminal, such as for a pager.
	pageWidth = 80
)

// wrapText breaks lines that are wider than width between words, and fills their paragraph or list item anew. What
// follows goes under the text of the line: behind its first wide gap, or its indent. Examples stay as they are, to be
// copied. 0 is no terminal.
func wrapText(text string, width int) string {
	width = cmp.Or(width, pageWidth)
	if width < narrowest {
		return text
	}
	var b strings.Builder
	examples := false
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		n, indent := 1, textIndent(line)
		switch {
		case prose(line):
			examples = line == "Examples:"
			n = filled(lines[i:], width, prose)
		case line == "":
			examples = false
		case !examples && indent > leading(line): // a list item
			n = filled(lines[i:], width, func(s string) bool { return leading(s) == indent && textIndent(s) == indent })
		}
		for _, more := range lines[i+1 : i+n] {
			line += " " + strings.TrimLeft(more, " ")
		}
		i += n - 1
		if examples {
			b.WriteString(line + "\n")
			continue
		}
		wrapLine(&b, line, width)
	}
	return b.String()
}

// prose reports whether a line belongs to the paragraph before it.
func prose(line string) bool { return line != "" && line[0] != ' ' }

// filled returns how many lines are filled anew together: the first and the lines that continue it if one is too wide,
// else 1.
func filled(lines []string, width int, continues func(string) bool) int {
	n, wide := 1, term.DisplayWidth(lines[0]) > width
	for n < len(lines) && continues(lines[n]) {
		wide = wide || term.DisplayWidth(lines[n]) > width
		n++
	}
	if !wide {
		return 1
	}
	return n
}

func wrapLine(b *strings.Builder, line string, width int) {
	indent := textIndent(line)
	if indent > width/2 {
		indent = width / 4
	}
	for term.DisplayWidth(line) > width {
		end := strings.LastIndexByte(term.Truncate(line, width+1), ' ')
		if end <= indent || strings.TrimSpace(line[:end]) == "" {
			break // one long word
		}
		b.WriteString(strings.TrimRight(line[:end], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[end:], " ")
	}
	b.WriteString(line + "\n")
}

// textIndent is where the text of a line begins: behind a name and a gap of two spaces or more, or behind its indent.
func textIndent(line string) int {
	start := leading(line)
	if start == 0 {
		return 0
	}
	if gap := strings.LastIndex(line, "  "); gap >= start {
		return gap + 2
	}
	return start
}

func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
