package command

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// Column is a column of a table of T: its layout, and the functions for its cells. Cell, Count or Time must be set.
type Column[T any] struct {
	Name, CSV               string // these and the next two lines as in [render.Column]
	Flex, Right, ID, Sparse bool
	Rank                    int
	Extra                   bool // shown only where it is asked for; in CSV also if CSV names it

	Cell    func(T) string
	Count   func(T) int64      // a count, instead of Cell
	CSVCell func(T) string     // in CSV, if different
	Excel   func(T) string     // with --excel, if different
	Time    func(T) time.Time  // a time of waybill; Cell, if set, is for terminals only
	Style   func(T) term.Style // style of the cell; nil for none
}

func (c Column[T]) header() render.Column {
	return render.Column{
		Name: c.Name, CSV: c.CSV, Flex: c.Flex, Right: c.Right || c.Count != nil, ID: c.ID, Rank: c.Rank,
		Clock: c.Excel != nil, Sparse: c.Sparse,
	}
}

// YesNo returns a column that shows yes or no, and true or false in CSV.
func YesNo[T any](name string, of func(T) bool) Column[T] {
	words := map[bool]string{true: "yes", false: "no"}
	return Column[T]{
		Name: name, Cell: func(v T) string { return words[of(v)] },
		CSVCell: func(v T) string { return strconv.FormatBool(of(v)) },
	}
}

func (c Column[T]) text(o *Output) func(T) string {
	switch {
	case c.Count != nil && o.ForPeople():
		return func(v T) string { return Number(c.Count(v)) }
	case c.Count != nil:
		return func(v T) string { return strconv.FormatInt(c.Count(v), 10) }
	case o.Excel() && c.Excel != nil:
		return c.Excel
	case o.IsCSV() && c.CSVCell != nil:
		return c.CSVCell
	case c.Time == nil || c.Cell != nil && o.Out().IsTerminal() && !o.IsCSV():
		return c.Cell
	}
	return func(v T) string { return o.time(c.Time(v)) }
}

func (o *Output) time(t time.Time) string {
	switch {
	case o.Excel():
		return render.LocalDateTime(t)
	case o.IsCSV():
		return render.UTCTime(t)
	case o.Out().IsTerminal():
		return render.LocalMinute(t)
	}
	return render.LocalTime(t)
}

// columnsAnnotation holds one line per column: key, space, CSV header, tab, and the flag that selects its table.
const columnsAnnotation = "waybill/columns"

// ColumnsFlag adds --columns to a command that prints a table with these columns. Call it once per table.
func ColumnsFlag[T any](cmd *cobra.Command, columns []Column[T]) { ColumnsWith(cmd, "", columns) }

