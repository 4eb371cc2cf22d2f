package events

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type exportOptions struct {
	IDs                            []string // empty for all deliveries that match
	Since, After, Filter, Verified string
}

func newExport(f *command.Factory) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export [ID...]",
		Short: "Write deliveries as JSON Lines",
		Long: `export writes stored deliveries as JSON Lines, oldest first: time of receipt,
method, path, query, headers in their order, and body (binary bodies as base64).
"waybill events import" and "waybill signature learn --from" read them. Without an
ID, export writes all deliveries that were not pruned; with --filter, those with a
matching event. --after ID reads on from the last delivery that was exported before:
ID is the "delivery" of its line. Headers are written as the sender sent them, including tokens.

` + signature.DeliveryHelp,
		Example: command.Example("waybill events export --out captures.jsonl", "waybill events export 3 refused:1",
			"waybill events export --since 24h --filter event=router.delivered > fixture.jsonl"),
		RunE: f.WithArgs(&o.IDs, func(ctx context.Context, c *command.Call) error { return runExport(ctx, c, o) }),
	}
	sinceFlag(cmd, &o.Since)
	afterFlag(cmd, &o.After)
	filterFlag(cmd, &o.Filter)
	verifiedFlag(cmd, &o.Verified)
	return cmd
}

func runExport(ctx context.Context, call *command.Call, o exportOptions) error {
	if call.Out.IsCSV() {
		return command.Usagef("omit -o "+string(call.Out.Format()), "deliveries are exported as JSON Lines")
	}
	if len(o.IDs) > 0 && (o.Since != "" || o.After != "" || o.Filter != "" || o.Verified != "") {
		return command.Usagef("choose one of them", "IDs and --since, --after, --filter or --verified exclude each other")
	}
	after, _, afterErr := parseAfter(o.After)
	filter, filterErr := parseFilter(call, o.Filter)
	since, err := command.ParseSince("--since", o.Since)
	if err := cmp.Or(err, afterErr, filterErr); err != nil {
		return err
	}
	db, err := call.ExistingStore(ctx)
	if err != nil {
		return err
	}
	deliveries := replay.Deliveries(ctx, db.Received(), replay.OldestFirst)
	if len(o.IDs) > 0 {
		deliveries = replay.Whole(ctx, db.Received(), o.IDs...)
	}
	call.Out.Whole()
	list, written, pruned := call.Out.BeginList(), 0, 0
	err = command.Each(deliveries, func(d replay.Delivery) error {
		if d.Seq <= after || d.ReceivedAt.Before(since) || o.Verified != "" && string(d.Verified) != o.Verified {
			return nil
		}
		if o.Filter != "" {
			if ok, err := matches(ctx, db.Received(), filter, d.Seq); err != nil || !ok {
				return err
			}
		}
		if d.Body == nil {
			pruned++
			return nil
		}
		written++
		return list.Add(d.Capture())
	})
	if err := errors.Join(err, list.Close()); err != nil {
		return err
	}
	if pruned > 0 {
		call.IO.Warning("%s skipped: bytes were pruned", command.Plural(pruned, "delivery"))
	}
	call.IO.Note("%s exported", command.Plural(written, "delivery"))
	return nil
}

// matches reports whether any event of a delivery matches a filter.
func matches(ctx context.Context, in replay.Inbox, filter forward.Filter, delivery int64) (bool, error) {
	for e, err := range in.Events(ctx, inbox.Query{Delivery: delivery}) {
		if err != nil || e.Mark != inbox.Anomaly && filter.Match(e) {
			return err == nil, err
		}
	}
	return false, nil
}

// importedJSON is the result of an import. All but events are deliveries.
type importedJSON struct {
	Imported   int64 `json:"imported"`
	Known      int64 `json:"known"` // that were there already
	Verified   int64 `json:"verified"`
	Unverified int64 `json:"unverified"`
	Events     int64 `json:"events"` // that were not known before
}

func newImport(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|-...",
		Short: "Read exported deliveries into the store",
		Long: `import reads deliveries that "waybill events export" wrote, or captures in the same
form: one JSON object per line, {"receivedAt": TIME, "method", "path", "query",
"headers": [{"name", "value"}], "body" or "bodyBase64"}; - is standard input. If a
line is invalid, nothing is imported.

Each delivery is verified again with your current scheme and secrets, as of the
time it was received; the file's own results are ignored. Verified deliveries count
like any other: they are forwarded and can end a wait. Deliveries and events that
are already stored are not stored again.`,
		Example: command.Example("waybill events import captures.jsonl",
			"waybill events import --store test.db fixtures/*.jsonl",
			"waybill events export --store a.db | waybill events import --store b.db -"),
		Args: command.Between(1, math.MaxInt, "files, or - for standard input"),
		RunE: f.RunE(runImport),
	}
}

