package forward

import (
	"fmt"
	"strings"
)

// Statuses are those of which an answer is to have one.
type Statuses []string

// ParseStatuses reads a list such as 2xx or 200,401.
func ParseStatuses(text string) (Statuses, error) {
	var all Statuses
	for s := range strings.SplitSeq(text, ",") {
		s = strings.ToLower(strings.TrimSpace(s))
		if len(s) != 3 || s[0] < '1' || s[0] > '5' || (s[1:] != "xx" && strings.Trim(s[1:], "0123456789") != "") {
			return nil, fmt.Errorf("%q is no status such as 401, nor a class such as 2xx", s)
		}
		all = append(all, s)
	}
	return all, nil
}

// Match reports whether a status is one of them.
func (s Statuses) Match(status int) bool {
	got := fmt.Sprint(status)
	for _, want := range s {
		if class, ok := strings.CutSuffix(want, "xx"); got == want || ok && len(got) == len(want) && strings.HasPrefix(got, class) {
			return true
		}
	}
	return false
}

// String returns the list as it is read.
func (s Statuses) String() string { return strings.Join(s, ",") }
