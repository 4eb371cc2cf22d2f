package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/waybill-cli/waybill/internal/store"
)

// upkeep returns what commands about the store itself need of the server.
func (e *engine) upkeep() store.Upkeep {
	return store.Upkeep{TableBytes: e.tableBytes, Settings: e.settings, Processes: e.processes}
}

// each runs a query and calls scan for each of its rows.
func (e *engine) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return e.read(ctx, func() (again bool, err error) {
		rows, err := e.readers.QueryContext(ctx, query, args...)
		if err != nil {
			return true, err
		}
		defer rows.Close()
		for again = true; rows.Next(); again = false {
			if err := scan(rows); err != nil {
				return false, err
			}
		}
		return again, rows.Err()
	})
}

// tableBytes is for [store.Upkeep]. A partition counts as its table; deliveries are two.
func (e *engine) tableBytes(ctx context.Context) (map[string]int64, error) {
	bytes := map[string]int64{}
	err := e.each(ctx, func(rows *sql.Rows) error {
		var name string
		var n int64
		err := rows.Scan(&name, &n)
		if name == "delivery_records" || name == "delivery_bytes" {
			name = "deliveries"
		}
		bytes[name] += n
		return err
	}, `SELECT COALESCE((SELECT p.relname FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = c.oid), c.relname), pg_total_relation_size(c.oid)
		FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)`, e.schema)
	return bytes, err
}

// settings is for [store.Upkeep].
func (e *engine) settings(ctx context.Context) ([]store.Setting, error) {
	var version, fsync, commit, pages, checksums, vacuum, schema, most, used string
	var timeline, wrote int64
	var standby bool
	err := e.read(ctx, func() (bool, error) {
		return true, e.readers.QueryRowContext(ctx, `SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
			current_setting('data_checksums'), current_setting('autovacuum'), (SELECT CAST(version AS TEXT) FROM meta), current_setting('max_connections'),
			(SELECT CAST(COUNT(*) AS TEXT) FROM pg_stat_activity WHERE datname IS NOT NULL),
			(SELECT timeline_id FROM pg_control_checkpoint()), (SELECT timeline FROM meta), pg_is_in_recovery()`).
			Scan(&version, &fsync, &commit, &pages, &checksums, &vacuum, &schema, &most, &used, &timeline, &wrote, &standby)
	})
	all := []store.Setting{
		{Name: "PostgreSQL", Value: version},
		{Name: "Schema", Value: e.schema + ", version " + schema},
		{Name: "Connections", Value: used + " of " + most},
		warnIf(fsync == "off", store.Setting{Name: "fsync", Value: fsync, Warning: "a crash of the server may damage the store; turn it on"}),
		warnIf(commit == "off", store.Setting{Name: "synchronous_commit", Value: commit, Warning: "a crash of the server may lose what was sent and received; turn it on"}),
		warnIf(pages == "off", store.Setting{Name: "full_page_writes", Value: pages, Warning: "a crash of the server may damage the store; turn it on"}),
		{Name: "data_checksums", Value: checksums},
		warnIf(vacuum == "off", store.Setting{Name: "autovacuum", Value: vacuum, Warning: "the store grows without need; turn it on"}),
		warnIf(wrote != 0 && wrote != timeline, store.Setting{Name: "Timeline", Value: fmt.Sprintf("%d, last written in %d", timeline, wrote), Warning: "the server was replaced or restored; it may lack what was stored last"}),
	}
	if wrote == 0 || wrote == timeline {
		all[len(all)-1].Value = fmt.Sprint(timeline)
	}
	if standby {
		all = append(all, store.Setting{Name: "Standby", Value: "yes"})
	}
	return all, err
}

// warnIf drops the warning unless it applies.
func warnIf(applies bool, s store.Setting) store.Setting {
	if !applies {
		s.Warning = ""
	}
	return s
}

// processes is for [store.Upkeep].
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
	}, "SELECT o.name, o.host, o.pid, o.version, o.command, o.started, NOT ("+e.owners.isDead()+") FROM owners o ORDER BY o.started")
	return all, err
}