func runImport(ctx context.Context, c *command.Call, files []string) error {
	in, err := input.NewOpener(c.Session).Open(ctx, files)
	if err != nil {
		return err
	}
	defer in.Close()
	total, err := countCaptures(ctx, in)
	if err != nil {
		return err
	}
	verifier, err := c.Verifier()
	if err != nil {
		return err
	}
	db, err := c.Store(ctx)
	if err != nil {
		return err
	}
	imp := &replay.Importer{Store: db.Inbox, Scheme: c.Config.Webhook.Scheme}
	if verifier != nil {
		imp.Verifier = verifier
	}
	p := command.NewProgress(c.IO, "Importing", "deliveries", total)
	var j importedJSON
	err = j.importAll(ctx, in, imp, p)
	p.Stop()
	if err != nil {
		err = fmt.Errorf("%d of %s imported: %w", j.Imported+j.Known, command.Plural(total, "delivery"), err)
		failed := &command.ExitError{Code: command.Failed, Err: err}
		if in.Repeatable() {
			failed.Next = c.CommandLine(append([]string{"events", "import"}, files...)...)
		}
		return failed
	}
	if verifier == nil {
		c.IO.Note("No signature scheme is set: imported deliveries are not verified")
	}
	return c.Out.Result(j, "Imported %s with %s: %s verified, %s not verified; %s already stored",
		command.Plural(j.Imported, "delivery"), command.Plural(j.Events, "new event"),
		command.Number(j.Verified), command.Number(j.Unverified), command.Number(j.Known))
}

// importAll imports an input that was checked before.
func (j *importedJSON) importAll(ctx context.Context, in *input.Input, to *replay.Importer, p *command.Progress) error {
	for line, err := range captureLines(in) {
		if err := cmp.Or(err, line.err, context.Cause(ctx)); err != nil {
			return err
		}
		done, err := to.Import(ctx, line.capture)
		if err != nil {
			return err
		}
		p.Add(1)
		if done.Known {
			j.Known++
			continue
		}
		j.Imported++
		j.Events += done.Events
		if done.Verified {
			j.Verified++
		} else {
			j.Unverified++
		}
	}
	return nil
}

// maxCaptureLine is the maximum length of a line of an import, in bytes.
const maxCaptureLine = signature.MaxDeliveryFile

// countCaptures checks the whole input and counts its deliveries.
func countCaptures(ctx context.Context, in *input.Input) (int64, error) {
	var issues command.Issues
	bad, good := 0, int64(0)
	for line, err := range captureLines(in) {
		switch {
		case err != nil:
			return 0, err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case line.err == nil:
			good++
		default:
			bad++
			issues.Add(term.Issue{File: line.file, Line: line.number, Message: line.err.Error()})
		}
	}
	switch {
	case bad > 0:
		return 0, &command.UsageError{
			Err:    errors.New(command.Plural(bad, "bad line") + "; nothing was imported"),
			Reason: command.ReasonInput, Issues: issues,
			Hint: "each line is a JSON object: " +
				`{"receivedAt": TIME, "method", "path", "query", "headers": [{"name", "value"}], "body"}`,
		}
	case good == 0:
		return 0, command.Usagef("`waybill events export` writes them", "no deliveries in the input")
	}
	return good, nil
}

type captureLine struct {
	file    string
	number  int // from 1
	capture webhook.Capture
	err     error // why the line is invalid; nil if it is valid
}

// captureLines yields the lines of all sources from the start. A read error ends it.
func captureLines(in *input.Input) iter.Seq2[captureLine, error] {
	return func(yield func(captureLine, error) bool) {
		for _, src := range in.Sources {
			_, err := src.File.Seek(0, io.SeekStart)
			lines, n := bufio.NewScanner(src.File), 1
			lines.Buffer(nil, maxCaptureLine)
			for ; err == nil && lines.Scan(); n++ {
				line := lines.Bytes()
				if n == 1 {
					line = bytes.TrimPrefix(line, []byte("\ufeff"))
				}
				if line = bytes.TrimSpace(line); len(line) > 0 && !yield(parseCapture(src, n, line), nil) {
					return
				}
			}
			switch err = cmp.Or(err, lines.Err()); {
			case errors.Is(err, bufio.ErrTooLong):
				err = fmt.Errorf("is longer than %d bytes", maxCaptureLine)
				if !yield(captureLine{file: src.Name, number: n, err: err}, nil) {
					return
				}
			case err != nil:
				yield(captureLine{}, fmt.Errorf("read %s: %w", src.Name, input.WithoutPath(err)))
				return
			}
		}
	}
}

