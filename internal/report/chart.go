package report

import "math"

// Sizes of a chart, in units of the page. Its width is that of the page: places along it
// are shares of it, so that texts keep their size.
const (
	plotTop    = 16.0
	plotHeight = 200.0
	maxTicks   = 8 // names along the axis; half of them where it is narrow
)

// ticks are how many values the upright axis has.
const ticks = 5

// chart is trackings by the day on which they were created.
type chart struct {
	Title     string
	All, Most int64 // in all, and in a day
	Ticks     []tick
	Bars      []bar
}

// tick is a value of the upright axis, and where its text and its line are.
type tick struct {
	Value      int64
	Text, Line string
}

type bar struct {
	Name   string
	Parts  []part
	Axis   string // in short below it, at that share of the width; empty for none
	At     string
	Second bool // left out where it is narrow
}

// part is how many trackings of a bar are in a class. X and Width are percent.
type part struct {
	Class               Class
	Trackings           int64
	X, Y, Width, Height string
}

// chart lays out a bar for each day.
func (p *Page) chart() chart {
	c := chart{Title: p.Days[0].Name}
	for _, b := range p.Days {
		c.Most, c.All = max(c.Most, b.Total()), c.All+b.Total()
	}
	top := niceTop(c.Most)
	if last := p.Days[len(p.Days)-1].Name; last != c.Title {
		c.Title += " to " + last
	}
	for n := range int64(ticks) {
		y := plotTop + plotHeight - plotHeight*float64(n)/(ticks-1)
		c.Ticks = append(c.Ticks, tick{top * n / (ticks - 1), num(y + 4), num(y)})
	}
	step := 100 / float64(max(len(p.Days), 8))
	every := (len(p.Days) + maxTicks - 1) / maxTicks
	for n, day := range p.Days {
		b := bar{Name: day.Name, At: num(step * (float64(n) + 0.5)), Second: n/every%2 == 1}
		if n%every == 0 {
			b.Axis = day.Axis
		}
		y := plotTop + plotHeight
		for class, count := range day.Split {
			if count > 0 {
				height := max(plotHeight*float64(count)/float64(top), 2)
				y -= height
				b.Parts = append(b.Parts, part{Class(class), count, num(step*float64(n) + step*0.1), num(y), num(step * 0.8), num(height)})
			}
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// niceTop returns the value at the top of an axis: the next one that has four equal
// parts which are easy to read.
func niceTop(most int64) int64 {
	unit := math.Pow(10, math.Floor(math.Log10(math.Max(float64(most), 4)/4)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		part := factor * unit
		if part == math.Trunc(part) && 4*part >= float64(most) {
			return int64(4 * part)
		}
	}
	return most
}

// shares returns the parts of a line's bar, which is as wide as its share of the longest.
func shares(of Split, lines []Line) (parts []part) {
	var most int64 = 1
	for _, line := range lines {
		most = max(most, line.Total())
	}
	x := 0.0
	for class, n := range of {
		if width := 100 * float64(n) / float64(most); n > 0 {
			parts = append(parts, part{Class: Class(class), X: num(x), Width: num(max(width, 0.5))})
			x += width
		}
	}
	return parts
}
