package postgres

import "golang.org/x/sys/unix"

// limitUnanswered ends a connection whose peer stays silent; without it, that takes a quarter of an hour.
func limitUnanswered(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
}