func parseCapture(src input.Source, number int, line []byte) captureLine {
	l := captureLine{file: src.Name, number: number}
	if line[0] == '[' {
		l.err = errors.New("is an array: write one delivery a line")
	} else {
		l.err = json.Unmarshal(line, &l.capture)
	}
	return l
}

func newReadmit(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "readmit [ID...]",
		Short: "Verify refused deliveries again, and store those that pass",
		Long: `readmit verifies refused deliveries again, with the current scheme and secrets and as
of the time they were received: all of them, or those with an ID such as refused:3.
Those that verify are stored as if they had been accepted then, with a new number;
refused:3 still finds them. The others stay refused.

Use it if a secret was changed too late. The service got a 401 and may have sent the
deliveries again since; each event still counts once.`,
		Example: command.Example("waybill events readmit", "waybill events readmit refused:3"),
		RunE:    f.RunE(runReadmit),
	}
}

type readmittedJSON struct {
	Readmitted int64 `json:"readmitted"` // deliveries
	Events     int64 `json:"events"`     // of them that were new
	Refused    int64 `json:"refused"`    // deliveries that still do not verify
	Dropped    int64 `json:"dropped"`    // refused deliveries that were not kept, since there were too many

	Deliveries []readmissionJSON `json:"deliveries"` // the readmitted deliveries
}

type readmissionJSON struct {
	Refused string `json:"refused"`
	ID      string `json:"id"`
}

func runReadmit(ctx context.Context, c *command.Call, ids []string) error {
	verifier, err := c.Verifier()
	if err != nil {
		return err
	}
	if verifier == nil {
		return c.Config.Refuse("webhook.scheme", "no scheme is set to verify with",
			"set webhook.scheme; `waybill events readmit` then verifies refused deliveries")
	}
	db, err := c.ExistingStore(ctx) // nil only if nothing was refused
	if err != nil {
		return err
	}
	counts, err := db.Received().Counts(ctx)
	if err != nil {
		return err
	}
	j := readmittedJSON{Deliveries: []readmissionJSON{}, Dropped: counts.RefusedDropped}
	for d, err := range refusedDeliveries(ctx, db.Received(), ids) {
		if err != nil {
			return err
		}
		placed, err := replay.Readmit(ctx, db.Verdicts, c.Config.Webhook.Scheme, verifier, d.Delivery)
		if err != nil {
			return err
		}
		if placed == nil {
			j.Refused++
			continue
		}
		j.Readmitted++
		j.Events += placed.CountCurrent()
		j.Deliveries = append(j.Deliveries, readmissionJSON{d.ID(), strconv.FormatInt(placed.Delivery, 10)})
		c.IO.Detail("%s is delivery %d now", d.ID(), placed.Delivery)
	}
	if j.Readmitted == 0 && j.Refused > 0 {
		err = errors.New("none of the refused deliveries verifies")
		err = &command.ExitError{Code: command.Unverified, Err: err, Hint: "check webhook.secrets and webhook.scheme"}
	}
	dropped := ""
	if j.Dropped > 0 {
		dropped = "; not kept, as there were too many: " + command.Plural(j.Dropped, "refused delivery")
	}
	return errors.Join(err, c.Out.Result(j, "Readmitted %s with %s; still refused: %s%s",
		command.Plural(j.Readmitted, "delivery"), command.Plural(j.Events, "new event"), command.Number(j.Refused), dropped))
}

// refusedDeliveries yields the refused deliveries with these IDs, or all without IDs. An error ends it.
func refusedDeliveries(ctx context.Context, in replay.Inbox, ids []string) iter.Seq2[replay.Delivery, error] {
	return func(yield func(replay.Delivery, error) bool) {
		for _, id := range ids {
			d, err := replay.Find(ctx, in, id)
			if err == nil && !d.Refused {
				err = command.Usagef("`waybill events show "+shell.Word(id)+"` shows it",
					"delivery %s was not refused: nothing to readmit", d.ID())
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
		if len(ids) > 0 {
			return
		}
		for d, err := range in.Refused(ctx, 0) {
			if !yield(replay.Delivery{Delivery: d, Refused: true}, err) || err != nil {
				return
			}
		}
	}
}
