//go:build !linux

package main_test

import (
	"errors"
	"testing"
)

// What tests for Linux have and others name, so that those run elsewhere.
var errLinuxOnly = errors.New("only on Linux")

func dropPrivileges() error { return errLinuxOnly }

func checkStore(t *testing.T, _ string) error {
	t.Helper()
	return errLinuxOnly
}
