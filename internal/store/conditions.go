package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// readWords reads what the filter asks for of statuses and states of rows.
func (l *lister) readWords() {
	l.chosen = l.f.Statuses != nil || l.f.States != nil || l.orStuck()
	for _, s := range l.f.States {
		switch s {
		case ledger.NotChecked:
			l.notChecked = true
			continue
		case ledger.Superseded, ledger.Dismissed:
			s = ledger.Rejected
		}
		l.states = append(l.states, string(s))
	}
}

func (l *lister) orStuck() bool { return !l.f.OrStuckSince.IsZero() }

// ofRowsAlone reports whether the filter takes trackings for their rows, and none for its status.
func (l *lister) ofRowsAlone() bool { return l.chosen && len(l.statuses) == 0 && !l.orStuck() }

func (l *lister) takesByTime() bool {
	return !l.f.Updated.IsZero() || !l.f.Delivered.IsZero() || !l.f.StuckSince.IsZero()
}

// withoutRow reports whether the filter may take what is no row's.
func (l *lister) withoutRow() bool {
	return l.f.Run == 0 && l.f.Created.IsZero() && l.f.Own == nil && !l.ofRowsAlone()
}

func (l *lister) takesRun(r rowRun) bool {
	return (l.f.Run == 0 || r.id == l.f.Run) && l.f.Created.Holds(instant(r.created))
}

// mayTake reports whether the filter may take trackings of a line.
func (l *lister) mayTake(c trackingCount) bool {
	known, final := c.status != 0, slices.Contains(l.final, c.status)
	return (!l.chosen || l.states != nil || known && slices.Contains(l.statuses, c.status) ||
		!known && l.notChecked || l.orStuck() && known && !final) &&
		(l.f.Carrier == "" || strings.EqualFold(c.carrier, l.f.Carrier)) &&
		(l.f.Updated.IsZero() || known) &&
		(l.f.Delivered.IsZero() || final) &&
		(l.f.StuckSince.IsZero() || known && !final)
}

// subject is how a condition names a row r of a batch b with its sighting s, or a sighting s without a row.
type subject struct {
	carrier, referID string
	moved            string // when it last moved, 0 if that is not known
}

var (
	ofRow = subject{
		"COALESCE(NULLIF(s.carrier, ''), r.carrier)", "r.refer_id",
		"CASE WHEN s.checkpoint > 0 THEN s.checkpoint WHEN b.began > 0 THEN b.began + b.took / 1000 ELSE 0 END",
	}
	ofSeen = subject{"s.carrier", "s.refer_id", "s.checkpoint"}
)

// where returns the filter's condition, but for its run; without a row, as far as s itself decides.
func (l *lister) where(of subject) string {
	all := []string{"1 = 1"}
	if !l.f.Updated.IsZero() {
		all = append(all, within("CASE WHEN s.updated > s.checkpoint THEN s.updated ELSE s.checkpoint END", l.f.Updated))
	}
	if !l.f.Delivered.IsZero() {
		all = append(all, within("s.checkpoint", l.f.Delivered), "+s.status_id IN "+idList(l.final))
	}
	if l.chosen {
		all = append(all, "("+strings.Join(l.whereChosen(of), " OR ")+")")
	}
	if !l.f.StuckSince.IsZero() {
		all = append(all, l.stuck(of, l.f.StuckSince))
	}
	if l.f.Carrier != "" {
		all = append(all, of.carrier+" IN "+textList(l.carriers))
	}
	if l.f.ReferIDs != nil {
		all = append(all, l.referIDs(of.referID))
	}
	for _, o := range l.f.Own {
		all = append(all, "LOWER(r.own) LIKE "+quoted(`%"`+likely(o.Column)+`":"`+likely(o.Pattern)+`"%`))
	}
	return strings.Join(all, " AND ")
}

func (l *lister) whereUnheld() string { return l.where(ofSeen) + " AND " + unheld }

// likely returns a pattern, or a name, for LIKE on JSON in lower case. It takes more where
// databases differ, or JSON has other characters: [ledger.Filter.Matches] decides.
func likely(pattern string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`*"\\'<>&`, r) {
			return '%'
		}
		return unicode.ToLower(r)
	}, pattern)
}

