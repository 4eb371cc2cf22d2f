package main_test

import (
	"os/exec"
)

// writes are the calls that put something on the disk, or tell somebody.
const writes = "write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,ftruncate,sendto,sendmsg"

// straced is a command that strace looks at, or spoils calls of.
func (w *world) straced(options, args []string) *exec.Cmd {
	w.tb.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		w.tb.Fatalf("%v: the full form of this test needs it", err)
	}
	cmd := w.command(args...)
	cmd.Args = append(append([]string{strace, "-f", "-y"}, options...), cmd.Args...)
	cmd.Path = strace
	return cmd
}
