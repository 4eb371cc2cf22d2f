package postgres

import "testing"

func TestRewrite(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1":              "SELECT 1",
		"?":                     "$1",
		"a = ? AND b = ?":       "a = $1 AND b = $2",
		"?2, ?, ?1, ?":          "$2, $3, $1, $4",
		"$1, $3, ?":             "$1, $3, $4",
		"'?' || ? || 'it''s ?'": "'?' || $1 || 'it''s ?'",
		`"odd?" = ?`:            `"odd?" = $1`,
		"?5+1, ?, +id + ?":      "$5+1, $6, id + $7",
		"a - ? / b":             "a - $1 / b",
		"VALUES (?,?12,?)":      "VALUES ($1,$12,$13)",
		"'open ?":               "'open ?",
	} {
		if got := rewrite(query); got != want {
			t.Errorf("rewrite(%q) = %q, want %q", query, got, want)
		}
	}
}