// whereChosen returns the conditions of which the words of the filter want one.
func (l *lister) whereChosen(of subject) (wanted []string) {
	if len(l.statuses) > 0 || l.states == nil && !l.notChecked {
		column := "s.status_id"
		if of == ofSeen || l.dense {
			column = "+s.status_id" // in the order of rows
		}
		wanted = append(wanted, column+" IN "+idList(l.statuses))
	}
	if l.orStuck() {
		wanted = append(wanted, l.stuck(of, l.f.OrStuckSince))
	}
	if of == ofSeen {
		return wanted
	}
	if l.notChecked {
		wanted = append(wanted, "s.id IS NULL AND "+inStates("('accepted')"))
	}
	if l.states != nil {
		wanted = append(wanted, inStates(textList(l.states)))
	}
	return wanted
}

// stuck holds for what moved last before a time, see [ledger.TrackingStatus.StuckSince].
func (l *lister) stuck(of subject, since time.Time) string {
	return fmt.Sprintf("s.phase <> 'absent' AND +s.status_id NOT IN %s AND %s BETWEEN 1 AND %d",
		idList(l.final), of.moved, millis(since)-1)
}

// inStates holds for a row r of a batch b that is in one of these states. The planner
// knows how many are, which it does not of COALESCE.
func inStates(states string) string {
	return "(r.state IN " + states + " OR r.state IS NULL AND b.state IN " + states + ")"
}

func within(column string, r ledger.Range) string {
	condition := column + " > 0"
	if !r.Since.IsZero() {
		condition += fmt.Sprintf(" AND %s >= %d", column, millis(r.Since))
	}
	if !r.Until.IsZero() {
		condition += fmt.Sprintf(" AND %s < %d", column, millis(r.Until))
	}
	return condition
}

// inRuns is the condition on a row r that a run brought it in which the filter takes, or
// that it is in the input of the filter's run.
func (l *lister) inRuns() string {
	condition := ""
	if !l.f.Created.IsZero() {
		ranges := []string{"1 = 0"}
		for _, s := range l.createdSpans() {
			ranges = append(ranges, fmt.Sprintf("r.id BETWEEN %d AND %d", s.first, s.last))
		}
		condition = " AND (" + strings.Join(ranges, " OR ") + ")"
	}
	if l.f.Run != 0 {
		condition += fmt.Sprintf(" AND EXISTS (SELECT 1 FROM runs n WHERE n.id = %d AND %s)", l.f.Run, inInput)
	}
	return condition
}

// createdSpans returns ranges with all rows of the runs that began in the filter's range, and no others.
func (l *lister) createdSpans() (spans []rowRun) {
	before := false // the run before is in the last span
	for _, r := range l.runs {
		taken := l.f.Created.Holds(instant(r.created))
		switch {
		case taken && before:
			spans[len(spans)-1].last = r.last
		case taken:
			spans = append(spans, r)
		}
		before = taken
	}
	return spans
}

func (l *lister) referIDs(column string) string {
	var conditions []string
	for _, pattern := range l.f.ReferIDs {
		if prefix, open := strings.CutSuffix(pattern, "*"); open {
			conditions = append(conditions, column+" >= "+quoted(prefix)+" AND "+column+" < "+quoted(prefix+lastText))
		}
	}
	conditions = append(conditions, column+" IN "+textList(l.f.ReferIDs))
	return "(" + strings.Join(conditions, " OR ") + ") AND " + column + " <> ''"
}

// lastText is after whatever a referId goes on with.
const lastText = "\U0010ffff"

// idList returns "(1,2,3)", and of no ids a list with a number that is none.
func idList(ids []int64) string {
	return "(" + cmp.Or(strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ","), "0") + ")"
}

// textList returns "('a', 'b')", and of no texts a list that nothing is in.
func textList(texts []string) string {
	if len(texts) == 0 {
		return "(NULL)"
	}
	return "(" + joined(len(texts), func(i int) string { return quoted(texts[i]) }) + ")"
}

func quoted(text string) string { return "'" + strings.ReplaceAll(matchable(text), "'", "''") + "'" }
