package sqlite

import "syscall"

// networkTypes are the file systems that other machines may change too, by their number in statfs.
var networkTypes = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xfe534d42: "smb2",
	0xff534d42: "cifs",
	0x01021997: "9p",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x564c:     "ncp",
	0x73757245: "coda",
	0x00c36400: "ceph",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x01161970: "gfs2",
	0x7461636f: "ocfs2",
}

// networkFS returns the kind of network file system that folder is on; "" for a local or unknown one.
func networkFS(folder string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return ""
	}
	return networkTypes[uint32(st.Type)]
}
