//go:build !linux

package postgres

import "time"

func uptime() time.Duration { return elapsed() }
