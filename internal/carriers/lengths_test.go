package carriers

import (
	"regexp/syntax"
	"strings"
	"testing"
)

// texts returns texts that a pattern matches, among them a shortest and a longest one.
func texts(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCharClass:
		return []string{string(re.Rune[:1])}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			all = append(all, texts(sub)...)
		}
		return all
	case syntax.OpQuest:
		return append(texts(re.Sub[0]), "")
	case syntax.OpRepeat:
		var all []string
		for _, s := range texts(re.Sub[0]) {
			all = append(all, strings.Repeat(s, re.Min), strings.Repeat(s, re.Max))
		}
		return all
	}
	all := []string{""}
	for _, sub := range re.Sub {
		var longer []string
		for _, before := range all {
			for _, s := range texts(sub) {
				longer = append(longer, before+s)
			}
		}
		all = longer
	}
	return all
}

// To compare the length and the prefix first changes nothing but the time.
func TestLengthsOfForms(t *testing.T) {
	for _, f := range forms() {
		re, err := syntax.Parse(f.pattern.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		least, most := len(texts(re)[0]), 0
		for _, s := range texts(re) {
			if !f.pattern.MatchString(s) || !f.matches(s) {
				t.Errorf("%v: %q matches the pattern: %v, and all: %v", f, s, f.pattern.MatchString(s), f.matches(s))
			}
			least, most = min(least, len(s)), max(most, len(s))
		}
		if least != f.least || most != f.most || most == 0 {
			t.Errorf("%v has %d to %d characters; want %d to %d", f, f.least, f.most, least, most)
		}
	}
}
