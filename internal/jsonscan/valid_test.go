package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// seeds are texts of which each prefix, and each with one byte changed, is judged too.
var seeds = []string{
	``, ` `, `{}`, " [ ]\r\n", `null`, `true`, `false`, `nul`, `truer`, `-`, `0`, `-0`, `01`, `1.`, `.5`, `-1.50e+09`, `1e`, `1E-7`, `1ee5`, `+1`, `0x1`, `1_0`, `NaN`, `'a'`,
	`""`, `"a\"\\\/\b\f\n\r\t\u00e9\uD83d"`, `"\u12g4"`, `"\x41"`, `"\`, `"\u123`, "\"\x1f\"", "\"\x7f\xff\xed\xa0\x80\u2028\"", "\"\n\"", "\ufeff{}",
	`{"a":1,"a":[1,2,{"b":null}], "c" : { } }`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{"a":1]`, `[]]`, `{}{}`, `[] //x`, `{"a" "b"}`, `{1:2}`,
	`[[[[[[1.0e5, true, "x" ]]]], {"k":[{}, [], ""]}]]`, "\u00a0[]", "[\v]", "[\x00]", "]", "}", ",", ":",
}

// Valid judges all that it is given as package encoding/json does.
func TestValid(t *testing.T) {
	for _, s := range seeds {
		for end := range len(s) + 1 {
			checkValid(t, []byte(s[:end]))
		}
		for i := range len(s) {
			for _, c := range []byte("\"\\{}[],:0-.eEuntf \n\x00/+9g") {
				b := []byte(s)
				b[i] = c
				checkValid(t, b)
			}
		}
	}
	for _, depth := range []int{9_999, 10_000, 10_001, 200_000} {
		checkValid(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		checkValid(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
		checkValid(t, []byte(strings.Repeat("[", depth)))
	}
}

func checkValid(t *testing.T, b []byte) {
	t.Helper()
	if got, want := jsonscan.Valid(b), json.Valid(b); got != want {
		t.Errorf("%.100q: valid %v; want %v", b, got, want)
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkValid(t, b) })
}
