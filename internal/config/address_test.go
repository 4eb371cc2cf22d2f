package config

import (
	"errors"
	"strings"
	"testing"
)

func TestNormalizeURL(t *testing.T) {
	for _, tt := range []struct {
		in       string
		insecure bool
		want     string
	}{
		{"https://api.example.com", false, "https://api.example.com"},
		{"HTTPS://API.Example.COM/", false, "https://api.example.com"},
		{"https://api.example.com:443", false, "https://api.example.com"},
		{"https://api.example.com:", false, "https://api.example.com"},
		{"https://api.example.com:0443/a", false, "https://api.example.com/a"},
		{"https://api.example.com:8443/", false, "https://api.example.com:8443"},
		{"https://api.example.com/Some/Path//", false, "https://api.example.com/Some/Path"},
		{"https://api.example.com/a%2Fb", false, "https://api.example.com/a%2Fb"},
		{"https://[2001:DB8:0::1]/", false, "https://[2001:db8::1]"},
		{"http://127.0.0.1:8640/x", false, "http://127.0.0.1:8640/x"},
		{"http://127.9.9.9", false, "http://127.9.9.9"},
		{"http://LocalHost:80", false, "http://localhost"},
		{"http://[::1]:8640", false, "http://[::1]:8640"},
		{"http://example.com:80", true, "http://example.com"},
		{"http://example.com:443", true, "http://example.com:443"},
	} {
		normalize := encryptedURL
		if tt.insecure {
			normalize = normalizeURL
		}
		if got, err := normalize(tt.in); got != tt.want || err != nil {
			t.Errorf("normalizeURL(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
}

func encryptedURL(raw string) (string, error) {
	normal, err := normalizeURL(raw)
	if err == nil {
		err = checkEncrypted(normal)
	}
	return normal, err
}

func TestNormalizeURLRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "not a URL"},
		{"api.example.com", "not a URL"},
		{"api.example.com:8080", "not a URL"},
		{"/path", "not a URL"},
		{"https://", "not a URL"},
		{"https:api", "not a URL"},
		{"https://a b", "not a URL"},
		{"https://h/%zz", "not a URL"},
		{"https://h\n", "not a URL"},
		{"https://:443", "the host"},
		{"https://h%41st", "not a URL"},
		{"https://h\u202e", "the host"},
		{"https://[fe80::1%25eth0]", "the host"},
		{"https://user:hush@h", "contains a user name"},
		{"https://hush@h", "contains a user name"},
		{"https://h?x=1", "contains a query"},
		{"https://h/?", "contains a query"},
		{"https://h/#", "contains a query"},
		{"ftp://h", `scheme "ftp" is not https`},
		{"https://h:0", "the port"},
		{"https://h:70000", "the port"},
		{"https://h:x", "not a URL"},
		{"http://example.com", "http would send"},
		{"http://localhost.example.com", "http would send"},
		{"http://127.0.0.1.example.com", "http would send"},
		{"http://127.1", "http would send"},
		{"http://10.0.0.1", "http would send"},
		{"http://[::2]", "http would send"},
	} {
		got, fault := encryptedURL(tt.in)
		err, _ := errors.AsType[*KeyError](fault)
		if err == nil || !strings.HasPrefix(err.Message, tt.want) || err.Hint == "" {
			t.Errorf("normalizeURL(%q) = %q, %v; want %s…", tt.in, got, err, tt.want)
			continue
		}
		if strings.Contains(err.Error()+err.Hint, "hush") {
			t.Errorf("%q: %v shows the password", tt.in, err)
		}
	}
}

func FuzzNormalizeURL(f *testing.F) {
	for _, s := range []string{"https://h:443/a/", "http://[::1]", "http://127.0.0.1:80", "https://u:p@h", "http://h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once, err := encryptedURL(raw)
		if err != nil {
			return
		}
		if twice, err := encryptedURL(once); twice != once || err != nil {
			t.Errorf("%q is %q, and then %q, %v", raw, once, twice, err)
		}
		if strings.HasSuffix(once, "/") || strings.ContainsAny(once, "?#@ ") && !strings.Contains(raw, "@") {
			t.Errorf("%q is %q", raw, once)
		}
	})
}
