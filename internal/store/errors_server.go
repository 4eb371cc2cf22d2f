package store

import (
	"errors"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Kinds of [Error] that servers add.
var (
	ErrUnreachable   = inbox.ErrUnreachable
	ErrNoConnections = errors.New("server has no connection left")
	ErrServerTooOld  = errors.New("server is older than PostgreSQL 13")
	ErrEncoding      = errors.New("database is not in UTF8")
	ErrUnsynced      = errors.New("server does not put commits on disk at once")
	ErrLost          = errors.New("server lost commits")
	ErrPooled        = errors.New("a proxy changes the connection to the server between transactions")
	ErrNoTLS         = errors.New("no verified TLS connection")
	ErrLogin         = errors.New("server refused the login")
	ErrNoDatabase    = errors.New("there is no such database")
	ErrNoRight       = errors.New("no right to do this in the database")
	ErrTimedOut      = errors.New("server took too long")
	ErrLimit         = errors.New("a limit of the server was reached")
	ErrServer        = errors.New("server reports an error")
)
