package query

import (
	"errors"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// digestAbsent stands for every answer that says that there is no such tracking.
const digestAbsent = "absent"

// digest is that of [ledger.RecordedAnswer].
func digest(res Result) []byte {
	if errors.Is(res.Err, tracking.ErrAbsent) {
		return []byte(digestAbsent)
	}
	return res.Answer.Digest()
}
