package postgres

import (
	"strconv"
	"strings"
)

// rewrite returns a text of package store as PostgreSQL takes it. Its parameters are ?,
// ?N and $N, numbered as SQLite does: a ? has the number after the largest one before it.
// Hints to SQLite's planner are left out: INDEXED BY after a table, and a + right before
// a column. Texts hold no comments.
func rewrite(query string) string {
	var b strings.Builder
	b.Grow(len(query) + len(query)/8)
	last := 0 // the largest number so far
	for i := 0; i < len(query); {
		c, rest := query[i], query[i+1:]
		switch {
		case c == '\'' || c == '"':
			_, after, _ := strings.Cut(rest, query[i:i+1]) // a doubled quote makes two texts
			b.WriteString(query[i : len(query)-len(after)])
			i = len(query) - len(after)
		case c == '?' || c == '$':
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			n, err := strconv.Atoi(rest[:digits])
			if err != nil {
				n = last + 1
			}
			last = max(last, n)
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			i += 1 + digits
		case c == '+' && rest >= "a":
			i++
		case c == 'I' && strings.HasPrefix(rest, "NDEXED BY "):
			_, after, _ := strings.Cut(rest[len("NDEXED BY "):], " ")
			i = len(query) - len(after)
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}
