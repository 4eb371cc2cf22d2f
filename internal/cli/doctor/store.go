package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
)

// Free bytes below which a disk gets a warning, or a problem.
const (
	littleSpace = 512 << 20
	noSpace     = 16 << 20
)

const (
	answerLimit = 2 * time.Second // of all listeners and targets
	maxChecks   = 16              // concurrent checks
)

func (x *examination) store(ctx context.Context) []finding {
	place, isServer, err := x.call.StorePlace()
	if err != nil {
		return []finding{found(storeWithoutPlace, "%v", err).hinted(command.HintOf(err))}
	}
	if isServer && x.offline {
		return []finding{found(storeNotTried, "%s: --offline", place)}
	}
	var all []finding
	if !isServer {
		var exists bool
		if exists, all = x.storeFile(place); !exists {
			return all
		}
	}
	db, err := x.call.StoreAt(ctx, x.call.Config.Store, store.Options{ReadOnly: true})
	if err != nil {
		return append(all, unopened(place, err))
	}
	defer func() { _ = db.Close() }() // only read from
	return append(all, x.openStore(ctx, place, db)...)
}

func (x *examination) storeFile(path string) (exists bool, all []finding) {
	_, err := os.Stat(path)
	exists = !errors.Is(err, fs.ErrNotExist)
	folder := filepath.Dir(path)
	for !exists { // find the nearest existing folder
		if _, err := os.Stat(folder); err == nil || folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	switch {
	case !exists && !x.writable(folder):
		f := found(storeUnusable, "%s can't be created: %s is not writable", path, folder)
		all = append(all, f.hinted("make the folder writable, or use another store with --store"))
	case !exists:
		all = append(all, unopened(path, store.ErrNotThere))
	case !x.writable(path) || !x.writable(folder):
		all = append(all, found(storeReadOnly, "%s can only be read", path))
	}
	if who, chmod := config.Exposed(path); who != "" {
		all = append(all, exposed(storeReadable, path, who, chmod).hinted("restrict it, unless you share it on purpose"))
	}
	if free, known := x.free(folder); known {
		all = append(all, spaceFinding(free))
	}
	return exists, all
}

func spaceFinding(free int64) finding {
	text := fmt.Sprintf("%.1f GB free on the disk of the store", float64(free)/1e9)
	switch {
	case free < noSpace:
		return found(spaceGone, "%s", text)
	case free < littleSpace:
		return found(spaceLow, "%s", text)
	}
	return found(spaceEnough, "%s", text)
}

func unopened(place string, err error) finding {
	if errors.Is(err, store.ErrNotThere) {
		return found(storeMissing, "%s does not exist yet; `waybill create` and `waybill listen` create it", place)
	}
	return found(storeUnusable, "%v", err).hinted(command.HintOf(err))
}

func (x *examination) openStore(ctx context.Context, place string, db *store.DB) []finding {
	settings, err := db.Settings(ctx)
	if err != nil {
		return []finding{unopened(place, err)}
	}
	all := settingFindings(fmt.Sprintf("%s (%s)", place, x.call.Config.Origin("store")), settings)
	if account, err := db.Account(ctx); err != nil {
		return []finding{unopened(place, err)}
	} else if err := x.call.CheckAccount(place, account); err != nil {
		all = append(all, unopened(place, err))
	}
	all = append(all, x.soundness(ctx, db))
	all = append(all, x.users(ctx, db)...)
	return append(all, x.responses(ctx, db)...)
}

func (x *examination) responses(ctx context.Context, db *store.DB) []finding {
	proofs, err := db.Proofs(ctx)
	if err != nil {
		return []finding{unopened(x.call.Config.Store, err)}
	}
	var all []finding
	for _, p := range proofs {
		kind, means := responsesTaken, "the rows exist"
		switch p.State {
		case ledger.Pending:
			kind, means = responsesNotTaken, "no row exists"
		case ledger.Unknown:
			kind, means = responsesDoubtful, "rows may exist"
		}
		all = append(all,
			found(kind, "%s: %s (proven %s, run %d)", p.Shape, means, p.Proven.Local().Format(time.DateOnly), p.Run))
	}
	if len(all) == 0 {
		all = append(all, found(responsesUnproven, "nothing is proven yet: the next create sends one row first"))
	}
	return all
}

func settingFindings(name string, settings []store.Setting) []finding {
	var all []finding
	for _, s := range settings {
		if s.Name == "Schema" {
			name += ", schema " + s.Value
		}
		if s.Warning != "" {
			all = append(all, found(storeSetting, "%s is %s: %s", s.Name, s.Value, s.Warning))
		}
	}
	return append([]finding{found(storeFound, "%s", name)}, all...)
}

func (x *examination) soundness(ctx context.Context, db *store.DB) finding {
	reading, cancel := context.WithTimeout(ctx, x.read)
	defer cancel()
	damage, err := db.Problems(reading)
	switch {
	case reading.Err() != nil:
		return found(storeNotRead, "it takes longer than %s to read", x.read)
	case errors.Is(err, store.ErrCorrupt):
		return found(storeDamaged, "%v", err).hinted(command.HintOf(err))
	case err != nil:
		return found(storeUnusable, "%v", err).hinted(command.HintOf(err))
	case len(damage) > 0:
		return found(storeDamaged, "%s: %s", command.Plural(len(damage), "problem"),
			damage[0].What).hinted(command.HintOf(db.Damage(damage)))
	}
	return found(storeSound, "the database and its tables are sound")
}

func (x *examination) users(ctx context.Context, db *store.DB) []finding {
	running, err := db.RunningListeners(ctx)
	sinks, errSinks := db.Sinks(ctx)
	if err = cmp.Or(err, errSinks); err != nil {
		return []finding{found(storeUnusable, "%v", err).hinted(command.HintOf(err))}
	}
	if len(running) == 0 && len(sinks) == 0 {
		return []finding{found(listenerNone, "no listener runs on this store")}
	}
	checks := make([]func(context.Context) []finding, 0, len(running)+len(sinks))
	for _, l := range running {
		checks = append(checks, func(ctx context.Context) []finding { return []finding{x.listener(ctx, l)} })
	}
	for _, k := range sinks {
		if k.Name == forward.SinkName {
			checks = append(checks, func(ctx context.Context) []finding { return x.target(ctx, k, running) })
		}
	}
	return atOnce(ctx, checks)
}

func atOnce(ctx context.Context, checks []func(context.Context) []finding) []finding {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errors.New("no answer in time"))
	defer cancel()
	results := make([][]finding, len(checks))
	var group errgroup.Group
	group.SetLimit(maxChecks)
	for i, check := range checks {
		group.Go(func() error {
			results[i] = check(ctx)
			return nil
		})
	}
	_ = group.Wait() // checks return no errors
	return slices.Concat(results...)
}

