package config

import (
	"errors"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// othersWithAccess returns the first well-known group that may read or change the file, by its access control list;
// empty if none may.
func othersWithAccess(path string, _ fs.FileInfo) (string, error) {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", err
	}
	dacl, _, err := sd.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || err == nil && dacl == nil {
		return "everyone (it has no access list)", nil
	}
	if err != nil {
		return "", err
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return "", err
		}
		if who := grantsAccess(ace); who != "" {
			return who, nil
		}
	}
	return "", nil
}

// grantsAccess returns the well-known group of many people that the entry lets read or change the file, or "". It
// ignores deny entries: that can refuse a safe file, but never accepts an unsafe one.
func grantsAccess(ace *windows.ACCESS_ALLOWED_ACE) string {
	const access = windows.FILE_READ_DATA | windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA |
		windows.GENERIC_READ | windows.GENERIC_WRITE | windows.GENERIC_ALL | windows.WRITE_DAC | windows.WRITE_OWNER
	if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE ||
		ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || uint32(ace.Mask)&access == 0 {
		return ""
	}
	sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart))
	for _, g := range []struct {
		kind windows.WELL_KNOWN_SID_TYPE
		name string
	}{
		{windows.WinWorldSid, "Everyone"},
		{windows.WinAuthenticatedUserSid, "Authenticated Users"},
		{windows.WinBuiltinUsersSid, "Users"},
		{windows.WinBuiltinGuestsSid, "Guests"},
		{windows.WinAnonymousSid, "Anonymous"},
		{windows.WinInteractiveSid, "Interactive"},
		{windows.WinNetworkSid, "Network"},
		{windows.WinAccountDomainUsersSid, "Domain Users"},
	} {
		if sid.IsWellKnown(g.kind) {
			return "the group " + g.name
		}
	}
	return ""
}

// restrictCommand returns the command, for cmd, that removes the access of others.
func restrictCommand(path string) string {
	return `icacls "` + path + `" /inheritance:r /grant:r "%USERNAME%":F`
}

// systemListSeparator returns the list separator of the user's regional settings; empty if they have none.
func systemListSeparator() string {
	key, err := registry.OpenKey(registry.CURRENT_USER, `Control Panel\International`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	s, _, _ := key.GetStringValue("sList") // empty with an error
	return s
}
