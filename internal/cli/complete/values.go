package complete

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const recentEvents = 200

// shortestIDPrefix is the length from which digits may be the start of an eventId rather than an event's number.
const shortestIDPrefix = 4

// stored returns values from the store, or none if there is no store.
func stored(values func(*line, *app.Store) []value) func(*line) []value {
	return func(l *line) []value {
		if db := l.open(); db != nil {
			return values(l, db)
		}
		return nil
	}
}

var runs = stored(func(l *line, db *app.Store) (all []value) {
	for run, err := range db.History.Runs(l.ctx, maxValues) {
		if err != nil {
			break
		}
		about := strings.Join(run.Plan.Files, " ") + " " + render.LocalMinute(run.Created)
		all = append(all, value{command.RunName(run.ID), about})
	}
	return all
})

var statuses = stored(func(l *line, db *app.Store) (all []value) {
	counts, _ := db.Statistics.SeenStatuses(l.ctx)
	names := view.NewStatusFormatter(l.s.Config.OwnStatuses)
	sums, labels := map[string]int64{}, map[string]string{}
	for _, c := range counts {
		word, own := names.Custom(c.Status, c.StatusLabel, c.StatusTrack)
		if !own {
			word = strings.ToLower(tracking.FoldStatus(cmp.Or(c.StatusTrack, c.StatusLabel, view.Unquote(c.Status))))
		}
		if word == "" || c.Phase != ledger.Processed {
			continue
		}
		sums[word] += c.Trackings
		labels[word] = cmp.Or(labels[word], names.Status(c.Status, c.StatusLabel, c.StatusTrack))
	}
	mostFirst := func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) }
	for _, word := range slices.SortedFunc(maps.Keys(sums), mostFirst) {
		all = append(all, value{word, labels[word] + ", " + command.Plural(sums[word], "tracking")})
	}
	return all
})

func wantedStatuses(l *line) []value { return append(statuses(l), words(view.StatusWords())...) }

var carriers = stored(func(l *line, db *app.Store) []value {
	codes, _ := db.Statistics.SeenCarriers(l.ctx)
	return words(codes)
})

var account = stored(func(l *line, db *app.Store) []value {
	name, _ := db.Accounts.Account(l.ctx)
	return words([]string{name})
})

func profiles(l *line) []value {
	user, err := config.ReadUserFile(l.app.Sources(command.FlagsOf(l.cmd)))
	if err != nil {
		return nil
	}
	return each(user.Profiles(), func(name string) value { return value{name, user.Text(name, "base_url")} })
}

func settingKeys(l *line) []value {
	settings := config.Settings()
	if len(l.args) == 0 {
		return each(settings, func(s config.Setting) value { return value{s.Key, s.Help} })
	}
	i := slices.IndexFunc(settings, func(s config.Setting) bool { return s.Key == l.args[0] })
	switch {
	case len(l.args) > 1 || i < 0 || l.cmd.Name() != "set":
		return nil
	case settings[i].Key == "profile":
		return profiles(l)
	case settings[i].Kind == config.KindBool:
		return words([]string{"true", "false"})
	}
	return words(settings[i].Choices)
}

func schemes(l *line) (all []value) {
	if s := l.session(); s != nil {
		names := slices.Sorted(maps.Keys(s.Config.Webhook.Schemes))
		all = each(names, func(name string) value { return value{name, "configured"} })
	}
	return append(all, each(webhook.Presets(), func(p webhook.Preset) value { return value{p.Name, p.About} })...)
}

func columns(l *line) []value { return words(command.ColumnNamesNow(l.cmd)) }

func faults(*line) []value {
	return each(sandbox.Faults(), func(name string) value { return value{text: name + "="} })
}

func eventKinds(l *line) []value {
	kinds := []string{webhook.KindDelivered}
	for _, e := range findEvents(l, inbox.Query{Newest: true, Limit: recentEvents}) {
		if !slices.Contains(kinds, e.Kind) {
			kinds = append(kinds, e.Kind)
		}
	}
	return words(kinds)
}

func places(l *line) (all []value) {
	name, ok := strings.CutPrefix(l.word, "file:")
	if !ok {
		return []value{{"env:", ""}, {"file:", ""}}
	}
	folder, _ := filepath.Split(name)
	entries, _ := os.ReadDir(cmp.Or(folder, "."))
	for _, e := range entries {
		text := "file:" + folder + e.Name()
		if e.IsDir() {
			text += "/"
		}
		all = append(all, value{text: text})
	}
	return all
}

