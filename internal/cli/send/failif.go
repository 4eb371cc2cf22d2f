package send

import (
	"cmp"
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
	than                 float64
	percent              bool // of the rows read
}

var gateForm = regexp.MustCompile(`^\s*([A-Za-z]+)\s*(>=|<=|==|!=|>|<)\s*(\d{1,15}(?:\.\d{1,6})?)\s*(%?)\s*$`)

// ParseGate reads the values of --fail-if.
func ParseGate(texts []string) (Gate, error) {
	var g Gate
	names, _ := Result{}.namedCounts()
	for _, text := range texts {
		m := gateForm.FindStringSubmatch(text)
		if m == nil {
			return nil, command.Usagef("such as --fail-if 'rejected>10', or 'rejected>2%' of the rows read; "+
				"in quotes, since > means a file to the shell",
				"--fail-if %q is no count, operator (> >= < <= == !=) and number or percentage", text)
		}
		if !slices.Contains(names, m[1]) {
			return nil, command.Usagef("counts are "+strings.Join(names, ", "), "--fail-if: %q is no count of the result", m[1])
		}
		than, _ := strconv.ParseFloat(m[3], 64) // the form allows numbers only
		g = append(g, gateCondition{text, m[1], m[2], than, m[4] != ""})
	}
	return g, nil
}

// NeedsWait reports whether a count is named that is made with --wait only.
func (g Gate) NeedsWait() bool {
	return slices.ContainsFunc(g, func(c gateCondition) bool { return c.name == "processed" || c.name == "waiting" })
}

// namedCounts returns the result's counts by their names in JSON, and the names in order. A count not made is 0.
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

// Judges reports whether a condition is about that count: it alone then says whether the count is a failure.
func (g Gate) Judges(name string) bool {
	return slices.ContainsFunc(g, func(c gateCondition) bool { return c.name == name })
}

// operators has, for each operator, the results of comparing count and number for which it holds.
var operators = map[string][]int{">": {1}, ">=": {0, 1}, "<": {-1}, "<=": {-1, 0}, "==": {0}, "!=": {-1, 1}}

// Check returns the outcome of a command, and what of its result is a failure besides.
func (g Gate) Check(res Result, outcome error) error {
	var failed []string
	_, counts := res.namedCounts()
	for _, c := range g {
		count, n, of := counts[c.name], float64(counts[c.name]), ""
		if c.percent {
			n, of = 100*n/float64(max(res.Read, 1)), " of "+command.Number(res.Read)
		}
		if slices.Contains(operators[c.operator], cmp.Compare(n, c.than)) {
			failed = append(failed, fmt.Sprintf("%s is %s%s (--fail-if '%s')", c.name, command.Number(count), of, c.text))
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
