package store

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// maxVersions is how many answers about a referId are kept: the first and the latest 100.
const maxVersions = 101

// AnswerVersions yields what answers said of a referId, see [ledger.Versions].
func (d *DB) AnswerVersions(ctx context.Context, account, referID string) iter.Seq2[ledger.AnswerVersion, error] {
	return func(yield func(ledger.AnswerVersion, error) bool) {
		all, err := list(ctx, d.each, scanVersion, `SELECT first_seen, seen, digest, raw FROM (
				SELECT 0 AS last, id, first_seen, seen, digest, raw FROM answer_versions WHERE account_id = `+accountOf("$1")+` AND refer_id = $2
				UNION ALL SELECT 1, 0, first_seen, seen, digest, raw FROM answers WHERE account_id = `+accountOf("$1")+` AND refer_id = $2) AS versions
			ORDER BY last, id`, account, referID)
		// A database may remove the others later.
		if more := len(all) - maxVersions; more > 0 {
			all = slices.Delete(all, 1, 1+more)
		}
		for _, v := range all {
			if v.Raw, err = unpack(v.Raw); !yield(v, err) || err != nil {
				return
			}
		}
		if err != nil {
			yield(ledger.AnswerVersion{}, err)
		}
	}
}

// LastAnswer returns the last answer about a referId, see [ledger.Versions].
func (d *DB) LastAnswer(ctx context.Context, account, referID string) (v ledger.AnswerVersion, err error) {
	err = d.each(ctx, func(s scanner) error {
		v, err = scanVersion(s)
		if err == nil {
			v.Raw, err = unpack(v.Raw)
		}
		return err
	}, "SELECT first_seen, seen, digest, raw FROM answers WHERE account_id = "+accountOf("$1")+" AND refer_id = $2", account, referID)
	return v, err
}

// scanVersion reads a version whose Raw is packed.
func scanVersion(s scanner) (v ledger.AnswerVersion, err error) {
	var first, last int64
	err = s.Scan(&first, &last, &v.Digest, &v.Raw)
	v.First, v.Last = instant(first), instant(last)
	return v, err
}

// PruneVersions removes earlier answers, see [ledger.Versions].
func (d *DB) PruneVersions(ctx context.Context, before time.Time) (int64, error) {
	pruned := int64(0)
	if err := d.dropParts(ctx, func(one part) {
		if one.dropped {
			pruned += one.rows
		}
	}, d.engine.Parts.DropVersions, millis(before)); err != nil {
		return pruned, err
	}
	for after := int64(0); ; {
		ids, err := list(ctx, d.each, scanOne[int64], "SELECT id FROM answer_versions WHERE id > $1 AND seen < $2 ORDER BY id LIMIT $3", after, millis(before), pruneAtOnce)
		if err != nil || len(ids) == 0 {
			return pruned, err
		}
		after = ids[len(ids)-1]
		n, err := runFor(ctx, d, func(ctx context.Context, t *tx) (int64, error) {
			return t.exec(ctx, "DELETE FROM answer_versions WHERE id BETWEEN $1 AND $2 AND seen < $3", ids[0], after, millis(before))
		})
		if err != nil {
			return pruned, err
		}
		pruned += n
	}
}
