package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"modernc.org/sqlite"

	"github.com/waybill-cli/waybill/internal/tracking"
)

const (
	maxReaders  = 8
	idleReaders = 2
	readerCache = 1000 // KiB each
)

const writerCache = 4000 // KiB

func readerSettings() []string {
	return []string{"busy_timeout(5000)", "query_only(1)", fmt.Sprintf("cache_size(-%d)", readerCache)}
}

// connect returns a pool of connections to path with those settings. It opens none yet.
func connect(path string, settings ...string) (*sql.DB, error) {
	name := uri(path, "mode=rw", settings...)
	return connectBy(func() (string, error) { return name, nil })
}

// connectBy is [connect] to what name returns for each connection.
func connectBy(name func() (string, error)) (*sql.DB, error) {
	d, err := sqliteDriver()
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(dialer{d, name}), nil
}

type dialer struct {
	driver *sqlite.Driver
	name   func() (string, error)
}

// Connect is for [sql.OpenDB].
func (d dialer) Connect(context.Context) (driver.Conn, error) {
	name, err := d.name()
	if err != nil {
		return nil, err
	}
	return d.driver.Open(name)
}

// Driver is for [sql.OpenDB].
func (d dialer) Driver() driver.Driver { return d.driver }

// sqliteDriver has our functions. No index or view may use these: other programs could not read the file.
var sqliteDriver = sync.OnceValues(func() (*sqlite.Driver, error) {
	d := &sqlite.Driver{}
	return d, d.RegisterDeterministicScalarFunction("fold_number", 1, foldNumber)
})

func foldNumber(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	number, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("fold_number: %T is no text", args[0])
	}
	return tracking.FoldNumber(number), nil
}

// uri returns the name by which SQLite opens path. It makes no file.
func uri(path, mode string, settings ...string) string {
	path = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return "file://" + path + "?" + mode + "&_pragma=" + strings.Join(settings, "&_pragma=")
}
