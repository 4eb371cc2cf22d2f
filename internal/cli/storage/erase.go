package storage

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// eraseAtOnce is how many shipments of a file are erased in one pass over the store.
const eraseAtOnce = 10_000

// shownMissing is how many names an error lists.
const shownMissing = 3

type eraseOptions struct {
	ReferIDs, Numbers []string
	From, Format      string
	Sheet             string // of a workbook
	Receipt           string
	Names             bool // in the receipt
	Copies            bool // remove copies beside the store
	Yes               bool
}

// receiptJSON is the result of an erasure.
type receiptJSON struct {
	Store    string    `json:"store"`
	Account  string    `json:"account"`
	ErasedAt time.Time `json:"erasedAt"`
	Host     string    `json:"host"`
	User     string    `json:"user"`
	Version  string    `json:"version"` // of waybill
	Asked    int64     `json:"asked"`   // shipments
	NotFound int64     `json:"notFound"`
	Complete bool      `json:"complete"` // nothing of them is left in the store or beside it

	Rows           int64 `json:"rows"`
	Unknown        int64 `json:"unknown"` // of rows: with an unknown outcome
	Pending        int64 `json:"pending"` // of rows: not sent
	Trackings      int64 `json:"trackings"`
	Responses      int64 `json:"responses"`
	BatchResponses int64 `json:"batchResponses"` // to create requests, whole
	Events         int64 `json:"events"`
	Deliveries     int64 `json:"deliveries"` // whose bytes were dropped
	Refused        int64 `json:"refused"`
	Texts          int64 `json:"texts"`         // reasons, names and paths that held one
	SharedNumbers  int64 `json:"sharedNumbers"` // kept: another shipment has them

	Left      []string     `json:"left"`            // files that may hold them, or commands to run
	Removed   []string     `json:"removed"`         // copies beside the store
	Hashes    []string     `json:"hashes"`          // keyed: what the store keeps of them
	Shipments []erasedJSON `json:"names,omitempty"` // with --with-names
}

type erasedJSON struct {
	ReferID string `json:"referId,omitempty"`
	Number  string `json:"trackingNumber,omitempty"`
	Found   bool   `json:"found"`
}

