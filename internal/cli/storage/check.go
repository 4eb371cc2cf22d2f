package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
)

type checkJSON struct {
	Store     string            `json:"store"`
	Sound     bool              `json:"sound"`
	Problems  []store.Problem   `json:"problems"`
	Settings  []store.Setting   `json:"settings"`
	Bytes     int64             `json:"bytes"`     // of all tables
	FreeBytes *int64            `json:"freeBytes"` // in the file, for reuse; null of a PostgreSQL store
	Tables    []store.TableSize `json:"tables"`
	Processes []processJSON     `json:"processes"`
}

// processJSON is a process that has the store open to write, or died and left work.
type processJSON struct {
	Alive      bool       `json:"alive"`
	Host       string     `json:"host,omitempty"`
	PID        int64      `json:"pid,omitempty"`
	Command    string     `json:"command,omitempty"`
	Version    string     `json:"version,omitempty"`
	Since      *time.Time `json:"since"`
	Listening  []string   `json:"listening"`
	Run        string     `json:"run,omitempty"` // whose input it reads
	Batches    int64      `json:"batches"`       // that it is sending
	Rows       int64      `json:"rows"`          // in these batches
	Deliveries int64      `json:"deliveries"`    // that it is forwarding
}

func newCheck(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the store and show who uses it",
		Long: `check reads the whole store and reports whether the database and its tables are
sound, their sizes, which processes have the store open to write, what they do, and
what processes that ended left unfinished, and on a PostgreSQL server which other
programs hold locks on its tables. It changes nothing, and others may use the store
meanwhile. A damaged store is exit status 10.`,
		Example: command.Example("waybill store check", "waybill store check -o json --jq .sound"),
		RunE:    f.RunE(runCheck),
	}
}

func runCheck(ctx context.Context, c *command.Call, _ []string) error {
	place, found, err := inspect(ctx, c)
	if err != nil && !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	j := newCheckJSON(place, found)
	if err != nil { // too damaged to be read
		j.Sound, j.Problems = false, []store.Problem{{What: err.Error()}}
	}
	err = errors.Join(printCheck(c, j), err)
	noteLeftWork(c, found.Processes)
	for _, s := range found.Settings {
		if s.Warning != "" {
			c.IO.Warning("%s is %s: %s", s.Name, s.Value, s.Warning)
		}
	}
	return errors.Join(err, found.Damage)
}

func inspect(ctx context.Context, c *command.Call) (string, store.Inspection, error) {
	db, err := existing(ctx, c)
	if err != nil {
		return c.Config.Store, store.Inspection{}, err
	}
	progress := c.IO.Progress("Checking")
	defer progress.Stop()
	found, err := db.DB.Inspect(ctx)
	return db.Path, found, err
}

func newCheckJSON(path string, found store.Inspection) checkJSON {
	j := checkJSON{
		Store: path, Sound: len(found.Problems) == 0, FreeBytes: found.FreeBytes,
		Problems: append([]store.Problem{}, found.Problems...), Settings: append([]store.Setting{}, found.Settings...),
		Tables: append([]store.TableSize{}, found.Tables...), Processes: []processJSON{},
	}
	for _, t := range found.Tables {
		j.Bytes += t.Bytes
	}
	for _, p := range found.Processes {
		one := processJSON{
			Alive: p.Alive, Host: p.Host, PID: p.PID, Command: p.Command, Version: p.Version, Since: view.TimeOrNull(p.Started),
			Listening: append([]string{}, p.URLs...), Batches: p.Batches, Rows: p.Rows, Deliveries: p.Deliveries,
		}
		if p.Staging > 0 {
			one.Run = command.RunName(p.Staging)
		}
		j.Processes = append(j.Processes, one)
	}
	return j
}

func printCheck(c *command.Call, j checkJSON) error {
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	result := render.Field{Name: "Result", Value: "sound"}
	if !j.Sound {
		result = render.Field{Name: "Result", Value: "damaged", Style: term.Bad}
	}
	fields := []render.Field{{Name: "Store", Value: j.Store}, result, {Name: "Size", Value: size(j.Bytes)}}
	if j.FreeBytes != nil {
		fields = append(fields, render.Field{Name: "Free", Value: size(*j.FreeBytes) + ", for reuse"})
	}
	for _, s := range j.Settings {
		fields = append(fields, render.Field{Name: s.Name, Value: s.Value})
	}
	if err := c.Out.Fields(fields); err != nil || c.Out.IsCSV() {
		return err
	}
	err := c.Out.Line("")
	rows := c.Out.Table(render.Column{Name: "TABLE"}, render.Column{Name: "ROWS", Right: true},
		render.Column{Name: "SIZE", Right: true})
	for _, t := range j.Tables {
		if t.Rows > 0 {
			err = errors.Join(err, rows.Row(t.Name, command.Number(t.Rows), size(t.Bytes)))
		}
	}
	err = errors.Join(err, rows.Flush())
	if len(j.Processes) > 0 {
		err = errors.Join(err, c.Out.Line(""), printProcesses(c, j.Processes))
	}
	return err
}

func printProcesses(c *command.Call, all []processJSON) (err error) {
	rows := c.Out.Table(render.Column{Name: "PROCESS"}, render.Column{Name: "STATE"}, render.Column{Name: "SINCE"},
		render.Column{Name: "WORK", Flex: true})
	for _, p := range all {
		state, since := "ended", ""
		if p.Alive {
			state = "running"
		}
		if p.Since != nil {
			since = render.LocalTime(*p.Since)
		}
		err = errors.Join(err, rows.Row(p.name(), state, since, p.work()))
	}
	return errors.Join(err, rows.Flush())
}

func (p processJSON) name() string {
	words := []string{cmp.Or(p.Command, "waybill")}
	if p.PID != 0 {
		words = append(words, "pid "+strconv.FormatInt(p.PID, 10))
	}
	if p.Host != "" {
		words = append(words, "on "+p.Host)
	}
	return strings.Join(words, " ")
}

func (p processJSON) work() string {
	var all []string
	if len(p.Listening) > 0 {
		all = append(all, "listening at "+strings.Join(p.Listening, ", "))
	}
	if p.Run != "" {
		all = append(all, "reading the input of run "+p.Run)
	}
	if p.Batches > 0 {
		all = append(all,
			fmt.Sprintf("sending %s in %s", command.Plural(p.Rows, "row"), command.Plural(p.Batches, "request")))
	}
	if p.Deliveries > 0 {
		all = append(all, "forwarding "+command.Plural(p.Deliveries, "delivery"))
	}
	return strings.Join(all, "; ")
}

func noteLeftWork(c *command.Call, all []store.Process) {
	var rows, deliveries int64
	staged := false
	for _, p := range all {
		if !p.Alive {
			rows += p.Rows
			deliveries += p.Deliveries
			staged = staged || p.Staging > 0
		}
	}
	if rows > 0 {
		c.IO.Note("A process ended while it was sending %s; `waybill runs list` lists the runs, "+
			"`waybill runs resume ID` continues them", command.Plural(rows, "row"))
	}
	if deliveries > 0 {
		c.IO.Note("A process ended while it was forwarding %s; `waybill listen` with the same --forward-to sends them",
			command.Plural(deliveries, "delivery"))
	}
	if staged {
		c.IO.Note("A process ended while it was reading its input; the next `waybill create` removes what it had read")
	}
}
