// Package send provides what commands that send rows share: their flags, sending
// a run, and reporting its outcome.
package send

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Execution sends one run to the service and reports the outcome.
type Execution struct {
	Call    *command.Call
	Store   *app.Store
	Run     ledger.Run
	Policy  bulk.Policy
	Wait    bool  // wait until the accepted rows are processed
	Invalid int64 // records of the input that were skipped
	Started time.Time
	Repeat  string // this command line if repeating it continues the run, else empty

	Gate          Gate  // conditions of --fail-if
	NamedRejected int64 // rows that Policy.RetryRow makes pending

	// Feed stages the rest of the input, which has Rows rows, while the run is sent; nil if all is staged.
	Feed *bulk.Feed
	Rows int64
	// Partial says that staging ended before the end of the input.
	Partial bool

	apart      int64         // rows to be neither sent nor queried
	accepted   int64         // rows recorded as accepted so far
	sending    time.Duration // time spent on sending
	unprovable bool          // unknown rows stay unknown: there is no accepted row to compare with
}

func (k *Execution) next() string {
	return cmp.Or(k.Repeat, k.Call.CommandLine("runs", "resume", command.RunName(k.Run.ID)))
}

// Execute sends the rows of the run and reports the outcome.
func (k *Execution) Execute(ctx context.Context) error {
	return WithNextCommand(k.execute(ctx), k.next())
}

func (k *Execution) execute(ctx context.Context) error {
	client, err := k.Call.Client()
	if err != nil {
		return err
	}
	toSend, toQuery, err := k.remaining(ctx)
	if err != nil {
		return err
	}
	if err := k.announce(ctx, client.Host(), toSend, toQuery); err != nil {
		return err
	}
	requests, sent, sendErr := k.send(ctx, client, toSend+toQuery)
	if command.As[*store.Error](sendErr) && !errors.Is(sendErr, ledger.ErrNotClaimed) {
		if errors.Is(sendErr, store.ErrGone) {
			return sendErr // the store is gone
		}
		rows := command.Plural(toSend+toQuery, "row") // the store can't be read either
		return fmt.Errorf("%w; before that, %s of %s recorded as accepted", sendErr, command.Number(k.accepted), rows)
	}
	if stop, ok := errors.AsType[*bulk.StopError](sendErr); ok && stop.Known != nil {
		next := k.next() + " --check-first"
		return &command.ExitError{
			Code: command.Usage, Err: command.Existsf("", "%w: nothing was sent", stop), Next: next,
			Hint: "`" + next + "` checks every row with the service and sends only new ones; " +
				"or use the store that sent it with --store",
		}
	}
	return k.finish(ctx, requests, sent, sendErr)
}

// remaining returns how many rows are to be sent, at most, and how many are to be queried.
func (k *Execution) remaining(ctx context.Context) (send, ask int64, err error) {
	if k.Feed != nil {
		return k.Rows, 0, nil
	}
	run, err := k.Store.History.Run(ctx, k.Run.ID)
	c := run.Counts
	send = c.Pending
	if k.Policy.RetryRow != "" {
		send += k.NamedRejected
	} else if k.Policy.RetryRejected {
		send += run.Rejected()
	}
	k.apart = c.Accepted + c.Rejected + c.Pending + c.Sending - send
	if k.Policy.Unknown == bulk.Resend {
		send += c.Unknown
	} else if k.Policy.Unknown.Queries() {
		ask = c.Unknown
	}
	if k.Policy.RetryAbsent {
		ask += c.Accepted
	}
	return send, ask, err
}

func (k *Execution) announce(ctx context.Context, host string, send, ask int64) error {
	where := k.destination(ctx)
	rows := command.Plural(send, "row")
	if k.Feed != nil && !k.Store.New {
		rows = "up to " + rows // some may have been sent before
	}
	switch first := command.Plural(ask, "row"); {
	case send > 0 && k.Policy.VerifyPending:
		k.Call.IO.Note("Checking %s with %s, sending new ones%s", rows, host, where)
	case send > 0 && ask > 0:
		k.Call.IO.Note("Checking %s, sending %s to %s%s", first, rows, host, where)
	case send > 0:
		requests := command.Plural(Requests(send, k.Run.Plan.BatchSize), "request")
		k.Call.IO.Note("Sending %s to %s in %s%s", rows, host, requests, where)
	case ask > 0:
		k.Call.IO.Note("Checking %s with %s%s", first, host, where)
	default:
		k.Call.IO.Note("No rows to send to %s%s", host, where)
	}
	if k.Feed != nil { // not known yet which pending rows are in this input
		return nil
	}
	others, err := k.Store.History.Pending(ctx, k.Run.ID)
	if others > 0 {
		list := k.Call.CommandLine("runs", "list")
		k.Call.IO.Note("%s pending in other runs not sent; `%s` lists them", command.Plural(others, "row"), list)
	}
	return err
}

// destination names profile, account and store in parentheses, as far as they are not the default; all with --verbose.
func (k *Execution) destination(ctx context.Context) string {
	var parts []string
	add := func(key, name, value string) {
		if value != "" && (k.Call.Config.Verbose || k.Call.Config.Origin(key).Level != config.FromDefault) {
			parts = append(parts, name+" "+value)
		}
	}
	add("profile", "profile", k.Call.Config.Profile)
	add("account", "account", k.Call.Account(ctx))
	add("store", "store", k.Store.Path)
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Requests returns the number of requests for a number of rows.
func Requests(rows int64, batch int) int64 {
	return (rows + int64(batch) - 1) / int64(batch)
}

type service struct {
	*api.Client
	mode ledger.Mode
}

// Create sends one batch, once. The reply is never nil.
func (s service) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	if s.mode == ledger.Sync {
		return s.CreateSync(ctx, items)
	}
	return s.CreateAsync(ctx, items)
}

// send sends the remaining rows and shows progress. It returns the errors of [bulk.Job.Execute].
func (k *Execution) send(ctx context.Context, client *api.Client, rows int64) (requests, sent int64, err error) {
	progress := command.NewCreateProgress(k.Call.IO, rows, Requests(rows, k.Run.Plan.BatchSize))
	db := k.Store
	contracts := bulk.Store{Queue: db.Queue, UnknownRows: db.Unknown, Accounts: db.Accounts, Trackings: db.Trackings}
	job := bulk.Job{Ledger: contracts, Service: service{client, k.Run.Plan.Mode}, Gate: k.Call.Gate}
	job.Run, job.Feed, job.Policy = k.Run, k.Feed, k.Policy
	job.Recorded, job.Resolved, job.Failing = progress.Recorded, progress.Resolved, progress.Failing
	job.Checking, job.Checked = progress.Checking, progress.Checked
	if !k.Policy.RetryAbsent { // else accepted rows remain to be checked too
		job.Counted = func(c ledger.Counts) { progress.Counted(c.Accepted + c.Rejected - k.apart) }
	}
	job.Note, job.Detail, job.Warn = k.Call.IO.Note, k.Call.IO.Detail, k.Call.IO.Warning
	began := time.Now()
	hard, cancel := Hard(ctx, k.Call)
	defer cancel()
	requests, err = job.Execute(hard, ctx)
	k.sending = time.Since(began)
	k.Run, k.unprovable = job.Run, job.Unprovable()
	k.Partial = k.Partial || job.Partial()
	if job.Partial() && command.As[*command.UsageError](err) {
		err = fmt.Errorf("%s; rows of its first version may have been sent", err.Error())
		err = &command.ExitError{Code: command.Partial, Err: err, Hint: partialHint}
	}
	k.accepted = progress.Done()
	progress.Stop()
	return requests, job.Sent(), err
}
