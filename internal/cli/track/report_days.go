package track

import (
	"time"

	"github.com/waybill-cli/waybill/internal/report"
)

const chartDays = 31

// countDays counts trackings for a page by the day on which their run began, in the
// machine's zone: the last days that have any one by one, all before as one.
func (r *reporter) countDays(p *report.Page) {
	byDay := r.sums.days
	var first, last time.Time
	for at, portion := range byDay {
		if at.IsZero() {
			p.NoDay = portion.trackings()
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if first.IsZero() {
		return
	}
	if from := last.AddDate(0, 0, 1-chartDays); first.Before(from) {
		first = from
	}
	for at := first; !at.After(last); at = at.AddDate(0, 0, 1) {
		p.Days = append(p.Days, report.Bar{Name: at.Format(time.DateOnly), Axis: at.Format("2 Jan"), Split: portionOf(byDay, at).Split})
	}
	p.Before.Name = "before " + first.Format(time.DateOnly)
	before := portion{}
	for at, portion := range byDay {
		if !at.IsZero() && at.Before(first) {
			before.addAll(portion)
		}
	}
	p.Before.Split = before.Split
}
