package sqlite

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// longestMount bounds a line of the list of mounts, in bytes: an overlay names
// many folders.
const longestMount = 1 << 20

// networkTypes are the file systems that other machines may change too, by the
// number that statfs gives.
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

// networkFS returns the kind of network file system that folder is on, and
// the empty string if it is a local one or not known.
func networkFS(folder string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return ""
	}
	return networkTypes[uint32(st.Type)]
}

// isFileMount reports whether the file is mounted without its folder: the log
// and the locks beside it are then others than those beside the file itself.
func isFileMount(path string) (bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // not every sandbox has it
	}
	if err != nil {
		return false, err
	}
	mounted, err := isMountPoint(f, path)
	return mounted, errors.Join(err, f.Close())
}

// isMountPoint looks a path up in the kernel's list of mounts, whose fifth
// field is the mount point.
func isMountPoint(mounts io.Reader, path string) (bool, error) {
	path = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(path)
	lines := bufio.NewScanner(mounts)
	lines.Buffer(nil, longestMount)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, lines.Err()
}
