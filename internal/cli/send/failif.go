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
	names := Result{}.countNames()
	for _, text := range texts {
		m := gateForm.FindStringSubmatch(text)
		if m == nil {
			return nil, command.Usagef("such as --fail-if 'rejected>10'; in quotes, since > means a file to the shell", "--fail-if %q is no count, operator (> >= < <= == !=) and number", text)
		}
		name := m[1]
		switch {
		case !slices.Contains(names, name):
			return nil, command.Usagef("counts are "+strings.Join(names, ", "), "--fail-if: %q is no count of the result", name)
		case !wait && (name == "processed" || name == "waiting"):
			return nil, command.Usagef("add --wait", "--fail-if: %s is counted with --wait only", name)
		}
		than, err := strconv.ParseInt(m[3], 10, 64)
		if err != nil {
			return nil, err
		}
		g = append(g, gateCondition{text, name, m[2], than})
	}
	return g, nil
}

// countNames returns the members of the result that are counts.
func (res Result) countNames() (names []string) {
	for f := range reflect.TypeFor[Result]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Type == reflect.TypeFor[int64]() && name != "" || f.Type == reflect.TypeFor[*int64]() {
			names = append(names, name)
		}
	}
	return names
}

// count returns a count by its name in JSON, 0 for one that was not counted.
func (res Result) count(name string) int64 {
	v := reflect.ValueOf(res)
	for f := range v.Type().Fields() {
		if member, _, _ := strings.Cut(f.Tag.Get("json"), ","); member != name {
			continue
		}
		if field := reflect.Indirect(v.FieldByIndex(f.Index)); field.IsValid() {
			return field.Int()
		}
	}
	return 0
}

// Judges reports whether a condition is about that count: it alone then says whether the
// count is a failure.
func (g Gate) Judges(name string) bool {
	return slices.ContainsFunc(g, func(c gateCondition) bool { return c.name == name })
}

func (c gateCondition) holds(n int64) bool {
	switch c.operator {
	case ">":
		return n > c.than
	case ">=":
		return n >= c.than
	case "<":
		return n < c.than
	case "<=":
		return n <= c.than
	case "==":
		return n == c.than
	}
	return n != c.than
}

// Check returns the outcome of a command, and what of its result is a failure besides.
func (g Gate) Check(res Result, outcome error) error {
	var failed []string
	for _, c := range g {
		if n := res.count(c.name); c.holds(n) {
			failed = append(failed, fmt.Sprintf("%s is %s (--fail-if '%s')", c.name, command.Number(n), c.text))
		}
	}
	if failed == nil {
		return outcome
	}
	e := &command.ExitError{Code: command.Partial, Err: errors.New(strings.Join(failed, "; "))}
	if own := (*command.ExitError)(nil); errors.As(outcome, &own) {
		e.Code, e.Hint, e.Next = command.Worst(own.Code, e.Code), own.Hint, own.Next
	} else if outcome != nil {
		return errors.Join(outcome, e)
	}
	if outcome != nil {
		e.Err = fmt.Errorf("%w; %w", outcome, e.Err)
	}
	return e
}
