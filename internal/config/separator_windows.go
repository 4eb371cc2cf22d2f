package config

import "golang.org/x/sys/windows/registry"

// systemListSeparator returns the list separator of the user's regional settings; empty if they have none.
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
