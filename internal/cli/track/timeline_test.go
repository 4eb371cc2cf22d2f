package track

import "testing"

// The time keeps its column in every width; UTC goes first where there is no room.
func TestWidthsOfATimeline(t *testing.T) {
	stops := []stop{
		{when: "LOCAL TIME", utc: "UTC", event: "EVENT", place: "PLACE"},
		{when: "2026-11-20 10:00 +01:00", utc: "11-20 09:00", event: "Arrived at facility", place: "Hamburg, DE", note: "! the time is in the future"},
	}
	for _, tt := range []struct {
		room  int
		want  [4]int // time, UTC, event, place
		whole bool
	}{
		{100, [4]int{23, 11, 27, 11}, true},
		{70, [4]int{23, 11, 19, 11}, true}, // exactly
		{69, [4]int{23, 0, 27, 11}, true},  // UTC goes, and the note has room
		{57, [4]int{23, 0, 19, 11}, true},  // exactly
		{56, [4]int{23, 0, 18, 11}, false}, // the event takes two lines
		{30, [4]int{23, 0, 16, 11}, false}, // no less for the event
	} {
		if got, whole := widthsOf(stops, tt.room); got != tt.want || whole != tt.whole {
			t.Errorf("in %d columns: %v, whole %v; want %v, %v", tt.room, got, whole, tt.want, tt.whole)
		}
	}
}
