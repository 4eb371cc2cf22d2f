package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func pin(name string, s webhook.Scheme) []config.Change {
	return []config.Change{
		{Key: "webhook.schemes." + name, Value: s},
		{Key: "webhook.scheme", Value: name},
		{Key: "webhook.verify", Value: "observe"},
		{Key: "webhook.secrets", Value: []string{"env:A", "file:/run/b"}},
	}
}

// odd is a scheme in which nothing has its default.
func odd() webhook.Scheme {
	return webhook.Scheme{
		Kind: "digest", Algorithm: "sha512", Key: webhook.Key{StripPrefix: "yes", Encoding: "utf8", Normalize: "nfkd"},
		Signed:     "{secret}\n: #{body} 'x' \"y\" ",
		Signature:  webhook.Signature{From: "query:a: b", Format: "kv", Separator: "|", Tag: "1", Prefix: " #=", Encoding: "base64url"},
		Timestamp:  webhook.Timestamp{From: "sig:true", Unit: "ms", Tolerance: 90 * time.Second},
		PublicURL:  "https://hooks.example/in?a=1&b={2}",
		AcceptWeak: true,
	}
}

func TestEditUserMakesTheFile(t *testing.T) {
	home := t.TempDir()
	src := config.Sources{Home: home, WorkDir: home}
	path, err := config.Set(src, config.DefaultProfile, pin("Mine: 1", odd())...)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(home, ".config", "waybill", "config.yaml"); path != want {
		t.Errorf("wrote %s; want %s", path, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder's mode %v, %v; want 0700", info.Mode(), err)
	}
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Webhook{Verify: "observe", Scheme: "Mine: 1", Secrets: []string{"env:A", "file:/run/b"}, Schemes: map[string]webhook.Scheme{"Mine: 1": odd()}}
	if !reflect.DeepEqual(c.Webhook, want) {
		t.Errorf("read back %+v\nwant %+v", c.Webhook, want)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".config*")); len(left) > 0 {
		t.Errorf("left behind %v", left)
	}
}

func TestEditUserKeepsWhatIsThere(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "real.yaml")
	link := filepath.Join(home, "link.yaml")
	const before = "# mine\nbase_url: https://a.example # where\n\nprofiles:\n  p: {rate: 2}\nwebhook:\n  verify: enforce # careful\n  schemes:\n    old: {kind: token}\n"
	if err := errors.Join(os.WriteFile(path, []byte(before), 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	src := config.Sources{Home: home, Flags: []config.Flag{flag("config", link)}}
	if _, err := config.Set(src, config.DefaultProfile, pin("new", webhook.Scheme{Kind: "hmac"})[2:3]...); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Set(src, "p", config.Change{Key: "webhook.scheme", Value: "old"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# mine\n", "base_url: https://a.example # where\n", "verify: observe # careful\n", "old: {kind: token}", "rate: 2", "scheme: old"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no more: %v, %v", info, err)
	}
	c, err := config.Load(config.Sources{Home: home, Flags: []config.Flag{flag("config", link), flag("profile", "p")}})
	if err != nil || c.Webhook.Scheme != "old" || c.Webhook.Verify != "observe" {
		t.Errorf("profile: %+v, %v", c.Webhook, err)
	}
}

func TestEditUserKeepsAFileOfComments(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "c.yaml")
	if err := os.WriteFile(path, []byte("# nothing yet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := config.Sources{Home: home, Flags: []config.Flag{flag("config", path)}}
	_, err := config.Set(src, config.DefaultProfile, config.Change{Key: "output", Value: "json"})
	got, _ := os.ReadFile(path)
	if err != nil || string(got) != "# nothing yet\noutput: json\n" {
		t.Errorf("%v:\n%s", err, got)
	}
}
