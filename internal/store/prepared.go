package store

import (
	"context"
	"database/sql"
)

// statement is a text in the connection that writes, compiled once.
type statement interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, args ...any) *sql.Row
	Close() error
}

// keptText is a statement that the connection compiles by itself.
type keptText struct {
	conn *sql.Conn
	text string
}

// ExecContext is for [statement], as are the next ones.
func (s keptText) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return s.conn.ExecContext(ctx, s.text, args...)
}

// QueryContext runs a query for several rows.
func (s keptText) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return s.conn.QueryContext(ctx, s.text, args...)
}

// QueryRowContext runs a query for one row.
func (s keptText) QueryRowContext(ctx context.Context, args ...any) *sql.Row {
	return s.conn.QueryRowContext(ctx, s.text, args...)
}

// Close does nothing: the text goes with its connection.
func (keptText) Close() error { return nil }
