package track

import (
	"time"

	"github.com/waybill-cli/waybill/internal/report"
)

// What charts by time have at most.
const (
	chartDays   = 31
	chartWeeks  = 26
	chartMonths = 36
)

// chartDate is the layout of the dates that a chart is about.
const chartDate = "2 Jan 2006"

// periods counts trackings by the day on which their run began, in the machine's zone:
// the last days that have any by day, what is before by week, or by month if it is too
// long for that. It returns too how many have no such day.
func (r *reporter) periods() (periods []report.Period, without int64) {
	byDay := map[time.Time]report.Split{}
	var first, last time.Time
	for _, g := range r.groups {
		if g.Created.IsZero() {
			without += g.Trackings
			continue
		}
		at := g.Created.Local()
		at = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.Local)
		addTo(byDay, at, r.standing(g.StatusCount).class, g.Trackings)
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	if len(byDay) == 0 {
		return nil, without
	}
	from := last.AddDate(0, 0, 1-chartDays)
	if from.Before(first) {
		from = first
	}
	byDays := barsOf("day", from, last, byDay)
	if byDays.Title = "By day, " + from.Format(chartDate) + " to " + last.Format(chartDate); from.Equal(last) {
		byDays.Title = "On " + last.Format(chartDate)
	}
	periods = []report.Period{byDays}
	if first.Before(from) {
		before := from.AddDate(0, 0, -1)
		unit := "week"
		if before.Sub(first) > chartWeeks*7*day {
			unit = "month"
		}
		older := barsOf(unit, first, before, byDay)
		older.Title = "Before that, by " + unit + ", " + first.Format(chartDate) + " to " + before.Format(chartDate)
		periods = append(periods, older)
	}
	return periods, without
}

// barsOf returns the bars of the days from first to last. If there are more than a chart
// has, the first bar has all that is older.
func barsOf(unit string, first, last time.Time, byDay map[time.Time]report.Split) report.Period {
	p := report.Period{Unit: unit}
	begin := beginOf(unit, first)
	if oldest := beginOf("month", last).AddDate(0, 1-chartMonths, 0); unit == "month" && begin.Before(oldest) {
		p.Bars = append(p.Bars, report.Bar{Name: "before " + oldest.Format("2006-01"), Axis: "before"})
		begin = oldest
	}
	places := map[time.Time]int{}
	for at := begin; !at.After(last); at = nextOf(unit, at) {
		places[at] = len(p.Bars)
		p.Bars = append(p.Bars, barOf(unit, at))
	}
	for at, split := range byDay {
		if at.Before(first) || at.After(last) {
			continue
		}
		bar := &p.Bars[places[beginOf(unit, at)]] // 0 for what is older
		for c, n := range split {
			bar.Split[c] += n
		}
	}
	return p
}

func barOf(unit string, at time.Time) report.Bar {
	switch unit {
	case "day":
		return report.Bar{Name: at.Format(time.DateOnly), Axis: at.Format("2 Jan")}
	case "week":
		return report.Bar{Name: "week of " + at.Format(time.DateOnly), Axis: at.Format("2 Jan")}
	}
	return report.Bar{Name: at.Format("2006-01"), Axis: at.Format("Jan 2006")}
}

// beginOf returns the first day of the unit that a day is in; a week begins on Monday.
func beginOf(unit string, at time.Time) time.Time {
	switch unit {
	case "day":
		return at
	case "week":
		return at.AddDate(0, 0, -(int(at.Weekday())+6)%7)
	}
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, at.Location())
}

func nextOf(unit string, at time.Time) time.Time {
	switch unit {
	case "day":
		return at.AddDate(0, 0, 1)
	case "week":
		return at.AddDate(0, 0, 7)
	}
	return at.AddDate(0, 1, 0)
}
