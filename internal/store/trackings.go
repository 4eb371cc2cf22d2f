package store

import (
	"context"
	"slices"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Record records answers, see [ledger.Trackings].
func (d *DB) Record(ctx context.Context, answers []ledger.RecordedAnswer) error {
	if len(answers) == 0 {
		return nil
	}
	packed := make([][]byte, len(answers))
	for i, a := range answers {
		if err := checkSeen(a.Seen); err != nil {
			return err
		}
		err := checkText("referId", a.ReferID)
		if err == nil {
			packed[i], err = d.pack.pack(a.Raw)
		}
		if err != nil {
			return err
		}
	}
	namesNumber := func(a ledger.RecordedAnswer) bool { return slices.ContainsFunc(a.Seen, isOfNumber) }
	if slices.ContainsFunc(answers, namesNumber) {
		// Many at once; what is still missing follows below.
		if _, err := d.indexNumbers(ctx, maxUnindexed); err != nil {
			return err
		}
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		all, err := t.seenIn(ctx, answers)
		if err != nil {
			return err
		}
		if err := t.recordSightings(ctx, all); err != nil {
			return err
		}
		kept := slices.Clone(packed) // the transaction may be tried again
		if err := t.dropErasedAnswers(ctx, answers, kept); err != nil {
			return err
		}
		return t.keepAnswers(ctx, answers, kept)
	})
}

func isOfNumber(s ledger.Sighting) bool { return s.Key.ReferID == "" }

// seenIn returns what answers say, also of each row with a number that they name alone.
func (t *tx) seenIn(ctx context.Context, answers []ledger.RecordedAnswer) (all []ledger.Sighting, err error) {
	for _, a := range answers {
		for _, s := range a.Seen {
			var rows []ledger.Sighting
			if isOfNumber(s) {
				if err := t.indexAllNumbers(ctx); err != nil {
					return nil, err
				}
				if rows, err = t.sightingsOf(ctx, s, selectRowsOfNumber, tracking.FoldNumber(s.Key.Number)); err != nil {
					return nil, err
				}
			}
			all = append(append(all, s), rows...)
		}
	}
	return all, nil
}

// checkSeen returns an error that matches [ledger.ErrText] if a name can't be kept.
func checkSeen(seen []ledger.Sighting) error {
	for _, s := range seen {
		if err := checkText("referId", s.Key.ReferID, "trackingNumber", s.Key.Number); err != nil {
			return err
		}
	}
	return nil
}

var insertAnswers = newMultiInsert("INSERT INTO answers (refer_id, seen, asked, raw)", "tiib",
	` ON CONFLICT (refer_id) DO UPDATE SET seen = excluded.seen, asked = excluded.asked, raw = excluded.raw
		WHERE excluded.seen >= answers.seen`)

// keepAnswers keeps each answer and when the service was asked, unless a later one is there.
func (t *tx) keepAnswers(ctx context.Context, answers []ledger.RecordedAnswer, packed [][]byte) error {
	type answer struct {
		ref  string
		n    int // in answers
		seen int64
	}
	var all []answer
	at := map[string]int{} // in all: one statement can't change a row twice
	add := func(one answer) {
		if i, again := at[one.ref]; !again {
			at[one.ref], all = len(all), append(all, one)
		} else if one.seen >= all[i].seen {
			all[i] = one
		}
	}
	for n, a := range answers {
		switch {
		case packed[n] == nil:
		case a.ReferID != "":
			add(answer{a.ReferID, n, millis(a.Asked)})
		default:
			seen := millis(a.Asked)
			for _, s := range a.Seen {
				seen = max(seen, millis(s.Seen))
				add(answer{s.Key.ReferID, n, seen})
			}
		}
	}
	return insertAnswers.exec(ctx, t, len(all), func(args []any, i int) []any {
		n := all[i].n
		asked := millis(answers[n].Asked)
		return append(args, all[i].ref, all[i].seen, asked, packed[n])
	})
}

// LastAnswer returns the last answer about a referId, see [ledger.Trackings].
func (d *DB) LastAnswer(ctx context.Context, referID string) ([]byte, error) {
	packed, err := value[[]byte](ctx, d.row, "SELECT raw FROM answers WHERE refer_id = $1", referID)
	if err != nil {
		return nil, err
	}
	return unpack(packed)
}

// What a status consists of: a row with its batch and its sighting, if there is one; or a sighting without a row.
var (
	rowColumns = rowStart + `(SELECT CASE n.state WHEN 'pruned' THEN 0 ELSE n.id END FROM runs n
		WHERE n.first_row <= r.id ORDER BY n.first_row DESC, n.id DESC LIMIT 1), ` + rowRest
	// listColumns are rowColumns without the run.
	listColumns = rowStart + "0, " + rowRest

	rowStart = `SELECT r.id, r.refer_id, r.number, r.carrier, COALESCE(r.state, b.state), ` + reasonOf + `, `
	rowRest  = `COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = r.refer_id), 0),
		CASE b.began WHEN 0 THEN 0 ELSE b.began + b.took / 1000 END, ` + unverifiedBegin + folded + unverifiedEnd +
		`CASE WHEN COALESCE(r.state, b.state) = 'rejected'
		THEN COALESCE(r.dismissed, CASE WHEN ` + superseded + " THEN -1 ELSE 0 END) END, " +
		"r.own, s.id, " + sightingColumns + " "

	// unheldColumns are the columns of a sighting without a row.
	unheldColumns = `SELECT s.id, s.refer_id, s.number, s.carrier, '', '', 0,
		COALESCE((SELECT a.asked FROM answers a WHERE a.refer_id = s.refer_id), 0), 0, ` +
		unverifiedBegin + "s.folded" + unverifiedEnd + "0, NULL, s.id, " + sightingColumns + " "
)

const (
	rowJoins = " JOIN batches b ON b.id = r.batch_id LEFT JOIN sightings s ON s.id = r.id "
	indexed  = "(SELECT value FROM counters WHERE name = 'indexed')"
	visible  = " AND r.id <= (" + lastVisible + ") "
	// lastVisible is the last row that is visible: rows of a run that is being staged are behind it.
	lastVisible = "SELECT value FROM counters WHERE name = 'row'"
	// The folded number of row r.
	folded = "COALESCE(s.folded, fold_number(r.number))"
	// The latest event about the folded number between these that did not verify.
	unverifiedBegin = "COALESCE((SELECT e.seq FROM events e WHERE e.folded = "
	unverifiedEnd   = ` AND e.verified <> 'yes' AND e.verified <> 'unsigned' AND e.mark = '' AND e.synthetic = 0
		ORDER BY e.seq DESC LIMIT 1), 0), `
)

// unheld holds for a sighting that is no row's, and for one of a number that nothing
// else is known of: neither an order has it, nor what was learnt of its routerId.
const (
	unheld = `(s.id < 0 AND (s.refer_id <> ''
		OR NOT EXISTS (SELECT 1 FROM sightings o WHERE o.folded = s.folded AND o.refer_id <> ''` + perRow + `)
		AND NOT EXISTS (SELECT 1 FROM sightings o
			WHERE o.router_id = s.router_id AND o.router_id <> '' AND o.refer_id <> ''` + perRow + "))) "
	perRow = " LIMIT 1 OFFSET 0" // with an OFFSET, PostgreSQL looks each row up rather than read all
)