func (x *examination) listener(ctx context.Context, l inbox.Listener) finding {
	url := forward.ShowAddress(l.URL)
	switch {
	case !app.IsThisComputer(l.Host):
		host, _, _ := strings.Cut(l.Host, "/")
		return found(listenerElsewhere, "%s on %s", url, host)
	case x.offline:
		return found(listenerElsewhere, "%s: --offline", url).hinted("run this command without --offline")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, l.URL, nil)
	if err == nil {
		var res *http.Response
		if res, err = client.Do(req); err == nil {
			_ = res.Body.Close() // a response to HEAD has no body
			return found(listenerAnswers, "%s answers %d", url, res.StatusCode)
		}
	}
	return found(listenerSilent, "%s does not answer: %v", url, errors.Unwrap(err))
}

func (x *examination) target(ctx context.Context, k inbox.Sink, running []inbox.Listener) []finding {
	u, err := forward.ParseURL(k.URL)
	if err != nil {
		return []finding{found(targetNotTried, "%s: %v", forward.ShowAddress(k.URL), err)}
	}
	t := forward.Target{URL: u}
	name := t.Show()
	if x.bundle != "" {
		name = u.Scheme + "://" + u.Host // a path may be private
	}
	others, here := events.OtherComputers(running, k.ID)
	used := here || len(others) > 0
	var all []finding
	if used && t.Unencrypted() {
		all = append(all, found(targetUnencrypted, "deliveries go to %s unencrypted", name))
	}
	switch {
	case t.IsLoopback() && !here && len(others) > 0:
		return append(all, found(targetNotTried, "%s is on %s", name, strings.Join(others, ", ")))
	case x.offline:
		return append(all, found(targetNotTried, "%s: --offline", name))
	}
	client, err := events.NewForwardClient(x.call.Session, events.TargetPolicy{})
	if err == nil {
		defer client.Close()
		err = client.Check(ctx, u)
	}
	waiting := ""
	if k.Waiting > 0 {
		waiting = "; " + command.Plural(k.Waiting, "delivery") + " waiting"
	}
	switch {
	case errors.Is(err, forward.ErrForbidden):
		return append(all, found(targetNotTried, "%s: %v", name, err))
	case err != nil && used:
		return append(all, found(targetUnreachable, "%s: %v%s", name, err, waiting))
	case err != nil:
		return append(all, found(targetUnused, "%s: %v%s", name, err, waiting))
	}
	return append(all, found(targetReachable, "%s accepts connections%s", name, waiting))
}
