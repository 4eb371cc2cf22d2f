//go:build unix

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
)

// stranger is a user that is not the one who runs the tests.
const stranger = 12345

// give gives a file to another user, or to a group, and reports whether it
// could: only root can.
func give(t *testing.T, path string, uid, gid int) bool {
	t.Helper()
	err := os.Chown(path, uid, gid)
	if errors.Is(err, os.ErrPermission) {
		t.Log("only root can give files away: nothing is shown here")
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// A configuration or a secret that others may change is not used: it decides
// where the key is sent.
func TestFilesThatOthersMayChange(t *testing.T) {
	for _, tt := range []struct {
		name         string
		mode, folder os.FileMode
		uid, gid     int // -1 for the user's own
		want, hint   string
	}{
		{"own", 0o644, 0o755, -1, -1, "", ""},
		{"all may write", 0o666, 0o755, -1, -1, "everybody can write to it", "chmod 600 "},
		{"a group may write", 0o664, 0o755, -1, stranger, "group 12345 can write to it", "chmod 600 "},
		{"of another user", 0o644, 0o755, stranger, -1, "it belongs to user 12345", "your own"},
		{"folder that all may write", 0o644, 0o777, -1, -1, "everybody can write to its folder", "folder"},
		{"folder for temporary files", 0o644, 0o777 | os.ModeSticky, -1, -1, "", ""},
		{"of another user, for temporary files", 0o644, 0o777 | os.ModeSticky, stranger, -1, "it belongs to user 12345", "your own"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			folder := filepath.Join(t.TempDir(), "folder")
			settings, secret := filepath.Join(folder, "c.yaml"), filepath.Join(folder, "key")
			p.write(settings, "base_url: https://evil.example\n", tt.mode)
			p.write(secret, "k\n", tt.mode)
			if tt.uid >= 0 || tt.gid >= 0 {
				if !give(t, settings, tt.uid, tt.gid) || !give(t, secret, tt.uid, tt.gid) {
					return
				}
			}
			if err := os.Chmod(folder, tt.folder); err != nil {
				t.Fatal(err)
			}
			_, ofSettings := config.Load(p.sources(nil, flag("config", settings)))
			_, ofKey := p.load(nil, flag("api-key-file", secret)).ReadAPIKey(nil, nil)
			_, ofSecret := p.load(nil, flag("secret-from", "file:"+secret)).WebhookSecrets()
			_, ofEdit := edit.Set(p.sources(nil, flag("config", settings)), config.DefaultProfile, edit.Change{Key: "rate", Value: "2"})
			_, ofAuthorities := config.Load(p.sources(nil, flag("ca-file", secret)))
			for what, err := range map[string]error{"settings": ofSettings, "key": ofKey, "secret": ofSecret, "edit": ofEdit, "authorities": ofAuthorities} {
				var fault *config.KeyError
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("%s: %v", what, err)
				case tt.want != "" && (!errors.As(err, &fault) || !strings.Contains(fault.Message, tt.want) || !strings.Contains(fault.Hint, tt.hint)):
					t.Errorf("%s: %+v; want %q", what, err, tt.want)
				}
			}
		})
	}
}

// A user file is not made where others could put another in its place, and its lock
// follows no link.
func TestNewUserFileIsMadeWhereOnlyItsUserWrites(t *testing.T) {
	for name, tt := range map[string]struct {
		folder os.FileMode
		link   bool
		want   string
	}{
		"own folder":                 {0o700, false, ""},
		"folder that all may write":  {0o777, false, "everybody can write to its folder"},
		"folder for temporary files": {0o777 | os.ModeSticky, false, ""},
		"lock that is a link":        {0o700, true, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			folder := t.TempDir()
			settings, elsewhere := filepath.Join(folder, "c.yaml"), filepath.Join(p.home, "elsewhere")
			if err := os.Chmod(folder, tt.folder); err != nil {
				t.Fatal(err)
			}
			if tt.link {
				if err := os.Symlink(elsewhere, settings+".lock"); err != nil {
					t.Fatal(err)
				}
			}
			_, err := edit.Set(p.sources(nil, flag("config", settings)), config.DefaultProfile, edit.Change{Key: "rate", Value: "2"})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("err = %v; want %q", err, tt.want)
			}
			if _, err := os.Lstat(elsewhere); err == nil {
				t.Error("the lock followed the link")
			}
			if _, err := os.Stat(settings); (err == nil) != (tt.want == "") {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// The project file is the folder owner's, or the user's. Another one stops no command,
// whatever it holds.
func TestProjectFileOfAnotherUser(t *testing.T) {
	for _, text := range []string{"rate: 2\n", "base_url: https://evil.example\n", "["} {
		p := newPlace(t)
		p.project(text)
		if !give(t, p.projectPath(), stranger, -1) {
			return
		}
		c := p.load(nil)
		if want := p.projectPath() + " is ignored: it belongs to user 12345"; c.Rate != 0 || !slices.Equal(c.Warnings(), []string{want}) {
			t.Errorf("rate %v, %q; want %q", c.Rate, c.Warnings(), want)
		}
	}
	p := newPlace(t)
	p.project("rate: 2\n")
	give(t, p.projectPath(), stranger, -1)
	give(t, p.work, stranger, -1)
	if c := p.load(nil); c.Rate != 2 || len(c.Warnings()) > 0 {
		t.Errorf("in a folder of the same user: rate %v, %q", c.Rate, c.Warnings())
	}
	p = newPlace(t)
	own := filepath.Join(t.TempDir(), "orders.csv")
	p.write(own, "referId,rawTrackingNumber\n", 0o600)
	if err := errors.Join(os.MkdirAll(p.work, 0o755), os.Symlink(own, p.projectPath()), os.Lchown(p.projectPath(), stranger, -1)); err != nil {
		t.Fatal(err)
	}
	if c := p.load(nil); len(c.Warnings()) != 1 {
		t.Errorf("a link of another user: %q", c.Warnings())
	}
}

// A user file is neither read nor written through a link that another user put
// where others may write. Links of the user's own are followed.
func TestUserFileByALinkOfAnotherUser(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky} {
		p := newPlace(t)
		own, folder := t.TempDir(), filepath.Join(t.TempDir(), "shared")
		p.write(filepath.Join(own, "c.yaml"), "rate: 1\n", 0o600)
		link, dangling := filepath.Join(folder, "c.yaml"), filepath.Join(folder, "new.yaml")
		if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, mode), os.Symlink(filepath.Join(own, "c.yaml"), link),
			os.Symlink(filepath.Join(own, "new.yaml"), dangling)); err != nil {
			t.Fatal(err)
		}
		p.load(nil, flag("config", link))
		for _, path := range []string{link, dangling} {
			if err := os.Lchown(path, stranger, stranger); errors.Is(err, os.ErrPermission) {
				t.Log("only root can give links away: nothing is shown here")
				return
			} else if err != nil {
				t.Fatal(err)
			}
			_, ofLoad := config.Load(p.sources(nil, flag("config", path)))
			_, ofEdit := edit.Set(p.sources(nil, flag("config", path)), config.DefaultProfile, edit.Change{Key: "rate", Value: "2"})
			for what, err := range map[string]error{"load": ofLoad, "edit": ofEdit} {
				var fault *config.KeyError
				if !errors.As(err, &fault) || !strings.Contains(fault.Message, "belongs to user 12345") || !strings.Contains(fault.Hint, "your own") {
					t.Errorf("mode %v: %s of %s: %+v", mode, what, path, err)
				}
			}
			if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("mode %v: the link is gone: %v", mode, err)
			}
		}
	}
}