func newErase(f *command.Factory) *cobra.Command {
	var o eraseOptions
	cmd := &cobra.Command{
		Use:   "erase --refer-id R|--number N|--from FILE",
		Short: "Erase what is stored of shipments",
		Long: `erase removes shipments of the account: rows, responses, trackings and events, from
unused space of the store too. It can't be undone. Events of other shipments in the
same delivery keep their bytes; a response to a create request goes whole.

The store keeps a keyed hash of each: the same file sends nothing for it again, and
later responses and deliveries about it are not kept. If a number has another order
too, what is known of the number stays until that is erased.

erase refuses while another process sends a row. After an interruption, re-run the
same command. The result is a receipt without names, unless --with-names adds them;
--receipt also writes it to a file that only you can read.

The service keeps its data. So do backups, and the write-ahead log and the backups of
a PostgreSQL server. docs/privacy.md says what is kept where.`,
		Example: command.Example("waybill store erase --refer-id ORD-1001", "waybill store erase --from erase.csv --receipt receipt.json --yes"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runErase(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.ReferIDs, "refer-id", nil, "erase the order `R` with all its numbers; may be repeated")
	flags.StringArrayVar(&o.Numbers, "number", nil, "erase the shipments with number `N`; may be repeated")
	flags.StringVar(&o.From, "from", "", "erase the REFs in `FILE`: CSV, XLSX, JSON, JSONL or one a line (- for standard input)")
	command.Choice(flags, &o.Format, "format", "auto", "read --from as `FORMAT`", append(command.InputFormats(), string(intake.List))...)
	command.SheetFlag(flags, &o.Sheet)
	command.SettingFlags(cmd, "map", "encoding", "strip-spaces", "max-input")
	flags.StringVar(&o.Receipt, "receipt", "", "also write the receipt to a new `FILE`")
	flags.BoolVar(&o.Names, "with-names", false, "put the names of what was erased into the receipt")
	flags.BoolVar(&o.Copies, "remove-copies", false, "also remove copies of the store that upgrades made, and salvaged responses")
	flags.BoolVar(&o.Yes, "yes", false, "erase without a question")
	return cmd
}

func runErase(ctx context.Context, c *command.Call, o eraseOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	db, err := existing(ctx, c)
	if err != nil {
		return err
	}
	e := &erasing{call: c, o: o, db: db, account: c.Account(ctx)}
	if o.From != "" {
		refs, err := input.OpenRefs(ctx, c, o.From, o.Format, o.Sheet)
		if err != nil {
			return err
		}
		defer refs.Close()
		e.refs = refs
	}
	if err := e.confirm(ctx); err != nil {
		return err
	}
	var file *command.AtomicFile
	if o.Receipt != "" { // before anything is erased
		if file, err = command.NewAtomicFile(ctx, o.Receipt); err != nil {
			return err
		}
		defer file.Discard()
	}
	return e.run(ctx, file)
}

func (o *eraseOptions) check() error {
	n := len(o.ReferIDs) + len(o.Numbers)
	switch {
	case n == 0 && o.From == "":
		return command.Usagef("waybill store erase --refer-id R, --number N or --from FILE", "nothing to erase is named")
	case n > 0 && o.From != "":
		return command.Usagef("put all REFs into the file", "--from excludes --refer-id and --number")
	case strings.Join(append(o.ReferIDs, o.Numbers...), "") == "" && n > 0:
		return command.Usagef("remove the empty value; an unset shell variable may be the cause", "a name is empty")
	}
	if o.Receipt == command.StdinName {
		return command.NoFile("--receipt ")
	}
	if o.Receipt != "" {
		if _, err := os.Lstat(o.Receipt); !errors.Is(err, fs.ErrNotExist) {
			return command.Usagef("use another file", "%s exists", o.Receipt)
		}
	}
	return nil
}

// erasing is an erasure under way.
type erasing struct {
	call    *command.Call
	o       eraseOptions
	db      *app.Store
	account string
	refs    *input.Refs // nil without --from

	asked   int64
	missing []string // the first names that the store knows nothing of
	unknown int64    // their number
	done    ledger.Erasure
	hashes  []string
	names   []erasedJSON
	left    []string
	removed []string
}

func (e *erasing) confirm(ctx context.Context) error {
	if e.o.Yes {
		return nil
	}
	n := int64(len(e.o.ReferIDs) + len(e.o.Numbers))
	if e.refs != nil {
		n = e.refs.Count
	}
	if !e.call.IO.Interactive() {
		return command.Usagef("add --yes to erase without a question", "what is erased can't be restored")
	}
	yes, err := e.call.IO.Confirm(ctx, "Erase %s from %s? This can't be undone.", command.Plural(n, "shipment"), e.db.Path)
	if err == nil && !yes {
		err = command.Usagef("", "nothing was erased")
	}
	return err
}

// run erases and reports, also to file unless that is nil.
func (e *erasing) run(ctx context.Context, file *command.AtomicFile) error {
	err := e.erase(ctx)
	if err != nil && removed(&e.done) == "" {
		return e.explain(err)
	}
	return errors.Join(e.report(file, err == nil), e.explain(err), e.outcome())
}

// erase erases everything that was asked for, and then its traces in unused space.
func (e *erasing) erase(ctx context.Context) error {
	progress := e.call.IO.Progress("Erasing")
	defer progress.Stop()
	var some []tracking.Query
	for _, r := range e.o.ReferIDs {
		some = append(some, tracking.Query{ReferID: r})
	}
	for _, n := range e.o.Numbers {
		some = append(some, tracking.Query{Number: n})
	}
	if e.refs != nil {
		for ref, err := range e.refs.All(ctx) {
			if err != nil {
				return err
			}
			q, err := e.query(ctx, ref)
			if err != nil {
				return err
			}
			if some = append(some, q); len(some) == eraseAtOnce {
				if err := e.eraseSome(ctx, some); err != nil {
					return err
				}
				some = some[:0]
			}
		}
	}
	if err := e.eraseSome(ctx, some); err != nil {
		return err
	}
	if e.unknown == e.asked {
		return nil
	}
	var err error
	if e.left, err = e.db.Eraser.Compact(ctx); err != nil || !e.o.Copies || config.IsServer(e.db.Path) {
		return err
	}
	e.removeCopies()
	return nil
}

// removeCopies removes the files that are left, except those of a copy under way, which
// may be in use. What is not removed stays in left.
func (e *erasing) removeCopies() {
	var kept []string
	for _, path := range e.left {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && !strings.Contains(filepath.Base(path), ".copying-") {
			if err = os.Remove(path); err == nil {
				e.removed = append(e.removed, path)
				continue
			}
		}
		if err != nil {
			e.call.IO.Warning("Could not remove a copy: %v", err)
		}
		kept = append(kept, path)
	}
	e.left = kept
}

// query says whether a REF of a file is a referId or a number, as show does.
func (e *erasing) query(ctx context.Context, ref input.Ref) (tracking.Query, error) {
	switch {
	case ref.ReferID != "":
		return tracking.Query{ReferID: ref.ReferID}, nil
	case ref.Number != "":
		return tracking.Query{Number: ref.Number}, nil
	}
	order := tracking.Query{ReferID: ref.Text}
	found, err := e.db.Trackings.Find(ctx, e.account, ref.Text, "")
	if err != nil || len(found) > 0 {
		return order, err
	}
	before, err := e.db.Eraser.Erased(ctx, e.account, []tracking.Query{order})
	if err != nil || !before[0].At.IsZero() {
		return order, err
	}
	return tracking.Query{Number: ref.Text}, nil
}

func (e *erasing) eraseSome(ctx context.Context, qs []tracking.Query) error {
	if len(qs) == 0 {
		return nil
	}
	e.asked += int64(len(qs))
	done, err := e.db.Eraser.Erase(ctx, e.account, qs)
	e.done.Add(done)
	if err != nil {
		return err
	}
	found, err := e.db.Eraser.Erased(ctx, e.account, qs)
	if err != nil {
		return err
	}
	missing := map[int]bool{}
	for _, i := range done.Unknown {
		missing[i] = true
		if e.unknown++; len(e.missing) < shownMissing {
			e.missing = append(e.missing, command.Quoted(qs[i].Ref()))
		}
	}
	for i, q := range qs {
		if !found[i].At.IsZero() {
			e.hashes = append(e.hashes, hex.EncodeToString(found[i].Hash))
		}
		if e.o.Names {
			e.names = append(e.names, erasedJSON{q.ReferID, q.Number, !missing[i]})
		}
	}
	return nil
}

// explain adds to an error how to go on.
func (e *erasing) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrBeingSent):
		return &command.ExitError{Code: command.Failed, Err: err, Hint: "wait for that command or stop it, then re-run this one", Next: e.call.Repeat()}
	}
	code, hint := command.CodeAndHint(err)
	if hint == "" {
		hint = "not everything is erased yet: re-run the same command to continue"
	}
	return &command.ExitError{Code: code, Err: err, Hint: hint, Next: e.call.Repeat()}
}

