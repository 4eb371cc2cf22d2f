package view_test

import (
	"encoding/json"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/view"
)

// A store cuts what is very long: a literal that was cut is a text.
func TestLiteralsThatWereCut(t *testing.T) {
	for literal, want := range map[string]string{
		"":              `null`,
		"1":             `1`,
		`"DELIVERED"`:   `"DELIVERED"`,
		`"a very lo`:    `"\"a very lo"`,
		"\"cut \\u00":   `"\"cut \\u00"`,
		`{"a":1} and x`: `"{\"a\":1} and x"`,
	} {
		got, err := json.Marshal(view.JSONOrNull(literal))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", literal, got, err, want)
		}
	}
}
