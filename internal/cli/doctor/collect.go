package doctor

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/observed"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/store"
)

// entry is one file of a bundle.
type entry struct {
	name  string
	about string // what it is, for whoever decides whether to send it
	value any
	data  []byte // value as JSON, without secrets
}

const readme = `This file was made by "waybill support bundle" for those who help with waybill.

doctor.json    result of "waybill doctor": addresses of the service, of listeners and
               targets, paths of files
settings.json  which settings are set, and where; texts are masked as ***
version.json   version of waybill and of the system
store.json     sizes of the store's tables, settings of its database, and how many
               requests and deliveries failed with which status, and when
observed.json  result of "waybill observed export": statuses, kinds of events, fields and
               headers that were met of the service; samples are masked

It contains no keys, no secrets, no referIds, no tracking numbers, and nothing that
was sent or received. The home folder is written as ~.
`

// collect returns what goes into a bundle.
func (x *examination) collect(ctx context.Context) ([]entry, error) {
	findings, err := x.run(ctx)
	if err != nil {
		return nil, err
	}
	all := []entry{
		{name: "doctor.json", about: "result of waybill doctor", value: findings},
		{name: "version.json", about: "version and system", value: buildinfo.Read()},
	}
	if x.broken == nil {
		summary := x.storeSummary(ctx)
		all = append(all,
			entry{name: "settings.json", about: "which settings are set and where, texts masked", value: settingsOf(x.call.Config)},
			entry{name: "store.json", about: "sizes of the store, classes of failures", value: summary})
		if summary.observed != nil {
			all = append(all, entry{name: "observed.json", about: "result of waybill observed export: what was met of the service", value: summary.observed})
		}
	}
	secrets := x.call.Redactor()
	for i := range all {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(all[i].value); err != nil {
			return nil, err
		}
		all[i].data = x.withoutHome(secrets, b.Bytes())
	}
	return append([]entry{{name: "README.txt", about: "what the other files are", data: []byte(readme)}}, all...), nil
}

// withoutHome removes secrets and the home folder, whose name is often the user's.
func (x *examination) withoutHome(secrets *redact.Redactor, b []byte) []byte {
	b = secrets.Bytes(b)
	quoted, err := json.Marshal(x.sources.Home)
	if home := bytes.Trim(quoted, `"`); err == nil && len(home) > 1 {
		b = bytes.ReplaceAll(b, home, []byte("~"))
	}
	return b
}

func zipEntries(w io.Writer, entries []entry) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		part, err := z.CreateHeader(&zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: time.Now()})
		if err == nil {
			_, err = part.Write(e.data)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// settingSummary is a setting that is set. Only values that can't identify anything
// are shown.
type settingSummary struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func settingsOf(c config.Config) []settingSummary {
	all := []settingSummary{}
	for _, e := range c.List() {
		if e.Origin.Level == config.FromDefault {
			continue
		}
		s := settingOf(e.Key)
		one := settingSummary{Key: s.Key, Value: redact.Mask, Origin: e.Origin.String()}
		switch s.Kind {
		case config.KindBool, config.KindChoice, config.KindInteger, config.KindIntegers, config.KindNumber, config.KindDuration, config.KindSize:
			one.Value = e.Text
		}
		if n := len(all); n > 0 && all[n-1] == one {
			continue // another name of the same map
		}
		all = append(all, one)
	}
	return all
}

// settingOf returns the setting of an entry's key, which may be a name in a map.
func settingOf(key string) config.Setting {
	for _, s := range config.Settings() {
		if s.Key == key || strings.HasPrefix(key, s.Key+".") {
			return s
		}
	}
	return config.Setting{Key: key}
}

// storeSummary is what a bundle says of the store.
type storeSummary struct {
	Error     string            `json:"error,omitempty"`
	Problems  []string          `json:"problems"`
	Settings  []databaseSetting `json:"settings"`
	Tables    []tableSummary    `json:"tables"`
	Processes []processSummary  `json:"processes"`
	Failures  []failureSummary  `json:"failures"`

	observed any // see [observed.Export]; nil without a store
}

type databaseSetting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Warning string `json:"warning,omitempty"`
}

type tableSummary struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

type processSummary struct {
	Alive      bool   `json:"alive"`
	Command    string `json:"command"`
	Version    string `json:"version"`
	Rows       int64  `json:"rows"`
	Deliveries int64  `json:"deliveries"`
}

type failureSummary struct {
	Of     string     `json:"of"`
	State  string     `json:"state"`
	Status int        `json:"httpStatus"`
	Count  int64      `json:"count"`
	Last   *time.Time `json:"last"`
}

// storeSummary reads the store as far as the time allows.
func (x *examination) storeSummary(ctx context.Context) storeSummary {
	s := storeSummary{Problems: []string{}, Settings: []databaseSetting{}, Tables: []tableSummary{}, Processes: []processSummary{}, Failures: []failureSummary{}}
	_, isServer, err := x.call.StorePlace()
	if err == nil && isServer && x.offline {
		err = errors.New("--offline")
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, x.read)
		defer cancel()
		err = x.readStore(ctx, &s)
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s
}

func (x *examination) readStore(ctx context.Context, s *storeSummary) error {
	db, err := x.call.StoreAt(ctx, x.call.Config.Store, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it was only read from
	failures, err := db.Failures(ctx)
	if err != nil {
		return err
	}
	for _, f := range failures {
		one := failureSummary{Of: f.Of, State: f.State, Status: f.Status, Count: f.Count}
		if !f.Last.IsZero() {
			one.Last = &f.Last
		}
		s.Failures = append(s.Failures, one)
	}
	account, _ := config.SameLoopback(x.call.Config.Account)
	if s.observed, err = observed.Export(ctx, db, account); err != nil {
		return err
	}
	found, err := db.Inspect(ctx)
	for _, p := range found.Problems {
		s.Problems = append(s.Problems, p.What)
	}
	for _, one := range found.Settings {
		s.Settings = append(s.Settings, databaseSetting(one))
	}
	for _, t := range found.Tables {
		s.Tables = append(s.Tables, tableSummary{t.Name, t.Rows, t.Bytes})
	}
	for _, p := range found.Processes {
		s.Processes = append(s.Processes, processSummary{p.Alive, p.Command, p.Version, p.Rows, p.Deliveries})
	}
	return err
}
