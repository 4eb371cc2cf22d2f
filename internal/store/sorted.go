package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// sortKey returns what an order compares: of a row r with its sighting s and its
// answer a, and of a sighting s without a row. NULL is last.
func sortKey(o ledger.Order) (row, unheld string) {
	const status = "LOWER(COALESCE(NULLIF(s.status_label, ''), NULLIF(s.status_track, ''), NULLIF(s.status, '')))"
	switch o {
	case ledger.ByAsked:
		return "COALESCE(a.asked, 0)", "COALESCE((SELECT a.asked FROM answers a WHERE a.account_id = s.account_id AND a.refer_id = s.refer_id), 0)"
	case ledger.ByUpdated:
		return "NULLIF(s.seen, 0)", "NULLIF(s.seen, 0)"
	case ledger.ByCheckpoint:
		return "NULLIF(s.checkpoint, 0)", "NULLIF(s.checkpoint, 0)"
	case ledger.ByReference:
		return "r.refer_id", "NULLIF(s.refer_id, '')"
	case ledger.ByNumber:
		return folded, "NULLIF(s.folded, '')"
	case ledger.ByStatus:
		return status, status
	case ledger.ByCarrier:
		return "LOWER(COALESCE(NULLIF(s.carrier, ''), NULLIF(r.carrier, '')))", "LOWER(NULLIF(s.carrier, ''))"
	default:
		return "r.id", "NULL"
	}
}

// sorted returns the list in the order of the filter.
func (l *lister) sorted(ctx context.Context) (*sortedList, error) {
	key, unheldKey := sortKey(l.f.Order)
	query, ofBatch := "SELECT r.id AS id, "+key+" AS k FROM rows r ", ""
	condition := l.where()
	if strings.Contains(condition, "b.") {
		query, ofBatch = query+"CROSS JOIN batches b ", " AND b.id = r.batch_id"
	}
	if strings.Contains(condition+key, "s.") {
		query += "LEFT JOIN sightings s ON s.id = " + sightingID
	}
	if l.f.Order == ledger.ByAsked {
		query += "LEFT JOIN answers a ON a.account_id = r.account_id AND a.refer_id = r.refer_id "
	}
	if l.f.ReferIDs != nil {
		query += "WHERE r.account_id = $1" + ofBatch + " AND " + l.referIDs("r.refer_id") + visible
	} else {
		query += "WHERE +r.account_id = $1" + ofBatch + visible
	}
	if l.f.Run != 0 {
		query += fmt.Sprintf(" AND EXISTS (SELECT 1 FROM runs n WHERE n.id = %d AND %s)", l.f.Run, inInput)
	}
	query += " AND (r.id > " + numbered + " OR " + condition + ")"
	if l.withoutRow() {
		query += " UNION ALL SELECT s.id, " + unheldKey + " FROM sightings s WHERE s.id < 0 AND " + l.whereUnheld()
	}
	direction := ""
	if l.f.Descending {
		direction = " DESC"
	}
	query = "SELECT id FROM (" + query + ") AS l ORDER BY k IS NULL, k" + direction + ", id < 0, ABS(id)"
	if l.f.Limit > 0 && l.takesAllOfTheQuery(ctx) {
		query += fmt.Sprint(" LIMIT ", l.f.Limit)
	}
	file, err := disk.Temp()
	if err != nil {
		return nil, err
	}
	sorted := &sortedList{lister: l, file: file}
	ids := bufio.NewWriter(file)
	err = l.d.each(ctx, func(s scanner) error {
		var id int64
		if err := s.Scan(&id); err != nil {
			return err
		}
		sorted.left++
		return binary.Write(ids, binary.LittleEndian, id)
	}, query, l.account)
	if err == nil {
		err = ids.Flush()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	sorted.ids = bufio.NewReader(file)
	return sorted, nil
}

// takesAllOfTheQuery reports whether the filter takes whatever its conditions in SQL
// leave: not where these say nothing of when the service was asked, of which rejected
// rows are open, or of rows that are not numbered.
func (l *lister) takesAllOfTheQuery(ctx context.Context) bool {
	var late bool
	_, err := l.d.row(ctx, []any{&late}, "SELECT (SELECT value FROM counters WHERE name = 'row') > $1", l.numbered)
	return err == nil && !late && l.f.StaleSince.IsZero() && l.f.StuckSince.IsZero() && l.f.States == nil
}

// referIDs returns the condition on a referId.
func (l *lister) referIDs(column string) string {
	var exact, conditions []string
	for _, pattern := range l.f.ReferIDs {
		exact = append(exact, pattern)
		if prefix, open := strings.CutSuffix(pattern, "*"); open {
			conditions = append(conditions, fmt.Sprintf("%[1]s >= %[2]s AND %[1]s < %[3]s", column, quoted(prefix), quoted(prefix+lastText)))
		}
	}
	return "(" + strings.Join(append(conditions, column+" IN "+textList(exact)), " OR ") + ") AND " + column + " <> ''"
}

// lastText is after whatever a referId goes on with.
const lastText = "\U0010ffff"

// sortedList is a list of rows, and of sightings without one, whose ids were
// sorted when it began: their order changes while it is read. They wait in a file.
type sortedList struct {
	*lister
	file *os.File
	ids  *bufio.Reader
	left int // ids that were not read
}

// Close removes the file.
func (l *sortedList) Close() error { return l.file.Close() }

func (l *sortedList) next(ctx context.Context, _ int) ([]ledger.TrackingStatus, bool, error) {
	ids := make([]int64, min(manyFound, l.left))
	if len(ids) == 0 {
		return nil, false, nil
	}
	if err := binary.Read(l.ids, binary.LittleEndian, ids); err != nil {
		return nil, false, err
	}
	l.left -= len(ids)
	found := make([]*ledger.TrackingStatus, len(ids))
	columns := newStatusScanner()
	args := make([]any, manyFound) // NULL finds nothing
	for i, id := range ids {
		args[i] = id
	}
	for _, query := range []string{l.d.sql.find.byID, l.d.sql.find.seenByID} {
		if err := l.d.each(ctx, func(s scanner) error {
			place, _, st, err := columns.scanFound(s)
			found[place] = &st
			return err
		}, query, args...); err != nil {
			return nil, false, err
		}
		if !slices.Contains(found, nil) {
			break
		}
	}
	page := make([]ledger.TrackingStatus, 0, len(ids))
	for _, st := range found {
		if st != nil {
			page = append(page, *st)
		}
	}
	return page, l.left > 0, nil
}
