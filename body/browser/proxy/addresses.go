package proxy

import (
	"net/netip"
	"slices"
)

// reserved4 are the IPv4 addresses that are not of the public internet, or that
// speak for the machine that asks.
var reserved4 = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared behind a carrier's NAT; Alibaba's metadata
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's agent of a virtual machine
	"169.254.0.0/16",   // link-local; the metadata of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // assignments of protocols; Oracle's metadata
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // relays of 6to4
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, and broadcast
)

// global6 is where public IPv6 addresses are, reserved6 what in it is none:
// loopback, unique local, link-local, site-local, multicast and the old forms with
// an IPv4 address inside all lie outside.
var (
	global6   = netip.MustParsePrefix("2000::/3")
	reserved6 = prefixes(
		"2001::/23",     // assignments of protocols: Teredo, benchmarks, ORCHID
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4, with an IPv4 address inside
		"3fff::/20",     // documentation
	)
)

// nat64 is the well-known prefix whose last four bytes are an IPv4 address. That
// of local use, 64:ff9b:1::/48, says not where it stands: it is refused.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, text := range texts {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

// meant is the address that a connection to this one ends at: an IPv4 address may
// stand inside one of IPv6.
func meant(addr netip.Addr) netip.Addr {
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr.Unmap()
}

// isPublic reports whether an address is one of the public internet. One with a
// zone is none.
func isPublic(addr netip.Addr) bool {
	addr = meant(addr)
	contains := func(prefix netip.Prefix) bool { return prefix.Contains(addr) }
	if addr.Is4() {
		return !slices.ContainsFunc(reserved4, contains)
	}
	return global6.Contains(addr) && !slices.ContainsFunc(reserved6, contains)
}
