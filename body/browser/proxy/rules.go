package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// The reasons of a refusal, as [Header] and [Config].Refused name them.
const (
	ReasonScheme  = "scheme"     // neither http nor a tunnel
	ReasonHost    = "host"       // the host cannot be read
	ReasonListed  = "listed"     // on the list of refusals, as the server itself is
	ReasonPort    = "port"       // not one of the ports
	ReasonLocal   = "local_name" // a name of the local network
	ReasonAddress = "address"    // it is, or resolves to, no address of the public internet
)

// whys says of each reason what somebody can read.
var whys = map[string]string{
	ReasonScheme:  "only http, https, ws and wss are let through",
	ReasonHost:    "the host cannot be read",
	ReasonListed:  "it is on the list of refusals",
	ReasonPort:    "the port is not one that may be reached",
	ReasonLocal:   "it is a name of the local network",
	ReasonAddress: "it is, or resolves to, an address that is not of the public internet",
}

// refusal is the error of what is not let through.
type refusal struct {
	target string // printable, and bounded
	reason string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("refused %s: %s", r.target, whys[r.reason])
}

// errNoAddress says that a name has no address, or that it cannot be known.
var errNoAddress = errors.New("no address of the name was found")

// rules decide what may be reached.
type rules struct {
	allow, refuse []rule
	ports         []int
	resolver      Resolver
}

// rule is an entry of a list: a name, or addresses, of one port or of any.
type rule struct {
	name   string
	prefix netip.Prefix
	port   uint16 // 0 for any
}

// only is the rule of one address and port.
func only(a netip.AddrPort) rule {
	return rule{prefix: netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), port: a.Port()}
}

// covers reports whether the rule is about a target that has this address, the
// zero one if it is not known.
func (r rule) covers(t target, addr netip.Addr) bool {
	if r.port != 0 && r.port != t.port {
		return false
	}
	if r.name != "" {
		return r.name == t.name
	}
	return r.prefix.Contains(addr) || r.prefix.Contains(meant(addr))
}

func newRules(config Config) (rules, error) {
	r := rules{ports: config.Ports, resolver: config.Resolver}
	if len(r.ports) == 0 {
		r.ports = []int{80, 443}
	}
	for _, port := range r.ports {
		if port < 1 || port > 65535 {
			return rules{}, fmt.Errorf("ports: %d is no port from 1 to 65535", port)
		}
	}
	for _, entry := range config.Allow {
		parsed, err := parseRule(entry)
		if err == nil && parsed.prefix.IsValid() && parsed.prefix.Addr().IsUnspecified() && parsed.prefix.IsSingleIP() {
			err = errors.New("it is no address that can be reached")
		}
		if err != nil {
			return rules{}, fmt.Errorf("allow %q: %w", entry, err)
		}
		r.allow = append(r.allow, parsed)
	}
	for _, entry := range config.Refuse {
		parsed, err := parseRule(entry)
		if err != nil {
			return rules{}, fmt.Errorf("refuse %q: %w", entry, err)
		}
		r.refuse = append(r.refuse, parsed)
		if parsed.prefix.IsValid() && parsed.prefix.Addr().IsUnspecified() && parsed.prefix.IsSingleIP() {
			machine, err := ofMachine(parsed.port)
			if err != nil {
				return rules{}, fmt.Errorf("refuse %q: %w", entry, err)
			}
			r.refuse = append(r.refuse, machine...)
		}
	}
	return r, nil
}

// parseRule reads an entry of a list.
func parseRule(entry string) (rule, error) {
	if strings.Contains(entry, "/") {
		prefix, err := netip.ParsePrefix(entry)
		switch {
		case err != nil:
			return rule{}, errors.New("no host, no address and no prefix such as 10.0.0.0/8")
		case prefix != prefix.Masked():
			return rule{}, fmt.Errorf("the prefix has bits behind its length: %s is meant", prefix.Masked())
		case prefix.Addr().Is4In6():
			return rule{}, errors.New("a prefix of IPv4 is written as one of IPv4")
		}
		return rule{prefix: prefix}, nil
	}
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
		return only(netip.AddrPortFrom(addr.Unmap(), 0)), nil
	}
	t, err := parseTarget(entry)
	if err != nil {
		return rule{}, err
	}
	if t.addr.IsValid() {
		return only(netip.AddrPortFrom(t.addr, t.port)), nil
	}
	return rule{name: t.name, port: t.port}, nil
}

// ofMachine are the rules of a port of every address of this machine, at which a
// server listens that listens everywhere.
func ofMachine(port uint16) ([]rule, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("find the addresses of this machine: %w", err)
	}
	machine := []rule{
		{prefix: netip.MustParsePrefix("127.0.0.0/8"), port: port},
		only(netip.AddrPortFrom(netip.IPv6Loopback(), port)),
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(network.IP); ok {
				machine = append(machine, only(netip.AddrPortFrom(addr.Unmap(), port)))
			}
		}
	}
	return machine, nil
}

// addresses are those that may be dialled for a target, in the order of the
// resolver, and at least one. The error is a *refusal, errNoAddress, or that of a
// ctx that is done.
func (r rules) addresses(ctx context.Context, t target) ([]netip.AddrPort, error) {
	refused := func(reason string) error { return &refusal{t.String(), reason} }
	found := []netip.Addr{t.addr}
	if t.name != "" {
		switch {
		case covered(r.refuse, t, netip.Addr{}):
			return nil, refused(ReasonListed)
		case isLocal(t.name) && !covered(r.allow, t, netip.Addr{}):
			return nil, refused(ReasonLocal)
		}
		var err error
		found, err = r.resolver.LookupNetIP(ctx, "ip", t.name)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil || len(found) == 0:
			return nil, errNoAddress
		}
	}
	var addresses []netip.AddrPort
	for _, addr := range found {
		if reason := r.judge(t, addr); reason != "" {
			return nil, refused(reason)
		}
		addresses = append(addresses, netip.AddrPortFrom(addr, t.port))
	}
	return addresses, nil
}

// judge says why an address of a target may not be dialled, "" if it may.
func (r rules) judge(t target, addr netip.Addr) string {
	opened := func(rule rule) bool { return rule.port != 0 && rule.covers(t, addr) }
	switch {
	case covered(r.refuse, t, addr):
		return ReasonListed
	case addr.Zone() != "" || meant(addr).IsUnspecified():
		// A system takes the unspecified address for loopback, and no rule covers an
		// address with a zone: not even an allowed name may have one.
		return ReasonAddress
	case !slices.Contains(r.ports, int(t.port)) && !slices.ContainsFunc(r.allow, opened):
		return ReasonPort
	case !isPublic(addr) && !covered(r.allow, t, addr):
		return ReasonAddress
	}
	return ""
}

func covered(list []rule, t target, addr netip.Addr) bool {
	return slices.ContainsFunc(list, func(rule rule) bool { return rule.covers(t, addr) })
}
