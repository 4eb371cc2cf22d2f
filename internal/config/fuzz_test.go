package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

// Whatever stands in a user file is taken whole or refused by name, and a key
// in it never shows.
func FuzzUserFile(f *testing.F) {
	for _, s := range []string{
		"", "output: json\n", "api_key: sk_hush\n", "profiles: {a: {api_key: sk_hush}}\nprofile: a\n",
		"webhook:\n  secret: sk_hush\n  schemes: {M: {kind: hmac, signature: {from: \"header:X\"}}}\n",
		"query: {absent: [{status: 200, message: x, path: /a, equals: null}]}\n", "a: &a [*a]\n", "carriers: {A: b, ? c : d}\n",
		"map: {referId: x}\ntimeout: 1h30m\nrate: 1.5\nassume_unprocessed: [429]\n", "--- \n...\n---\n", "\xff\xfea\x00", "<<: {a: b}\n",
		"base_url: https://h:443/x/\ninsecure_http: true\nstore: ~/x\n", "statuses: {1: a, 0x1: b, ~: c}\n",
	} {
		f.Add([]byte(s))
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(folder, "config.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		src := config.Sources{Flags: []config.Flag{flag("config", path)}, Home: folder}
		c, err := config.Load(src)
		if err != nil {
			var key *config.KeyError
			if !errors.As(err, &key) || key.File != path || key.Message == "" || key.Line < 0 {
				t.Fatalf("%#v does not say what is wrong where", err)
			}
			return
		}
		secret, err := c.ReadAPIKey(nil, nil)
		if err != nil || !strings.Contains(secret.Secret.Reveal(), "sk_hush") || strings.Count(string(data), "sk_hush") > 1 {
			return
		}
		listed, err := json.Marshal(c.List())
		if err != nil {
			t.Fatal(err)
		}
		if shown := fmt.Sprintf("%+v %#v %s", c, c, listed); strings.Contains(shown, "sk_hush") {
			t.Errorf("the key stands in %s", shown)
		}
	})
}
