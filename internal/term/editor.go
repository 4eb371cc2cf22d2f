package term

import (
	"context"
	"os/exec" //nolint:depguard // an editor is another program
	"runtime"
	"strings"
)

// Edit runs the user's editor on a file, on the streams as they are, until it
// ends. A signal is the editor's own matter. The command line of the editor is for
// the shell; on Windows, words between spaces.
func (t *IO) Edit(ctx context.Context, editor, path string) error {
	ctx = context.WithoutCancel(ctx)
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$@"`, editor, path) //nolint:gosec // the user named it
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		if _, err := exec.LookPath(editor); err == nil {
			words = []string{editor}
		}
		cmd = exec.CommandContext(ctx, words[0], append(words[1:], path)...) //nolint:gosec // the user named it
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.In, t.Out.w, t.Err.w
	return cmd.Run()
}