// report prints the receipt, and writes it to file unless that is nil.
func (e *erasing) report(file *command.AtomicFile, ended bool) error {
	if e.asked == e.unknown {
		return nil
	}
	host, _ := os.Hostname() // empty if it is not known
	d, c := &e.done, e.call
	j := receiptJSON{
		Store: e.db.Path, Account: e.account, ErasedAt: time.Now().UTC().Truncate(time.Second), Host: host, User: userName(), Version: buildinfo.Read().Version,
		Asked: e.asked, NotFound: e.unknown, Complete: ended && len(e.left) == 0,
		Rows: d.Rows, Unknown: d.Unsettled, Pending: d.Pending, Trackings: d.Trackings, Responses: d.Responses, BatchResponses: d.BatchResponses,
		Events: d.Events, Deliveries: d.Deliveries, Refused: d.Refused, Texts: d.Texts, SharedNumbers: d.Shared,
		Left: append([]string{}, e.left...), Removed: append([]string{}, e.removed...), Hashes: append([]string{}, e.hashes...), Shipments: e.names,
	}
	if d.Unsettled > 0 {
		c.IO.Warning("Of the erased rows, %s had an unknown outcome: the service may have them", command.Plural(d.Unsettled, "row"))
	}
	if d.Shared > 0 {
		c.IO.Note("Kept, since another shipment has the same number: what is known of %s; --number erases all with a number", command.Plural(d.Shared, "number"))
	}
	c.IO.Note("The service keeps its data, and so do backups of the store")
	if config.IsServer(e.db.Path) {
		c.IO.Note("The server's write-ahead log, its archive, replicas and backups hold what was erased until they are recycled")
	}
	if file != nil {
		if err := writeReceipt(file, j); err != nil {
			return errors.Join(fmt.Errorf("the receipt is on standard output, its file can't be written: %w", err), c.Out.Object(j))
		}
	}
	found := e.asked - e.unknown
	if parts := removed(d); parts != "" {
		return c.Out.Result(j, "Erased %s: %s of %s found", parts, command.Number(found), command.Plural(e.asked, "REF"))
	}
	return c.Out.Result(j, "Already erased: %s", command.Plural(found, "REF"))
}

