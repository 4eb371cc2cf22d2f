package sqlite

import "syscall"

// networkFS returns the kind of network file system that folder is on; "" for a local or unknown one.
func networkFS(folder string) string {
	const local = 0x1000 // MNT_LOCAL
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil || st.Flags&local != 0 {
		return ""
	}
	var name []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	return string(name)
}
