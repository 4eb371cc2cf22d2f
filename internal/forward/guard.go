package forward

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrForbidden says that a target's name led to an address that deliveries are
// not sent to: one that is link-local, or the metadata service of a cloud,
// which hands out credentials.
var ErrForbidden = errors.New("the address is link-local or a metadata service, and refused without --allow-target")

// metadataNetworks lists the networks of metadata services that are not link-local.
func metadataNetworks() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("fd00:ec2::/32"),      // AWS: metadata, credentials, keys
		netip.MustParsePrefix("fd20:ce::/32"),       // Google Cloud
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
		netip.MustParsePrefix("168.63.129.16/32"),   // Azure
		netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	}
}

// refuseForbidden refuses a connection by the address that it is really made to,
// whatever name or redirection of names led there.
func refuseForbidden(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if isForbidden(to.Addr()) {
		return fmt.Errorf("%s: %w", to.Addr(), ErrForbidden)
	}
	return nil
}

func isForbidden(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if inner, ok := embeddedIPv4(ip); ok && isForbidden(inner) {
		return true
	}
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return true
	}
	return slices.ContainsFunc(metadataNetworks(), func(p netip.Prefix) bool { return p.Contains(ip) })
}

// embeddedIPv4 returns the IPv4 address that an address of a translator (NAT64,
// SIIT, 6to4) or in the old compatible form stands for.
func embeddedIPv4(ip netip.Addr) (netip.Addr, bool) {
	if !ip.Is6() {
		return ip, false
	}
	b := ip.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip), netip.MustParsePrefix("64:ff9b:1::/48").Contains(ip),
		netip.MustParsePrefix("::ffff:0:0:0/96").Contains(ip),
		netip.MustParsePrefix("::/96").Contains(ip) && b[12] != 0:
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return ip, false
}
