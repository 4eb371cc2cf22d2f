package listen

import (
	"bytes"
	"net"
	"strconv"
)

// reportingListener accepts connections that report what package net/http answers before any handler is called:
// 400 to what is no request, 431 to a header that is far too large.
type reportingListener struct {
	net.Listener
	alert *rejectAlert
}

// Accept is part of [net.Listener].
func (l reportingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &reportingConn{conn, l.alert}, nil
}

type reportingConn struct {
	net.Conn
	alert *rejectAlert
}

// Write is part of [net.Conn]. What a handler answers has the header X-Content-Type-Options, see [answer].
func (c *reportingConn) Write(b []byte) (int, error) {
	if line, ok := bytes.CutPrefix(b, []byte("HTTP/1.1 ")); ok && len(line) > 0 && line[0] >= '4' && !bytes.Contains(line, []byte("X-Content-Type-Options")) {
		line, _, _ = bytes.Cut(line, []byte("\r\n"))
		code, text, _ := bytes.Cut(line, []byte(" "))
		if status, err := strconv.Atoi(string(code)); err == nil {
			c.alert.report(status, string(bytes.ToLower(text)), c.RemoteAddr().String())
		}
	}
	return c.Conn.Write(b)
}

// CloseWrite closes one direction, as package net/http does after an answer to what it has not read whole.
func (c *reportingConn) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}
