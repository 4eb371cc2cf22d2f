package config

import "testing"

func TestListSeparator(t *testing.T) {
	for _, tt := range []struct {
		env       map[string]string
		separator byte
		reason    string
	}{
		{map[string]string{"LANG": "de_DE.UTF-8"}, ';', "LANG is de_DE.UTF-8"},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_NUMERIC": "en_US.UTF-8"}, ',', "LC_NUMERIC is en_US.UTF-8"},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "fr_FR@euro", "LC_NUMERIC": "C"}, ';', "LC_ALL is fr_FR@euro"},
		{map[string]string{"LANG": "C.UTF-8"}, ',', "LANG is C.UTF-8"},
		{map[string]string{"LANG": "POSIX"}, ',', "LANG is POSIX"},
		{map[string]string{"LANG": "es_ES"}, ';', "LANG is es_ES"},
		{map[string]string{"LANG": "es_MX.UTF-8"}, ',', "LANG is es_MX.UTF-8"},
		{map[string]string{"LANG": "en_GB.UTF-8"}, ',', "LANG is en_GB.UTF-8"},
		{map[string]string{"LANG": "en_DE.UTF-8"}, ';', "LANG is en_DE.UTF-8"},
		{map[string]string{"LANG": "pt-BR"}, ';', "LANG is pt-BR"},
		{map[string]string{"LANG": "ja_JP.UTF-8"}, ',', "LANG is ja_JP.UTF-8"},
		{map[string]string{"LANG": "de"}, ';', "LANG is de"},
	} {
		separator, reason := ListSeparator(func(name string) string { return tt.env[name] })
		if separator != tt.separator || reason != tt.reason {
			t.Errorf("%v: %q because %q; want %q because %q", tt.env, separator, reason, tt.separator, tt.reason)
		}
	}
}
