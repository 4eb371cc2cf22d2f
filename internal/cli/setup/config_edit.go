package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/shell"
)

// newFile is what a configuration file begins with.
const newFile = "# Settings of waybill. \"waybill help environment\" lists every key.\n"

func newConfigEdit(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit your configuration file",
		Long: `edit opens a copy of your configuration file in $VISUAL or $EDITOR. When the editor
ends, the copy is checked and replaces the file. A copy that is not valid replaces
nothing: you can edit it again, or it stays in the same folder and the error names it.`,
		Example: command.Example("waybill config edit", "EDITOR='code --wait' waybill config edit"),
		Args:    cobra.NoArgs,
		RunE: f.RunBare(func(ctx context.Context, b *command.Bare, _ []string) error {
			return runConfigEdit(ctx, b, cmp.Or(f.App.Getenv("VISUAL"), f.App.Getenv("EDITOR")))
		}),
	}
}

func runConfigEdit(ctx context.Context, b *command.Bare, editor string) error {
	if editor == "" && !b.IO.Interactive() {
		return command.Usagef("set VISUAL or EDITOR, or use `waybill config set KEY VALUE`", "there is no terminal for an editor")
	}
	if editor == "" {
		editor = "vi"
		if runtime.GOOS == "windows" {
			editor = "notepad"
		}
	}
	d, err := config.OpenDraft(b.Sources)
	if err != nil {
		return err
	}
	before := d.Old
	if before == nil {
		before = []byte(newFile)
	}
	copied, err := copyBeside(d.Path, before)
	if err != nil {
		return err
	}
	for {
		ended := b.IO.Edit(ctx, editor, copied)
		data, err := os.ReadFile(copied)
		unchanged := err == nil && bytes.Equal(data, before)
		switch {
		case ended != nil && unchanged:
			_ = os.Remove(copied) // it holds nothing new
			return editorError(editor, ended, "")
		case ended != nil:
			return editorError(editor, ended, "; your changes are in "+copied)
		case err != nil:
			return err
		case unchanged:
			b.IO.Note("%s is unchanged", d.Path)
			return os.Remove(copied)
		}
		if err = d.Check(data, copied); err == nil {
			err = d.Replace(data)
		}
		if err == nil {
			b.IO.Note("Changed %s", d.Path)
			return os.Remove(copied)
		}
		hint := "fix the copy and move it: " + shell.Line("mv", copied, d.Path)
		if errors.Is(err, config.ErrChanged) {
			hint = "run `waybill config edit` again; your changes are in " + copied
		}
		again, e := editAgain(ctx, b, err)
		if e != nil || !again {
			return errors.Join(&command.UsageError{Err: err, Hint: hint}, e)
		}
	}
}

func editorError(editor string, err error, left string) error {
	return command.Usagef("set VISUAL or EDITOR to another editor", "editor %s: %w%s", editor, err, left)
}

// editAgain asks whether to edit a copy again that is not valid.
func editAgain(ctx context.Context, b *command.Bare, fault error) (bool, error) {
	if !b.IO.Interactive() || errors.Is(fault, config.ErrChanged) {
		return false, nil
	}
	b.IO.Warning("%v", fault)
	return b.IO.Confirm(ctx, "Edit it again?")
}

// copyBeside writes a copy of the configuration file into its folder, 0600.
func copyBeside(path string, data []byte) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "edit.*.yaml") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Close())
}
