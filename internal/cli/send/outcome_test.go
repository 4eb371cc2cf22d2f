package send

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

func TestRowsCode(t *testing.T) {
	tests := []struct {
		res  Result
		want command.Code
	}{
		{Result{New: 2, Accepted: 2}, command.OK},
		{Result{New: 2, Rejected: 2}, command.Refused},
		{Result{New: 1, Already: 1, Accepted: 1, Rejected: 1}, command.Partial},
		{Result{New: 2, Accepted: 2, Invalid: 1}, command.Partial},
		{Result{New: 2, Accepted: 1, Pending: 1}, command.Pending},
		{Result{New: 3, Unknown: 1, Rejected: 1, Pending: 1}, command.Unknown},
	}
	for _, tt := range tests {
		if got := rowsCode(tt.res); got != tt.want {
			t.Errorf("rowsCode(%+v) = %d; want %d", tt.res, got, tt.want)
		}
	}
}
