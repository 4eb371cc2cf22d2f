package forward

import (
	"net/netip"
	"testing"
)

func TestForbidden(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "8.8.8.8": false, "fd00::1": false, "2001:db8::1": false,
		"169.254.169.254": true, "169.254.0.1": true, "fe80::1": true, "fe80::1%eth0": true, "::ffff:169.254.169.254": true,
		"fd00:ec2::254": true, "100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true, "224.0.0.1": true, "ff02::1": true,
		"255.255.255.255": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b::808:808": false, "2002:a9fe:a9fe::1": true, "::169.254.169.254": true,
	} {
		if got := forbidden(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v; want %v", text, got, want)
		}
	}
}