// removed returns what was removed, such as "1 row, 2 events"; empty if nothing was.
func removed(d *ledger.Erasure) string {
	var parts []string
	for _, count := range []struct {
		n    int64
		noun string
	}{
		{d.Rows, "row"},
		{d.Trackings, "tracking"},
		{d.Responses + d.BatchResponses, "response"},
		{d.Events, "event"},
		{d.Deliveries, "delivery"},
		{d.Refused, "refused delivery"},
		{d.Texts, "text"},
	} {
		if count.n > 0 {
			parts = append(parts, command.Plural(count.n, count.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// userName returns who runs the command, empty if that is not known.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// writeReceipt writes a receipt to its file.
func writeReceipt(file *command.AtomicFile, j receiptJSON) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if _, err := file.Write(append(text, '\n')); err != nil {
		return err
	}
	return file.Commit()
}

// outcome is what is not as it was asked for.
func (e *erasing) outcome() error {
	var errs []error
	if e.unknown > 0 {
		names := strings.Join(e.missing, ", ")
		if int64(len(e.missing)) < e.unknown {
			names += " and others"
		}
		code := command.Partial
		if e.unknown == e.asked {
			code = command.NotFound
		}
		errs = append(errs, &command.ExitError{Code: code, Err: fmt.Errorf("the store holds nothing of %s", names), Hint: "check the names and --account; list created trackings with `waybill list`"})
	}
	if len(e.left) > 0 {
		hint := "remove these files, or re-run the command with --remove-copies"
		if e.o.Copies {
			hint = "remove these by hand, those of a `waybill store copy` once it has ended"
		}
		if config.IsServer(e.db.Path) {
			hint = "run these commands as the owner of the tables, or re-run this one when no other program has a transaction open"
		}
		errs = append(errs, &command.ExitError{Code: command.Partial, Err: fmt.Errorf("what was erased may be left: %s", strings.Join(e.left, "; ")), Hint: hint})
	}
	return errors.Join(errs...)
}
