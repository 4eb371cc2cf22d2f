package main_test

import (
	"fmt"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// reserve gives a script an address for a server that no other program gets: before
// it listens, after it has ended, and until the script ends. A socket that is bound and does
// not listen keeps those out that let the system choose a port.
func reserve(e *testscript.Env) (addr string, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	e.Defer(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	// Set now, it admits who names the port.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return "", err
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port), nil
}
