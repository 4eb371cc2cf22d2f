package send

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// Gate is what --fail-if says of the counts of a result.
type Gate []gateCondition

type gateCondition struct {
	text, name, operator string
	than                 int64
}

var gateForm = regexp.MustCompile(`^\s*([A-Za-z]+)\s*(>=|<=|==|!=|>|<)\s*(\d{1,18})\s*$`)

// ParseGate reads the values of --fail-if.
func ParseGate(texts []string, wait bool) (Gate, error) {
	var g Gate
	names, _ := Result{}.namedCounts()
	for _, text := range texts {
		m := gateForm.FindStringSubmatch(text)
		if m == nil {
			return nil, command.Usagef("such as --fail-if 'rejected>10'; in quotes, since > means a file to the shell",
				"--fail-if %q is no count, operator (> >= < <= == !=) and number", text)
		}
		name := m[1]
		switch {
		case !slices.Contains(names, name):
			return nil, command.Usagef("counts are "+strings.Join(names, ", "), "--fail-if: %q is no count of the result", name)
		case !wait && (name == "processed" || name == "waiting"):
			return nil, command.Usagef("add --wait", "--fail-if: %s is counted with --wait only", name)
		}
		than, _ := strconv.ParseInt(m[3], 10, 64) // 18 digits at most
		g = append(g, gateCondition{text, name, m[2], than})
	}
	return g, nil
}

// namedCounts returns the counts of the result by their names in JSON, and the names in its
// order. A count that was not made is 0.
func (res Result) namedCounts() (names []string, counts map[string]int64) {
	counts = map[string]int64{}
	for f, v := range reflect.ValueOf(res).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type != reflect.TypeFor[*int64]() && (f.Type != reflect.TypeFor[int64]() || name == "") {
			continue
		}
		names = append(names, name)
		if v = reflect.Indirect(v); v.IsValid() {
			counts[name] = v.Int()
		}
	}
	return names, counts
}

// Judges reports whether a condition is about that count: it alone then says whether the
// count is a failure.
func (g Gate) Judges(name string) bool {
	return slices.ContainsFunc(g, func(c gateCondition) bool { return c.name == name })
}

// operators are what a condition compares a count with its number by.
var operators = map[string]func(n, than int64) bool{
	">":  func(n, than int64) bool { return n > than },
	">=": func(n, than int64) bool { return n >= than },
	"<":  func(n, than int64) bool { return n < than },
	"<=": func(n, than int64) bool { return n <= than },
	"==": func(n, than int64) bool { return n == than },
	"!=": func(n, than int64) bool { return n != than },
}

// Check returns the outcome of a command, and what of its result is a failure besides.
func (g Gate) Check(res Result, outcome error) error {
	var failed []string
	_, counts := res.namedCounts()
	for _, c := range g {
		if n := counts[c.name]; operators[c.operator](n, c.than) {
			failed = append(failed, fmt.Sprintf("%s is %s (--fail-if '%s')", c.name, command.Number(n), c.text))
		}
	}
	if failed == nil {
		return outcome
	}
	e := &command.ExitError{Code: command.Partial, Err: errors.New(strings.Join(failed, "; "))}
	if own := (*command.ExitError)(nil); errors.As(outcome, &own) {
		e.Code, e.Hint, e.Next = command.Worst(own.Code, e.Code), own.Hint, own.Next
		e.Err = fmt.Errorf("%w; %w", outcome, e.Err)
	} else if outcome != nil {
		return errors.Join(outcome, e)
	}
	return e
}
