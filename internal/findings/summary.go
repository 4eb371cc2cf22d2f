package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// shownNames is how many carrier names one finding shows.
const shownNames = 8

// Summary takes what reading found of a file as a whole.
func (c *Collector) Summary(name string, s intake.Summary) error {
	report := func(severity Severity, kind Kind, header, message, hint string) error {
		return c.report(Finding{Severity: severity, Kind: kind, File: name, Header: header, Message: message, Hint: hint})
	}
	for _, column := range s.HiddenCols {
		if slices.Contains(s.Ignored, column) {
			continue
		}
		if err := report(Warning, HiddenColumn, column, "the column is hidden, and is read all the same", "map another column with --map if it is not meant, or unhide it"); err != nil {
			return err
		}
	}
	for _, column := range s.Ignored {
		message, hint := "the column is not used", ""
		if slices.Contains(s.HiddenCols, column) {
			message = "the column is hidden, and is not used"
		}
		switch intake.SoundsLike(column) {
		case tracking.FieldNumber:
			hint = "if it has further numbers, give each a row of its own, with the same referId"
		case intake.FieldCarrier:
			hint = "if it has the service's carrier codes, add --map carrierCode=" + shell.Word(column)
		}
		if err := report(Note, UnusedColumn, column, message, hint); err != nil {
			return err
		}
	}
	if err := reportLeftOut(report, s); err != nil {
		return err
	}
	if s.Exchanged*2 <= s.Rows {
		return nil
	}
	hint := "swap the two fields if so"
	if s.ReferID != "" {
		hint = fmt.Sprintf("if the columns are swapped, add --map referId=%s --map rawTrackingNumber=%s", shell.Word(s.Number), shell.Word(s.ReferID))
	}
	return report(Warning, Exchanged, s.Number, fmt.Sprintf("in %d of %d rows, referId looks like a tracking number and the number like an order", s.Exchanged, s.Rows), hint)
}

// reportLeftOut reports the names of carriers that are not sent.
func reportLeftOut(report func(severity Severity, kind Kind, header, message, hint string) error, s intake.Summary) error {
	if len(s.LeftOut) == 0 {
		return nil
	}
	rows := s.LeftOutMore
	var names []string
	for i, l := range s.LeftOut {
		rows += l.Rows
		if i < shownNames {
			names = append(names, tracking.Quote(l.Name))
		}
	}
	if more := len(s.LeftOut) - shownNames; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return report(Note, LeftOut, "", fmt.Sprintf("the carrier names of %d rows are not sent: %s", rows, strings.Join(names, ", ")),
		"the service identifies the carrier; --carrier-map "+shell.Word(s.LeftOut[0].Name)+"=CODE sends a code")
}
