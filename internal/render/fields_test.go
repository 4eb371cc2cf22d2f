package render

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/term"
)

func TestFields(t *testing.T) {
	fields := []Field{
		{Name: "Number", Value: "1Z999AA10123456784"},
		{Name: "Carrier", Value: ""},
		{Name: "Status", Value: "Delivered", Style: term.Good},
		{Name: "Latest event", Value: "Departed from the sorting centre\x1b[2J in Køge"},
		{Name: "配達", Value: "完了"},
	}
	const plain = "Number:        1Z999AA10123456784\n" +
		"Status:        Delivered\n" +
		"Latest event:  Departed from the sorting centre\\u{1b}[2J in Køge\n" +
		"配達:          完了\n"
	const narrow = "Number:        1Z999AA10123456784\n" +
		"Status:        Delivered\n" +
		"Latest event:  Departed from the sorting\n" +
		"               centre\\u{1b}[2J in Køge\n" +
		"配達:          完了\n"
	tests := []struct {
		name    string
		columns int // 0 for no terminal
		want    string
	}{
		{"no terminal", 0, plain},
		{"wide", 100, plain},
		{"narrow", 41, narrow},
		{"too narrow to wrap", 20, plain},
	}
	for _, tt := range tests {
		out, got := file()
		if tt.columns > 0 {
			out, got = screen(tt.columns, plainly)
		}
		if err := Fields(out, fields...); err != nil {
			t.Fatal(err)
		}
		if got.String() != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
	out, got := screen(80, nil)
	if err := Fields(out, fields[2]); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[1mStatus:\x1b[0m  \x1b[32mDelivered\x1b[0m\n"; got.String() != want {
		t.Errorf("in colour: %q; want %q", got, want)
	}
	out, got = file()
	if err := Fields(out, Field{Name: "a"}); err != nil || got.Len() > 0 {
		t.Errorf("only empty fields: %q, %v", got, err)
	}
}

func TestFieldsBreakNoWord(t *testing.T) {
	out, got := screen(30, plainly)
	if err := Fields(out, Field{Name: "Numbers", Value: "00340434161094042557 and RR123456785JP"}); err != nil {
		t.Fatal(err)
	}
	want := "Numbers:  00340434161094042557\n          and RR123456785JP\n"
	if got.String() != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestLocalTime(t *testing.T) {
	at := time.Date(2025, 11, 21, 13, 3, 5, 9e8, time.UTC)
	for offset, want := range map[int]string{
		0:                 "2025-11-21 13:03:05 +00:00",
		3600:              "2025-11-21 14:03:05 +01:00",
		-(3*60 + 30) * 60: "2025-11-21 09:33:05 -03:30",
	} {
		if got := timeIn(at, time.FixedZone("", offset), withOffset); got != want {
			t.Errorf("offset %d: %q; want %q", offset, got, want)
		}
	}
	if got := LocalTime(time.Time{}); got != "" {
		t.Errorf("zero time: %q; want nothing", got)
	}
	if got, want := LocalTime(at), timeIn(at, time.Local, withOffset); got != want {
		t.Errorf("LocalTime: %q; want %q", got, want)
	}
}
