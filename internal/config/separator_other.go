//go:build !windows

package config

// systemListSeparator returns nothing: the environment says it.
func systemListSeparator() string { return "" }
