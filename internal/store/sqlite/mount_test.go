package sqlite

import (
	"strings"
	"testing"
)

// A file that is mounted without its folder is known by its mount point.
func TestMountPoint(t *testing.T) {
	const mounts = `22 28 0:21 / /proc rw,nosuid shared:13 - proc proc rw
98 28 8:1 /srv/waybill.db /data/waybill.db rw,relatime - ext4 /dev/sda1 rw
99 28 8:1 /srv /data/with\040space rw,relatime - ext4 /dev/sda1 rw
`
	for path, want := range map[string]bool{
		"/data/waybill.db":            true,
		"/data/waybill.db2":           false,
		"/data/with space":            true,
		"/data/with space/waybill.db": false,
		"/srv/waybill.db":             false,
	} {
		if got, err := isMountPoint(strings.NewReader(mounts), path); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", path, got, err, want)
		}
	}
}
