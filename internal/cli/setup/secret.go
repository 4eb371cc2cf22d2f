package setup

import (
	"context"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// readSecret reads the one line of a file, or of standard input for -.
func readSecret(ctx context.Context, io *term.IO, path string) (config.Secret, error) {
	return term.Await(ctx, func() (config.Secret, error) { return config.ReadSecretFile(path, io.In) })
}

// askSecret asks until the answer can be a secret.
func askSecret(ctx context.Context, io *term.IO, question string) (config.Secret, error) {
	for {
		secret, err := askOptionalSecret(ctx, io, question)
		if err != nil || !secret.IsZero() {
			return secret, err
		}
		io.Warning("it can't be empty; Ctrl-C ends without a change")
	}
}

// askOptionalSecret is askSecret where the answer may be empty.
func askOptionalSecret(ctx context.Context, io *term.IO, question string) (config.Secret, error) {
	for {
		text, err := io.AskSecret(ctx, "%s", question)
		if err != nil || text == "" {
			return config.Secret{}, err
		}
		secret, err := config.ParseSecret(text)
		if err == nil {
			return secret, nil
		}
		io.WarningWith(term.Failure{Message: "the answer " + err.Error(), Hint: command.HintOf(err)})
	}
}