// ColumnsWith is [ColumnsFlag] for a table that the command prints only with flag.
func ColumnsWith[T any](cmd *cobra.Command, flag string, columns []Column[T]) {
	if cmd.Flags().Lookup("columns") == nil {
		cmd.Flags().StringArray("columns", nil, "show only the columns `NAMES`, in that order (see `waybill help output`)")
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	known := columnsOf(cmd)
	for _, c := range columns {
		if name := c.named(flag); !slices.Contains(known, name) {
			known = append(known, name)
			cmd.Annotations[columnsAnnotation] += name.key + " " + name.csv + "\t" + flag + "\n"
		}
	}
}

// furtherColumns marks a command whose table also has columns named by the data.
const furtherColumns = "waybill/further-columns"

// FurtherColumns lets --columns name columns that are known only once the data is read.
func FurtherColumns(cmd *cobra.Command) { cmd.Annotations[furtherColumns] = "yes" }

// columnName holds a column's name in --columns and in CSV, and the flag that selects its table.
type columnName struct{ key, csv, flag string }

func (c Column[T]) named(flag string) columnName {
	return columnName{strings.ReplaceAll(strings.ToLower(c.Name), " ", "-"), c.header().CSVName(), flag}
}

// is reports whether word names the column; the name of the JSON member does too, such as eventId for event-id.
func (n columnName) is(word string) bool {
	return strings.EqualFold(strings.ReplaceAll(n.key, "-", ""), strings.ReplaceAll(word, "-", "")) ||
		strings.EqualFold(n.csv, word)
}

func columnsOf(cmd *cobra.Command) []columnName {
	var all []columnName
	for line := range strings.Lines(cmd.Annotations[columnsAnnotation]) {
		name, flag, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		key, csv, _ := strings.Cut(name, " ")
		all = append(all, columnName{key, csv, flag})
	}
	return all
}

func tableOf(cmd *cobra.Command) []columnName {
	all := columnsOf(cmd)
	flag := ""
	for _, n := range all {
		if isSet(cmd, n.flag) {
			flag = n.flag
		}
	}
	return slices.DeleteFunc(all, func(n columnName) bool { return n.flag != flag })
}

// ColumnNames returns the names that --columns of a command accepts; none if it prints no table.
func ColumnNames(cmd *cobra.Command) []string { return columnKeys(columnsOf(cmd)) }

// ColumnNamesNow is [ColumnNames] for the table that the flags set so far select.
func ColumnNamesNow(cmd *cobra.Command) []string { return columnKeys(tableOf(cmd)) }

func columnKeys(all []columnName) []string {
	var keys []string
	for _, n := range all {
		if !slices.Contains(keys, n.key) {
			keys = append(keys, n.key)
		}
	}
	return keys
}

func chosenColumns(cmd *cobra.Command, format string) ([]string, error) {
	f := cmd.Flags().Lookup("columns")
	if f == nil || !f.Changed {
		return nil, nil
	}
	words := strings.Split(strings.Join(FlagValues(f), ","), ",")
	if machine(format) || valueOf(cmd, "jq") != "" {
		return nil, Usagef("in JSON choose members with --jq, such as --jq '.[] | {referId}'",
			"--columns goes with tables and CSV")
	}
	for i, word := range words {
		word = strings.TrimSpace(word)
		words[i] = word
		err := checkColumn(tableOf(cmd), word)
		if err == nil || cmd.Annotations[furtherColumns] != "" && word != "" {
			continue
		}
		all := columnsOf(cmd)
		if i := slices.IndexFunc(all, func(n columnName) bool { return n.flag != "" && n.is(word) }); i >= 0 {
			return nil, Usagef("add --"+all[i].flag+", or choose from "+strings.Join(ColumnNamesNow(cmd), ", "),
				"--columns: only --%s has the column %s", all[i].flag, Quoted(word))
		}
		return nil, err
	}
	return words, nil
}

func checkColumn(known []columnName, word string) error {
	if slices.ContainsFunc(known, func(n columnName) bool { return n.is(word) }) {
		return nil
	}
	names := columnKeys(known)
	hint := "columns: " + strings.Join(names, ", ")
	if word == "" {
		return Usagef(hint, "--columns: a name is empty")
	}
	if near := config.Nearest(word, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return Usagef(hint, "--columns: no column %s", Quoted(word))
}

// shownColumns returns the columns of --columns, which stay on terminals of any width, or else the format's defaults.
func shownColumns[T any](o *Output, all []Column[T]) ([]Column[T], error) {
	var shown []Column[T]
	names := make([]columnName, len(all))
	for i, c := range all {
		names[i] = c.named("")
		if o.columns == nil && (!c.Extra || o.IsCSV() && c.CSV != "") && (!o.IsCSV() || o.Excel() || c.CSV != "-") {
			shown = append(shown, c)
		}
	}
	for _, word := range o.columns {
		i := slices.IndexFunc(all, func(c Column[T]) bool {
			return o.IsCSV() && !o.Excel() && c.CSV != "-" && strings.EqualFold(c.named("").csv, word)
		})
		if i < 0 {
			i = slices.IndexFunc(names, func(n columnName) bool { return n.is(word) })
		}
		if i < 0 {
			return nil, checkColumn(names, word)
		}
		c := all[i]
		c.Rank = 0
		shown = append(shown, c)
	}
	return shown, nil
}

// HasColumns reports whether --columns was given.
func (o *Output) HasColumns() bool { return o.columns != nil }

// WithoutColumns returns an output for another table, which ignores --columns.
func (o *Output) WithoutColumns() *Output {
	further := *o
	further.columns = nil
	return &further
}

// PrintTable prints a table of a few values.
func PrintTable[T any](o *Output, columns []Column[T], all ...T) error {
	t, err := BeginTable(o, columns)
	if err != nil {
		return err
	}
	for _, v := range all {
		if err := t.Add(v); err != nil {
			return err
		}
	}
	return t.Flush()
}

// Table prints values as rows of a table, one at a time.
type Table[T any] struct {
	rows    *render.Rows
	columns []Column[T]
	text    []func(T) string
	cells   []render.Cell
	typed   bool // cells of Time columns keep the time, for workbooks
	styled  bool // cells may have a style
}

// BeginTable begins a table, CSV or a workbook sheet, as the output's format says.
func BeginTable[T any](o *Output, columns []Column[T]) (*Table[T], error) {
	shown, err := shownColumns(o, columns)
	if err != nil {
		return nil, err
	}
	t := &Table[T]{columns: shown, cells: make([]render.Cell, len(shown)), typed: o.IsWorkbook(), styled: !o.IsCSV()}
	headers := make([]render.Column, len(shown))
	for i, c := range shown {
		headers[i] = c.header()
		t.text = append(t.text, c.text(o))
	}
	t.rows = o.Table(headers...)
	return t, nil
}

// Add prints the row of v, or holds it until the column widths are known.
func (t *Table[T]) Add(v T) error {
	for i, c := range t.columns {
		t.cells[i] = render.Cell{Text: t.text[i](v)}
		if t.styled && c.Style != nil {
			t.cells[i].Style = c.Style(v)
		}
		if t.typed && c.Time != nil {
			t.cells[i].Time = c.Time(v)
		}
	}
	return t.rows.Add(t.cells)
}

// Flush prints the rows still held. It must be called after the last row.
func (t *Table[T]) Flush() error { return t.rows.Flush() }
