//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner returns the user that the server runs as, and that user's group:
// ourselves, or postgres if we are root, whom the server refuses.
func owner() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return os.Geteuid(), os.Getegid(), nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, fmt.Errorf("PostgreSQL refuses root, and there is no other user for it: %w", err)
	}
	uid, err = strconv.Atoi(account.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(account.Gid)
	return uid, gid, err
}

// asOwner lets cmd run as the server's user, in a session of its own, so that
// no signal from a terminal reaches it.
func asOwner(cmd *exec.Cmd) error {
	uid, gid, err := owner()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return nil
}

// giveToOwner makes a file belong to the server's user, and to our group.
func giveToOwner(path string) error {
	uid, _, err := owner()
	if err != nil {
		return err
	}
	return os.Chown(path, uid, os.Getegid())
}

// ownerRemovesFrom reports whether the server's user can remove its own files
// from a folder of ours.
func ownerRemovesFrom(folder string) bool {
	if os.Geteuid() != 0 {
		return true
	}
	info, err := os.Stat(folder)
	return err == nil && info.Mode().Perm()&0o003 == 0o003
}
