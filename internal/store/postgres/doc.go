// Package postgres keeps a store in a schema of a PostgreSQL database, which several
// machines use at once. It is the only package that knows PostgreSQL.
package postgres
