//go:build !linux

package postgres

// limitUnanswered keeps the system's own limit.
func limitUnanswered(uintptr) error { return nil }
