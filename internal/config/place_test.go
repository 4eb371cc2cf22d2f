package config

import (
	"path/filepath"
	"testing"
)

func TestStoreDefaultBySystem(t *testing.T) {
	home := filepath.FromSlash("/h")
	for _, tt := range []struct {
		goos string
		env  map[string]string
		home string
		want string
	}{
		{"linux", nil, home, "/h/.local/share/waybill/waybill.db"},
		{"freebsd", nil, home, "/h/.local/share/waybill/waybill.db"},
		{"darwin", nil, home, "/h/Library/Application Support/waybill/waybill.db"},
		{"windows", map[string]string{"LOCALAPPDATA": filepath.FromSlash("/l")}, home, "/l/waybill/waybill.db"},
		{"windows", nil, home, "/h/AppData/Local/waybill/waybill.db"},
		{"linux", nil, "", ""},
	} {
		if got := storeDefault(tt.goos, tt.env, tt.home, DefaultProfile); got != filepath.FromSlash(tt.want) {
			t.Errorf("%s: %q, want %q", tt.goos, got, tt.want)
		}
	}
	abs, err := filepath.Abs("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		env := map[string]string{xdgData: abs, "LOCALAPPDATA": home}
		if got := storeDefault(goos, env, home, "test"); got != filepath.Join(abs, "waybill", "test.db") {
			t.Errorf("%s with XDG: %q", goos, got)
		}
	}
}

func TestVariablesOnWindowsCountWithoutCase(t *testing.T) {
	list := []string{"Waybill_Account=a", "path=b=c"}
	if env := environment(list, "windows"); env["WAYBILL_ACCOUNT"] != "a" || env["PATH"] != "b=c" {
		t.Errorf("windows: %v", env)
	}
	if env := environment(list, "linux"); env["WAYBILL_ACCOUNT"] != "" || env["Waybill_Account"] != "a" {
		t.Errorf("linux: %v", env)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"base_url", "store", "query.absent", "quiet", "rate", "sort", "from"}
	for word, want := range map[string]string{
		"baseurl": "base_url", "BASE-URL": "base_url", "stor": "store", "absnt": "query.absent", "query.absnt": "query.absent",
		"quite": "quiet", "x": "", "": "", "something": "", "rat": "rate", "form": "from",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
