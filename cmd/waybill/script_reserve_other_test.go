//go:build !linux

package main_test

import "github.com/rogpeppe/go-internal/testscript"

// reserve gives a script an address for a server: here the system chooses one.
func reserve(*testscript.Env) (addr string, err error) { return "127.0.0.1:0", nil }
