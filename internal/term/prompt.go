package term

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec" //nolint:depguard // an editor is another program
	"runtime"
	"strings"
)

// ErrNoAnswer reports that the input ended where an answer was expected.
var ErrNoAnswer = errors.New("no answer: the input ended")

const maxAnswer = 64 << 10

// Interactive reports whether questions can be asked: input and messages are on a terminal, and messages are not JSON.
func (t *IO) Interactive() bool {
	return t.facts.InTerminal && t.facts.ErrTerminal && !t.options.JSON
}

// Ask prints a question on Err and returns the typed line without surrounding space. The format must be our own text,
// arguments may be foreign: see [Writer.Printf]. The error is [ErrNoAnswer], a read error, or the cause of ctx's end.
func (t *IO) Ask(ctx context.Context, format string, args ...any) (string, error) {
	answer, err := t.ask(ctx, format, args)
	if err != nil {
		t.human("\n") // the cursor is after the question
	}
	return strings.TrimSpace(answer), err
}

// AskSecret is [IO.Ask] without echo. It returns the answer as typed, after restoring the terminal.
func (t *IO) AskSecret(ctx context.Context, format string, args ...any) (answer string, err error) {
	if file, ok := t.In.(*os.File); ok {
		restore, err := hideInput(file)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	answer, err = t.ask(ctx, format, args)
	t.human("\n") // the typed newline was not shown
	return answer, err
}

// Confirm asks whether to do something. An empty answer means no.
func (t *IO) Confirm(ctx context.Context, format string, args ...any) (bool, error) {
	for {
		answer, err := t.Ask(ctx, format+" [y/N]", args...)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, nil
		case "", "n", "no":
			return false, nil
		}
	}
}

func (t *IO) ask(ctx context.Context, format string, args []any) (string, error) {
	t.human(string(sprintf(format, args)) + " ")
	return Await(ctx, func() (string, error) { return readLine(t.In) })
}

// readLine reads a line, without its end, and no byte after it.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < maxAnswer; {
		n, err := r.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		case n == 1:
			line = append(line, one[0])
		case errors.Is(err, io.EOF):
			return "", ErrNoAnswer
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	return "", errors.New("the answer is too long")
}

// Await returns the result of do, or the cause of ctx's end if that comes first. It is for calls that block outside
// the program, such as reading from a terminal or opening a FIFO. After ctx's end, do still runs: its data is in use.
func Await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Edit runs the user's editor on a file and waits for it. The end of ctx does not stop the editor, which handles
// signals itself. The shell runs the editor's command line; on Windows, it is split at spaces.
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
