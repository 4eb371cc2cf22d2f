package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
)

const (
	configFlag  = "config"
	sameKeyFlag = "same-key" // not a setting: only a command line may set it
	configEnv   = EnvPrefix + "CONFIG"
	xdgConfig   = "XDG_CONFIG_HOME"
	xdgData     = "XDG_DATA_HOME"
	storeHelp   = "$XDG_DATA_HOME/waybill/waybill.db, else ~/.local/share/waybill/waybill.db " +
		"(the system's data folder on macOS and Windows); a profile NAME has NAME.db there"
)

// Paths holds the paths of the settings files, which need not exist.
type Paths struct {
	User          string // absolute; empty if no home folder is known
	UserExists    bool
	UserOrigin    Origin // what named it; FromDefault for the default place
	Project       string // absolute; empty if no working folder is known
	ProjectExists bool
}

// Locate returns the paths of the settings files, without reading them. The error is a [*KeyError].
func Locate(src Sources) (Paths, error) {
	var p Paths
	for _, f := range src.Flags {
		if f.Name == configFlag && len(f.Values) > 0 {
			p.User, p.UserOrigin = f.Values[len(f.Values)-1], Origin{Level: FromFlag, Name: "--" + configFlag}
		}
	}
	env := environment(src.Env, runtime.GOOS)
	switch {
	case p.User != "":
	case p.UserOrigin.Level == FromFlag:
		return p, at(wrong("must be the path of a file", ""), configFlag, p.UserOrigin)
	case env[configEnv] != "":
		p.User, p.UserOrigin = env[configEnv], Origin{Level: FromEnv, Name: configEnv}
	case filepath.IsAbs(env[xdgConfig]):
		p.User = filepath.Join(env[xdgConfig], "waybill", "config.yaml")
	case src.Home != "":
		p.User = filepath.Join(src.Home, ".config", "waybill", "config.yaml")
	}
	p.User = absolute(p.User, src.WorkDir, src.Home)
	p.UserExists = exists(p.User)
	if src.WorkDir != "" {
		p.Project = filepath.Join(src.WorkDir, ProjectFile)
		p.ProjectExists = exists(p.Project)
	}
	return p, nil
}

func exists(path string) bool {
	_, err := os.Stat(path) // an error for an empty path
	return err == nil
}

// absolute resolves a path against folder, and ~ to home. If these are empty, it leaves the path relative.
func absolute(path, folder, home string) string {
	if path == "" || path == stdinName {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) || folder == "" {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}

// storeDefault returns the default path of a profile's store; empty if neither env nor home gives a folder.
func storeDefault(goos string, env map[string]string, home, profile string) string {
	var folder string
	switch {
	case filepath.IsAbs(env[xdgData]):
		folder = env[xdgData]
	case goos == "windows" && env["LOCALAPPDATA"] != "":
		folder = env["LOCALAPPDATA"]
	case home == "":
		return ""
	case goos == "windows":
		folder = filepath.Join(home, "AppData", "Local")
	case goos == "darwin":
		folder = filepath.Join(home, "Library", "Application Support")
	default:
		folder = filepath.Join(home, ".local", "share")
	}
	if profile == DefaultProfile {
		profile = "waybill"
	}
	return filepath.Join(folder, "waybill", profile+".db")
}

// environment maps names to values, given as NAME=value. On Windows, names are case-insensitive.
func environment(list []string, goos string) map[string]string {
	env := make(map[string]string, len(list))
	for _, e := range list {
		name, value, _ := strings.Cut(e, "=")
		env[variable(name, goos)] = value
	}
	return env
}

func variable(name, goos string) string {
	if goos == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

func readSettings(path string) ([]byte, fs.FileInfo, error) {
	f, err := disk.Open(path)
	var info fs.FileInfo
	if err == nil {
		defer func() { _ = f.Close() }() // only read from: nothing is lost
		info, err = f.Stat()
	}
	if err != nil {
		fault := &KeyError{Message: Cause(err), Err: err}
		if errors.Is(err, fs.ErrPermission) {
			fault.Hint = "make it readable for you"
		}
		return nil, nil, fault
	}
	if !info.Mode().IsRegular() {
		return nil, nil, wrong("is not a regular file", "")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, &KeyError{Message: Cause(err), Err: err}
	}
	if len(data) > MaxFile {
		return nil, nil, wrong("is larger than "+strconv.Itoa(MaxFile)+" bytes", "a settings file has a few lines")
	}
	return data, info, nil
}
