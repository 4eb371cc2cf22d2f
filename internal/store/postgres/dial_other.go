//go:build !linux

package postgres

// limitUnanswered leaves the system's own limit.
func limitUnanswered(uintptr) error { return nil }
