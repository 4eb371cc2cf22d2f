package intake

import (
	"errors"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// headerRows is how many lines, or rows with a cell, are tried as the header: a title may precede it.
const headerRows = 20

type headerSearch struct {
	best *ColumnError // for the line most like a header; nil before the first
	rows [][]string   // the lines after it
}

// miss records a line that is not a header. It returns an error if no later line should be tried.
func (h *headerSearch) miss(err error, names []string) error {
	wrong, ok := errors.AsType[*ColumnError](err)
	switch {
	case !ok:
		return err
	case h.best != nil && !wrong.likelier(h.best):
		h.rows = append(h.rows, names)
		return nil
	case h.best == nil && wrong.data:
		return wrong
	}
	h.best, h.rows = wrong, nil
	return nil
}

func (e *ColumnError) likelier(other *ColumnError) bool {
	if n, m := len(e.Fields), len(other.Fields); n != m {
		return n < m
	}
	return filled(other.Header) < 2 && filled(e.Header) > 1
}

func filled(names []string) int { return len(names) - count(names, "") }

// failure returns the error for an input without a header. At least one line must have been missed.
func (h *headerSearch) failure() error {
	h.best.propose(h.rows)
	return h.best
}

// isData returns the cell showing that a line has values rather than names; empty if there is none.
func isData(names []string) string {
	if filled(names) < 2 {
		return ""
	}
	found := ""
	for _, name := range names {
		for _, field := range []string{tracking.FieldReferID, tracking.FieldNumber, tracking.FieldCarrierCode, FieldCarrier} {
			if nameRank(field, name) > 0 {
				return ""
			}
		}
		if found == "" && (tracking.LikeNumber(name) || strings.Contains(name, "@") || strings.Contains(name, "://")) {
			found = name
		}
	}
	return found
}

// propose finds the columns that --map could name for the missing fields: the only one that sounds like the field and
// can have such values, else for the number the only one whose values are numbers.
func (e *ColumnError) propose(rows [][]string) {
	if len(e.Found) > 0 || e.data {
		return
	}
	for _, field := range e.Fields {
		var sounding, fitting []int
		for i, name := range e.Header {
			if e.taken[i] || !typable(name) || foldName(name) == foldName(errorColumn) || count(e.Header, name) > 1 ||
				!canBe(field, i, rows) {
				continue
			}
			if sounds(field, name) {
				sounding = append(sounding, i)
			}
			if field == tracking.FieldNumber && allNumbers(i, rows) {
				fitting = append(fitting, i)
			}
		}
		if len(sounding) != 1 {
			sounding = fitting
		}
		if len(sounding) == 1 {
			e.taken[sounding[0]] = true
			e.Maps = append(e.Maps, Mapping{field, e.Header[sounding[0]]})
		}
	}
}

func count(names []string, name string) (n int) {
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}

func sounds(field, name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(hintWords[field], func(part string) bool { return strings.Contains(name, part) })
}

// canBe reports whether all values of a column suit a field; an order must have a digit.
func canBe(field string, column int, rows [][]string) bool {
	return !slices.ContainsFunc(valuesOf(column, rows), func(v string) bool {
		switch field {
		case tracking.FieldReferID:
			it := tracking.Item{ReferID: v, Number: "1Z999AA10123456784"}
			return len(it.Validate(tracking.Rules{})) > 0 || !strings.ContainsAny(v, "0123456789")
		case tracking.FieldNumber:
			return len(tracking.Item{ReferID: "A1", Number: v}.Validate(tracking.Rules{})) > 0
		}
		return false
	})
}

func allNumbers(column int, rows [][]string) bool {
	values := valuesOf(column, rows)
	return len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return !tracking.LikeNumber(v) })
}

func valuesOf(column int, rows [][]string) (values []string) {
	for _, row := range rows {
		if column < len(row) && row[column] != "" {
			values = append(values, row[column])
		}
	}
	return values
}
