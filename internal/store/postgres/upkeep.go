package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybill-cli/waybill/internal/store"
)

func (e *engine) upkeep() store.Upkeep {
	return store.Upkeep{
		TableBytes: `SELECT relname, pg_total_relation_size(oid) FROM pg_class
			WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())`,
		Settings: e.settings, Processes: e.processes,
		Compact: e.compact, Freeze: e.freeze, LastNumber: e.lastNumber,
		BeginCopy: beginCopy, FinishCopy: finishCopy,
	}
}

func (e *engine) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return store.EachRow(ctx, e.read, e.pool, scan, query, args...)
}

// compact is for [store.Upkeep]. It rewrites the tables whose rows may have been erased, with their statistics, which
// hold samples. It returns the commands for tables of another role or in use by others, and for all tables while
// others can still see erased rows: a comment before the commands then says who.
func (e *engine) compact(ctx context.Context) (left []string, err error) {
	type table struct {
		name string
		own  bool
	}
	var tables []table
	if err := e.each(ctx, func(rows *sql.Rows) error {
		var t table
		err := rows.Scan(&t.name, &t.own)
		tables = append(tables, t)
		return err
	}, `SELECT c.relname, pg_has_role(c.relowner, 'USAGE') FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
		AND c.relname <> ALL ($2) ORDER BY 1`, e.schema, []string{"meta", "owners", "counters"}); err != nil {
		return nil, err
	}
	holders, err := e.awaitSnapshots(ctx)
	if err != nil {
		return nil, err
	}
	if len(holders) > 0 {
		left = append(left, "/* first end "+strings.Join(holders, ", and ")+": what was erased is kept for it */")
	}
	for _, t := range tables {
		command := "VACUUM (FULL, ANALYZE) " + pgx.Identifier{e.schema, t.name}.Sanitize() //nolint:gosec // it is quoted
		if t.own && len(holders) == 0 {
			_, err := e.pool.ExecContext(ctx, command)
			if err == nil {
				continue
			}
			if sqlState(err) != "55P03" { // lock_not_available
				return left, err
			}
		}
		left = append(left, command)
	}
	return left, nil
}

// maxSkew is how far the clocks of the server and this computer may differ.
const maxSkew = 2 * time.Minute

func (e *engine) settings(ctx context.Context) ([]store.Setting, error) {
	all, err := e.serverSettings(ctx)
	if err == nil {
		all, err = e.addRights(ctx, all)
	}
	if err != nil {
		return all, err
	}
	holders, err := e.holders(ctx)
	for _, h := range holders {
		all = append(all, h.setting())
	}
	return all, err
}

