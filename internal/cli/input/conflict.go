package input

import (
	"fmt"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Contradiction is the problem of an item that contradicts an earlier one.
func Contradiction(file string, line int, item tracking.Item, message string) intake.Problem {
	return intake.Problem{
		File: file, Line: line, Header: tracking.FieldCarrierCode,
		Problem: tracking.Problem{Field: tracking.FieldCarrierCode, Value: item.CarrierCode, Message: message},
	}
}

// ConflictProblem is the problem of a conflict, with the place of the earlier
// item.
func ConflictProblem(files []string, c ledger.Conflict) intake.Problem {
	p := Contradiction(files[c.Entry.File], c.Entry.Line, c.Entry.Item,
		fmt.Sprintf("same tracking as at %s:%d, which has carrier code %s", files[c.First.File], c.First.Line, command.Quoted(c.First.Item.CarrierCode)))
	p.Problem.Hint = "keep one of the two rows"
	return p
}