func findEvents(l *line, q inbox.Query) (all []inbox.Event) {
	db := l.open()
	if db == nil {
		return nil
	}
	for e, err := range db.Inbox.Events(l.ctx, q) {
		if err != nil {
			break
		}
		all = append(all, e)
	}
	return all
}

func conditions(l *line) []value {
	if strings.HasPrefix(l.word, "event=") {
		return prefixed("event=", eventKinds(l))
	}
	if strings.HasPrefix(l.word, "status=") {
		return prefixed("status=", statuses(l))
	}
	return []value{
		{"processed", "the service has processed it"},
		{"status=", "it has this status"},
		{"event=", "a verified event of this kind came"},
		{"change", "its status or its latest event changed"},
	}
}

func filters(l *line) (all []value) {
	before := l.word[:strings.LastIndexByte(l.word, ',')+1]
	part := l.word[len(before):]
	switch {
	case strings.HasPrefix(part, "event="):
		all = prefixed("event=", eventKinds(l))
	case strings.HasPrefix(part, "status="):
		all = prefixed("status=", statuses(l))
	default:
		all = words([]string{"event=", "status=", "statusTrack=", "number="})
	}
	return prefixed(before, all)
}

func prefixed(prefix string, all []value) []value {
	for i := range all {
		all[i].text = prefix + all[i].text
	}
	return all
}

func headers(l *line) (all []value) {
	field, _, ok := strings.Cut(l.word, "=")
	if !ok {
		all = each(config.MapFields(), func(field string) value { return value{text: field + "="} })
		if s := l.session(); s != nil {
			all = append(all, prefixed("@", words(slices.Sorted(maps.Keys(s.Config.Maps))))...)
		}
		return all
	}
	for _, name := range l.files() {
		all = append(all, prefixed(field+"=", words(header(l, name)))...)
	}
	return all
}

func (l *line) files() []string {
	if from := l.cmd.Flag("from"); from != nil && from.Changed {
		return []string{from.Value.String()}
	}
	return l.args
}

func sheets(l *line) (all []value) {
	for _, name := range l.files() {
		f, size := openInput(name)
		if f == nil {
			continue
		}
		for _, sheet := range intake.Sheets(f, size) {
			about := ""
			if sheet.Hidden {
				about = "hidden"
			}
			all = append(all, value{sheet.Name, about})
		}
		_ = f.Close() // only read from
	}
	return all
}

// openInput opens a file that can be read quickly, and returns its size; nil for other files.
func openInput(name string) (f *os.File, size int64) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0 // reading a pipe would consume its rows
	}
	if strings.EqualFold(filepath.Ext(name), ".xlsx") && info.Size() > maxWorkbook {
		return nil, 0 // reading its header takes unpacking all of it
	}
	if f, err = os.Open(name); err != nil {
		return nil, 0
	}
	return f, info.Size()
}

func header(l *line, name string) []string {
	f, _ := openInput(name)
	if f == nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read from
	o := intake.Options{}
	if s := l.session(); s != nil {
		o.Encoding = s.Config.Encoding
	}
	names, _ := intake.Header(name, f, o)
	return names
}

// events returns the latest events by number, and events whose eventId begins with the word.
func events(l *line) []value {
	about := func(e inbox.Event) string {
		return fmt.Sprintf("%s %s %s", e.Kind, e.TrackingNumber, render.LocalMinute(e.ReceivedAt))
	}
	latest := findEvents(l, inbox.Query{Newest: true, Limit: maxValues})
	all := each(latest, func(e inbox.Event) value { return value{e.ID(), about(e)} })
	if l.word == "" || l.word[0] >= '0' && l.word[0] <= '9' && len(l.word) < shortestIDPrefix {
		return all
	}
	matching := findEvents(l, inbox.Query{EventIDPrefix: l.word, Limit: maxValues})
	return append(all, each(matching, func(e inbox.Event) value { return value{e.EventID, about(e)} })...)
}

// references returns the referIds that begin with the word. Numbers are not completed.
func references(l *line) []value {
	by := l.cmd.Flag("by")
	db := l.open()
	if db == nil || l.flag == nil && by != nil && by.Value.String() == "tracking-number" {
		return nil
	}
	refs, _ := db.Statistics.References(l.ctx, l.word, maxValues+len(l.args))
	refs = slices.DeleteFunc(refs, func(ref string) bool { return slices.Contains(l.args, ref) })
	return words(refs)
}
