//go:build !unix

package main_test

func bareList(_, _ string) error { return errLinuxOnly }
