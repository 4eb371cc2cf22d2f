package setup

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Results of a check of an API key.
const (
	keyNotRefused = "not_refused" // the service answered a query
	keyRefused    = "refused"     // with 401 or 403
	keyUnclear    = "unclear"     // no response, or one that shows nothing of the key
	keyNotChecked = "not_checked"
)

// keyCheck is what one query with an API key showed.
type keyCheck struct {
	Result     string `json:"result"`
	HTTPStatus int    `json:"httpStatus"` // 0 if no response came
	Message    string `json:"message"`    // of the service, as sent, or what went wrong

	err error // nil unless the key was refused, or nothing is known of it
}

// text words what is proven, and no more.
func (k keyCheck) text() string {
	switch k.Result {
	case keyNotRefused:
		return "not refused: the service answered a query for a tracking that does not exist"
	case keyRefused:
		return "refused: " + k.Message
	case keyUnclear:
		return "not known: " + k.Message
	}
	return "not checked"
}

// checkKey sends one query for a tracking that can't exist. It changes nothing at
// the service.
//
// Assumed: a service that refuses a key answers 401 or 403.
func checkKey(ctx context.Context, c *command.Call, base, key string) keyCheck {
	client, err := c.NewClient(base, key)
	if err != nil {
		return keyCheck{Result: keyUnclear, Message: err.Error(), err: err}
	}
	defer client.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(c.Config.Timeout, command.QueryTimeout), command.ErrTimeUp)
	defer cancel()
	item := tracking.Item{ReferID: "waybill-check-" + rand.Text()[:12], Number: "WB" + rand.Text()[:14]}
	f := client.Find(ctx, tracking.Query{ReferID: item.ReferID}, item)
	status, _ := errors.AsType[*api.StatusError](f.Err)
	k := keyCheck{Result: keyUnclear, HTTPStatus: f.Status, err: f.Err}
	if f.Body != nil {
		k.Message = f.Body.ErrorText()
	}
	switch {
	case f.Unauthorized:
		k.Result = keyRefused
	case f.Status == 0, status != nil && (status.Systemic() || status.Throttled() || status.Status >= http.StatusInternalServerError):
	case status == nil && f.Err != nil:
	case !f.Body.JSON():
		k.err = &api.AnswerError{Status: f.Status, Problem: "not JSON"}
	default:
		k.Result, k.err = keyNotRefused, nil
	}
	if k.err != nil {
		k.Message = k.err.Error()
	}
	return k
}

// keyPrint returns what tells API keys apart and shows nothing of them.
func keyPrint(key string) string {
	sum := sha256.Sum256([]byte("waybill API key\x00" + key))
	return hex.EncodeToString(sum[:4])
}

// inAnyKeyring does something with the keyring, if there is one.
func inAnyKeyring(c *command.Call, do func() error) error {
	if c.Keyring() == nil {
		return keyring.ErrNotFound
	}
	return do()
}

// forgetEntry removes the key that a profile of the file had in the keyring, but for
// the entry that is used from now on. What
// can't be removed is a warning: nothing uses it any more.
func forgetEntry(ctx context.Context, c *command.Call, d *config.Draft, profile, used string) {
	name := d.Text(profile, "api_key_keyring")
	if name == "" || name == used {
		return
	}
	err := inAnyKeyring(c, func() error { return c.Keyring().Delete(ctx, name) })
	switch {
	case err == nil:
		c.IO.Note("Removed the API key from the keyring")
	case !errors.Is(err, keyring.ErrNotFound):
		c.IO.Warning("the API key is still in the keyring: %v", err)
	}
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
