//go:build !unix

package pgtest

import "os/exec"

func asOwner(*exec.Cmd) error      { return ErrMissing }
func giveToOwner(string) error     { return ErrMissing }
func ownerRemovesFrom(string) bool { return true }
