package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// ErrMissing is returned where PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL is missing: install the package postgresql")

// Program returns the path of one of PostgreSQL's programs, such as pgbench, or
// [ErrMissing].
func Program(name string) (string, error) {
	folder, err := programs()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return path, nil
}

// programs returns the folder of PostgreSQL's programs: that of pg_ctl in PATH,
// else where Debian puts the newest version. It returns [ErrMissing] if there
// is none.
func programs() (string, error) {
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if err != nil {
		return "", err
	}
	newest, folder := 0, ""
	for _, path := range found {
		dir := filepath.Dir(path)
		if version, err := strconv.Atoi(filepath.Base(filepath.Dir(dir))); err == nil && version > newest {
			newest, folder = version, dir
		}
	}
	if folder == "" {
		return "", ErrMissing
	}
	return folder, nil
}

// command returns one of PostgreSQL's programs, ready to run for a server whose
// folder is folder: as the user that owns it.
func command(ctx context.Context, folder, program string, args ...string) (*exec.Cmd, error) {
	path, err := Program(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // one of PostgreSQL's programs
	cmd.Dir = folder
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "HOME=" + folder, "PATH=" + filepath.Dir(path) + ":/usr/bin:/bin"}
	return cmd, asOwner(cmd)
}

// run runs one of PostgreSQL's programs to its end. Its output goes through a
// file: a server that it starts would hold a pipe open.
func run(ctx context.Context, folder, program string, args ...string) error {
	cmd, err := command(ctx, folder, program, args...)
	if err != nil {
		return err
	}
	output, err := os.CreateTemp(folder, "output-")
	if err != nil {
		return err
	}
	defer os.Remove(output.Name()) //nolint:errcheck // a temporary file
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(output.Name()) // what it says is extra
		return fmt.Errorf("%s: %w: %s", program, err, text)
	}
	return nil
}
