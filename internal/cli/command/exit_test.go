package command

import "testing"

func TestWorstFollowsThePrecedence(t *testing.T) {
	tests := []struct {
		codes []Code
		want  Code
	}{
		{nil, OK},
		{[]Code{OK, OK}, OK},
		{[]Code{Pending, Refused, Partial, Unreachable, Unknown, Auth, Interrupted, Store}, Store},
		{[]Code{Pending, Refused, Partial}, Partial},
		{[]Code{Unknown, Unreachable}, Unknown},
		{[]Code{Terminated, Auth}, Terminated},
		{[]Code{OK, NotFound}, NotFound},
	}
	for _, tt := range tests {
		if got := Worst(tt.codes...); got != tt.want {
			t.Errorf("worst(%v) = %d; want %d", tt.codes, got, tt.want)
		}
	}
}
