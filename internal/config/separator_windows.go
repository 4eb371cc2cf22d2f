package config

import "golang.org/x/sys/windows/registry"

// systemListSeparator returns what the user's regional settings separate lists by; empty
// if they do not say.
func systemListSeparator() string {
	key, err := registry.OpenKey(registry.CURRENT_USER, `Control Panel\International`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	s, _, err := key.GetStringValue("sList")
	if err != nil {
		return ""
	}
	return s
}
