package tracking

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plain returns what encoding/json makes of the same value.
func (v *value) plain(t *testing.T) any {
	t.Helper()
	switch v.kind {
	case object:
		m := map[string]any{}
		for _, mem := range v.members {
			m[mem.name] = mem.value.plain(t)
		}
		return m
	case list:
		l := make([]any, len(v.items))
		for i, item := range v.items {
			l[i] = item.plain(t)
		}
		return l
	}
	if v.raw[0] == '"' {
		return v.text()
	}
	return decode(t, v.raw)
}

func decode(t *testing.T, raw []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{}`, ` [ ] `, `null`, `-1.5e+9`, `"a\"\\"`, `{"a":[1,{"b":null}],"a":2}`, "{\"\\u0061\" :\t\"\xff\"}", `[[],{},"",0]`, `[1 ,2]`, `{"a":1}x`, ``,
		strings.Repeat("[", 150) + strings.Repeat("]", 150),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, ok := parse(raw)
		if ok != json.Valid(raw) && !deep(raw) {
			t.Fatalf("parse of %q: %v", raw, ok)
		}
		if !ok {
			return
		}
		if want := decode(t, raw); !reflect.DeepEqual(v.plain(t), want) {
			t.Errorf("%q read as %#v; want %#v", raw, v.plain(t), want)
		}
		if !bytes.Equal(v.raw, bytes.TrimSpace(raw)) {
			t.Errorf("raw %q; want %q", v.raw, raw)
		}
	})
}

// deep reports whether raw may be nested too deeply.
func deep(raw []byte) bool {
	return bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) > maxDepth
}

func TestTooDeepIsNotRead(t *testing.T) {
	nested := func(begin, end string, n int) []byte {
		return []byte(strings.Repeat(begin, n) + "1" + strings.Repeat(end, n))
	}
	for n, want := range map[int]bool{maxDepth: true, maxDepth + 1: false, 5000: false} {
		for _, raw := range [][]byte{nested("[", "]", n), nested(`{"a":`, "}", n), nested(`[0,{"a":`, "},2]", n/2)} {
			if n == maxDepth+1 && raw[1] == '0' {
				continue // an odd number of a pair
			}
			if _, ok := parse(raw); ok != want {
				t.Errorf("%d deep, %.10q: read %v; want %v", n, raw, ok, want)
			}
		}
	}
}

// A field that texts lacks would be lost where an answer says a tracking in two objects.
func TestEveryTextIsMerged(t *testing.T) {
	var from, to Tracking
	var fill func(reflect.Value) int
	fill = func(fields reflect.Value) (n int) {
		for i := range fields.NumField() {
			switch f := fields.Field(i); f.Kind() {
			case reflect.Struct:
				n += fill(f)
			case reflect.String:
				f.SetString(fields.Type().Field(i).Name)
				n++
			}
		}
		return n
	}
	if n := fill(reflect.ValueOf(&from).Elem()); n < 14 {
		t.Fatalf("%d texts", n)
	}
	fillMissing(&to, from)
	if diff := cmp.Diff(from, to); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
