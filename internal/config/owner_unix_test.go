//go:build unix

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
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
			_, ofEdit := config.Set(p.sources(nil, flag("config", settings)), config.DefaultProfile, config.Change{Key: "rate", Value: "2"})
			for what, err := range map[string]error{"settings": ofSettings, "key": ofKey, "secret": ofSecret, "edit": ofEdit} {
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

// The project file is the folder owner's, or the user's.
func TestProjectFileOfAnotherUser(t *testing.T) {
	p := newPlace(t)
	p.project("rate: 2\n")
	if !give(t, p.projectPath(), stranger, -1) {
		return
	}
	if err := p.refused(nil); !strings.Contains(err.Message, "it belongs to user 12345") || err.Hint == "" {
		t.Errorf("%+v", err)
	}
	give(t, p.work, stranger, -1)
	p.load(nil)
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
			_, ofEdit := config.Set(p.sources(nil, flag("config", path)), config.DefaultProfile, config.Change{Key: "rate", Value: "2"})
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
