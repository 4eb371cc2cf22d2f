// Package pgtest gives tests a private PostgreSQL server. It is for tests alone.
package pgtest

import _ "github.com/jackc/pgx/v5/stdlib" // the driver of database/sql