func (e *engine) serverSettings(ctx context.Context) ([]store.Setting, error) {
	var version, fsync, commit, pages, checksums, vacuum, schema, most, used, reads, standbys string
	var timeline, wrote int64
	var standby, waiting bool
	var serverTime float64 // seconds
	began := time.Now()
	err := e.queryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('data_checksums'),
		current_setting('autovacuum'), (SELECT CAST(version AS TEXT) FROM meta), current_setting('max_connections'),
		(SELECT CAST(COUNT(*) AS TEXT) FROM pg_stat_activity WHERE datname IS NOT NULL),
		(SELECT timeline_id FROM pg_control_checkpoint()), (SELECT timeline FROM meta), pg_is_in_recovery(),
		current_setting('default_transaction_read_only'), current_setting('synchronous_standby_names'),
		EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'),
		CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)`,
		nil, &version, &fsync, &commit, &pages, &checksums, &vacuum, &schema, &most, &used,
		&timeline, &wrote, &standby, &reads, &standbys, &waiting, &serverTime)
	skew := time.Duration(serverTime*float64(time.Second)) - time.Duration(began.Add(time.Since(began)/2).UnixNano())
	replaced, onTimeline := wrote != 0 && wrote != timeline, fmt.Sprint(timeline)
	if replaced {
		onTimeline = fmt.Sprintf("%d, last written in %d", timeline, wrote)
	}
	all := []store.Setting{
		{Name: "PostgreSQL", Value: version},
		{Name: "Schema", Value: e.schema + ", version " + schema},
		{Name: "Connections", Value: used + " of " + most},
		warnIf(fsync == "off", "fsync", fsync, "a crash of the server may damage the store; turn it on"),
		warnIf(commit == "off", "synchronous_commit", commit,
			"a crash of the server may lose what was sent and received; turn it on"),
		warnIf(pages == "off", "full_page_writes", pages, "a crash of the server may damage the store; turn it on"),
		{Name: "data_checksums", Value: checksums},
		warnIf(vacuum == "off", "autovacuum", vacuum, "the store grows without need; turn it on"),
		warnIf(replaced, "Timeline", onTimeline,
			"the server was replaced or restored; it may lack what was stored last"),
	}
	if standbys != "" {
		all = append(all, warnIf(waiting, "synchronous_standby_names", standbys,
			"commits wait for a standby; check that enough of them run"))
	}
	for _, s := range []store.Setting{
		warnIf(reads == "on", "default_transaction_read_only", reads,
			"nothing can be sent or received; turn it off for the role or the database"),
		warnIf(skew.Abs() > maxSkew, "Clock", skew.Round(time.Second).String()+" from this computer's",
			"times in the store do not match; set the clock that is wrong"),
		warnIf(standby, "Standby", "yes", "nothing can be sent or received; use the primary server"),
	} {
		if s.Warning != "" {
			all = append(all, s)
		}
	}
	return all, err
}

func (e *engine) addRights(ctx context.Context, all []store.Setting) ([]store.Setting, error) {
	var writable bool
	var table sql.NullString
	var more int64 // tables besides that one
	err := e.queryRow(ctx, `SELECT has_table_privilege('meta', 'UPDATE'), MIN(CAST(c.relname AS TEXT)), COUNT(*) - 1
		FROM pg_class c WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind = 'r'
		AND EXISTS (SELECT 1 FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p
			WHERE NOT has_table_privilege(c.oid, p))`,
		[]any{e.schema}, &writable, &table, &more)
	needed := "the role needs SELECT, INSERT, UPDATE and DELETE on " + table.String
	rights := store.Setting{Name: "Rights", Value: "incomplete", Warning: needed}
	switch {
	case err != nil || !table.Valid:
		return all, err
	case !writable:
		rights.Value, rights.Warning = "read", "nothing can be sent or received: the role has no right to write"
	case more > 0:
		rights.Warning += fmt.Sprintf(" and %d more", more)
	}
	return append(all, rights), nil
}

// warnIf returns a setting, with the warning if it applies.
func warnIf(applies bool, name, value, warning string) store.Setting {
	if !applies {
		warning = ""
	}
	return store.Setting{Name: name, Value: value, Warning: warning}
}

func (e *engine) processes(ctx context.Context) ([]store.Process, error) {
	var all []store.Process
	own, _ := e.owners.own()
	err := e.each(ctx, func(rows *sql.Rows) error {
		var p store.Process
		err := rows.Scan(&p.Name, &p.Host, &p.PID, &p.Version, &p.Command, &p.Started, &p.Alive)
		if p.Name != own {
			all = append(all, p)
		}
		return err
	}, `SELECT o.name, o.host, o.pid, o.version, o.command, o.started, NOT (`+e.owners.isDead()+`)
		FROM owners o ORDER BY o.started`)
	return all, err
}

// freeze takes the writers' lock on its own connection, whose end releases it.
func (e *engine) freeze(ctx context.Context) (func() error, error) {
	conn, err := pgx.ConnectConfig(ctx, e.config)
	if err != nil {
		return nil, err
	}
	always, lock := context.WithoutCancel(ctx), lockKey(e.schema)
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lock); err != nil {
		return nil, errors.Join(err, conn.Close(always))
	}
	return func() error {
		defer conn.Close(always) //nolint:errcheck // whatever it says, it is over
		var locked bool
		err := conn.QueryRow(always, "SELECT pg_advisory_unlock($1)", lock).Scan(&locked)
		if err == nil && !locked {
			err = errors.New("others could write meanwhile")
		}
		return err
	}, nil
}

// lastNumber is for [store.Upkeep]. From version 17 on, an unreadable sequence has no last value, and causes no error.
func (e *engine) lastNumber(ctx context.Context, table, column string) (n int64, err error) {
	var readable bool
	err = e.queryRow(ctx, `SELECT readable,
			CASE WHEN readable THEN COALESCE(pg_sequence_last_value(sequence), 0) ELSE 0 END
		FROM CAST(pg_get_serial_sequence($1, $2) AS regclass) AS sequence,
			has_sequence_privilege(sequence, 'SELECT') AS readable`,
		[]any{table, column}, &readable, &n)
	if err == nil && !readable {
		err = refusal{store.ErrNoRight, "permission denied for the sequence of " + table + "." + column}
	}
	return n, err
}

// copyMark is the name of the program in table meta of an unfinished copy.
const copyMark = "waybill copy"

func beginCopy(ctx context.Context, on store.Queryer) error {
	_, err := on.ExecContext(ctx, "UPDATE meta SET program = $1", copyMark)
	return err
}

func finishCopy(ctx context.Context, on store.Queryer, last []store.LastNumber) error {
	const set = "SELECT setval(CAST(pg_get_serial_sequence($1, $2) AS regclass), $3, $4)"
	for _, n := range last {
		if _, err := on.ExecContext(ctx, set, n.Table, n.Column, max(n.Last, 1), n.Last > 0); err != nil {
			return err
		}
	}
	_, err := on.ExecContext(ctx, "UPDATE meta SET program = 'waybill'")
	return err
}

// replanAfter is how many new rows make the existing plans for a table unsuitable.
const replanAfter = 1000

// load is for [store.Engine]. After many rows it discards the plans of this connection: plans for an empty table read
// all of it for one row, until the server analyzes it.
func load(
	ctx context.Context, conn *sql.Conn, table string, columns []string, n int,
	fill func(args []any, row int) []any,
) error {
	args := make([]any, 0, len(columns))
	err := native(conn, func(on *pgx.Conn) error {
		_, err := on.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			args = fill(args[:0], i)
			return args, nil
		}))
		if err == nil && n >= replanAfter {
			_, err = on.Exec(ctx, "DISCARD PLANS", pgx.QueryExecModeSimpleProtocol)
		}
		return err
	})
	if sqlState(err) == "23505" { // unique_violation
		err = store.ErrDuplicate
	}
	return err
}

// Limits of the wait for older transactions to end before deleted rows are removed.
const (
	snapshotsPatience = 5 * time.Second
	snapshotsPoll     = 100 * time.Millisecond
)

// awaitSnapshots waits until nobody can see the rows that were deleted before the call: until then, the server keeps
// them in every rewrite of their table. After its patience it returns who still can, in words.
//
// A transaction in another database counts if it writes: snapshots here do not go past it.
func (e *engine) awaitSnapshots(ctx context.Context) (holders []string, err error) {
	var next string // transaction, after those that deleted
	err = e.queryRow(ctx, "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid) AS TEXT)", nil, &next)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(snapshotsPatience); ; {
		holders = nil
		err = e.each(ctx, func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			holders = append(holders, strings.ReplaceAll(name, "*", "_")) // it is put into a comment
			return err
		}, `SELECT name FROM (
				SELECT format('the transaction of session %s (%s, user %s%s)',
						pid, to_json(application_name), usename, ', ' || state) AS name,
					GREATEST(CASE WHEN datname IS NULL OR datname = current_database() THEN age(backend_xmin) END,
						age(backend_xid)) AS age
				FROM pg_stat_activity WHERE pid <> pg_backend_pid()
				UNION ALL SELECT format('the replication slot %s', slot_name), age(xmin) FROM pg_replication_slots
				UNION ALL SELECT format('the prepared transaction %s', to_json(gid)), age(transaction) FROM pg_prepared_xacts) s
			WHERE age > age(CAST(CAST($1 AS TEXT) AS xid)) ORDER BY age DESC LIMIT 3`, next)
		if err != nil || len(holders) == 0 {
			return nil, err
		}
		if time.Now().After(end) {
			return holders, nil
		}
		if !sleep(ctx, snapshotsPoll) {
			return nil, ctx.Err()
		}
	}
}
