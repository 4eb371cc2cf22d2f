package postgres

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
)

// A connection that was cut is noticed after about this long, by both sides: an idle one
// by probes, one that sends by what stays unanswered.
const (
	probeIdle     = 5 * time.Second
	probeInterval = 3 * time.Second
	probeCount    = 3
	unanswered    = probeIdle + probeCount*probeInterval
)

// dialer opens network connections.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeInterval, Count: probeCount},
		Control: func(network, _ string, c syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			var err error
			return errors.Join(c.Control(func(fd uintptr) { err = limitUnanswered(fd) }), err)
		},
	}
}
