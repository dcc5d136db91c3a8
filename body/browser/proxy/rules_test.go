package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// names is a resolver of a fixed world. It knows addresses, separated by spaces.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	texts, ok := n[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.9.9:53", IsNotFound: true}
	}
	var found []netip.Addr
	for _, text := range strings.Fields(texts) {
		found = append(found, netip.MustParseAddr(text))
	}
	return found, nil
}

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "9.255.255.255": true, "11.0.0.0": true, "100.63.255.255": true, "100.128.0.0": true, "126.255.255.255": true,
		"128.0.0.0": true, "169.253.255.255": true, "169.255.0.0": true, "172.15.255.255": true, "172.32.0.0": true, "192.0.1.0": true,
		"192.0.3.0": true, "192.167.255.255": true, "192.169.0.0": true, "198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true,
		"168.63.129.15": true, "168.63.129.17": true,
		"2606:4700::1111": true, "2001:200::": true, "2003::1": true, "2a00::1": true, "3ffe::1": true, "3fff:1000::": true,
		"64:ff9b::1.1.1.1": true, "::ffff:1.1.1.1": true,

		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.1": false, "100.100.100.200": false,
		"100.127.255.255": false, "127.0.0.1": false, "127.255.255.255": false, "168.63.129.16": false, "169.254.169.254": false,
		"172.16.0.1": false, "172.31.255.255": false, "192.0.0.192": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false,
		"239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::1.1.1.1": false, "::ffff:10.0.0.1": false, "::ffff:0:1.1.1.1": false,
		"100::1": false, "64:ff9b::10.0.0.1": false, "64:ff9b::169.254.169.254": false, "64:ff9b:1::1.1.1.1": false, "64:ff9b:0:1::1.1.1.1": false,
		"2001::1": false, "2001:2::1": false, "2001:20::1": false, "2001:1ff::": false, "2001:db8::1": false, "2002:7f00:1::": false,
		"2002:101:101::1": false, "3fff::1": false, "4000::1": false, "5f00::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"fe80::1": false, "fe80::1%eth0": false, "2a00::1%eth0": false, "fec0::1": false, "ff02::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("isPublic(%s) = %t, want %t", text, got, want)
		}
	}
}

// What the lists, the ports, the names and the addresses make of a target.
func TestRules(t *testing.T) {
	world := names{
		"public.example": "1.1.1.1 2606:4700::1", "private.example": "10.0.0.5", "mixed.example": "1.1.1.1 10.0.0.5",
		"mapped.example": "::ffff:10.0.0.5", "nat.example": "64:ff9b::10.0.0.5", "zone.example": "fe80::1%eth0", "none.example": "",
		"zero.example": "0.0.0.0", "zero6.example": "::", "nat0.example": "64:ff9b::0.0.0.0", "metadata.example": "169.254.169.254",
		"own.example": "1.2.3.4", "alias.example": "1.2.3.4", "natalias.example": "64:ff9b::1.2.3.4", "mappedalias.example": "::ffff:1.2.3.4",
		"localhost": "127.0.0.1", "db": "10.0.0.6", "app.internal": "10.0.0.7", "app.localhost": "1.1.1.1", "printer.local": "1.1.1.1",
		"router.home.arpa": "1.1.1.1", "loop.example": "127.0.0.1", "sub.private.example": "10.0.0.5",
	}
	type lists struct {
		allow, refuse []string
		ports         []int
	}
	none := lists{}
	own := lists{refuse: []string{"own.example:443", "1.2.3.4:443"}}
	const noAddress = "no address"
	for _, c := range []struct {
		lists  lists
		target string
		want   string // what may be dialled, or a reason
	}{
		{none, "public.example:443", "1.1.1.1:443 [2606:4700::1]:443"},
		{none, "public.example:80", "1.1.1.1:80 [2606:4700::1]:80"},
		{none, "1.1.1.1:443", "1.1.1.1:443"},
		{none, "[2606:4700::1]:443", "[2606:4700::1]:443"},
		{none, "public.example:22", ReasonPort},
		{none, "1.1.1.1:8080", ReasonPort},
		{none, "private.example:443", ReasonAddress},
		{none, "mixed.example:443", ReasonAddress},
		{none, "mapped.example:443", ReasonAddress},
		{none, "nat.example:443", ReasonAddress},
		{none, "zone.example:443", ReasonAddress},
		{none, "zero.example:443", ReasonAddress},
		{none, "metadata.example:80", ReasonAddress},
		{none, "169.254.169.254:80", ReasonAddress},
		{none, "[::1]:80", ReasonAddress},
		{none, "localhost:80", ReasonLocal},
		{none, "LOCALHOST.:80", ReasonLocal},
		{none, "app.localhost:80", ReasonLocal},
		{none, "printer.local:80", ReasonLocal},
		{none, "app.internal:80", ReasonLocal},
		{none, "router.home.arpa:80", ReasonLocal},
		{none, "db:80", ReasonLocal},
		{none, "none.example:80", noAddress},
		{none, "unknown.example:80", noAddress},

		{lists{allow: []string{"private.example"}}, "private.example:443", "10.0.0.5:443"},
		{lists{allow: []string{"PRIVATE.example."}}, "private.example:443", "10.0.0.5:443"},
		{lists{allow: []string{"private.example"}}, "private.example:8080", ReasonPort},
		{lists{allow: []string{"private.example"}}, "sub.private.example:443", ReasonAddress},
		{lists{allow: []string{"private.example"}}, "10.0.0.5:443", ReasonAddress},
		{lists{allow: []string{"private.example:8080"}}, "private.example:8080", "10.0.0.5:8080"},
		{lists{allow: []string{"private.example:8080"}}, "private.example:443", ReasonAddress},
		{lists{allow: []string{"private.example:8080"}}, "public.example:8080", ReasonPort},
		{lists{allow: []string{"mixed.example"}}, "mixed.example:443", "1.1.1.1:443 10.0.0.5:443"},
		{lists{allow: []string{"public.example:8443"}}, "public.example:8443", "1.1.1.1:8443 [2606:4700::1]:8443"},
		{lists{allow: []string{"10.0.0.5"}}, "private.example:443", "10.0.0.5:443"},
		{lists{allow: []string{"::ffff:10.0.0.5"}}, "private.example:443", "10.0.0.5:443"},
		{lists{allow: []string{"10.0.0.5:8080"}}, "private.example:8080", "10.0.0.5:8080"},
		{lists{allow: []string{"10.0.0.5:8080"}}, "10.0.0.5:443", ReasonAddress},
		{lists{allow: []string{"10.0.0.0/8"}}, "mixed.example:443", "1.1.1.1:443 10.0.0.5:443"},
		{lists{allow: []string{"10.0.0.0/8"}}, "nat.example:443", "[64:ff9b::a00:5]:443"},
		{lists{allow: []string{"10.0.0.0/8"}}, "loop.example:443", ReasonAddress},
		{lists{allow: []string{"10.0.0.0/8"}}, "db:80", ReasonLocal},
		{lists{allow: []string{"db"}}, "db:80", "10.0.0.6:80"},
		{lists{allow: []string{"db:8080"}}, "db:80", ReasonLocal},
		{lists{allow: []string{"app.internal"}}, "app.internal:80", "10.0.0.7:80"},
		{lists{allow: []string{"[fd00::1]:80"}}, "[fd00::1]:80", "[fd00::1]:80"},
		{lists{allow: []string{"fd00::/8"}}, "[fd00::1]:80", "[fd00::1]:80"},
		{lists{allow: []string{"zone.example", "fe80::/10"}}, "zone.example:80", ReasonAddress},
		{lists{allow: []string{"zero.example", "0.0.0.0/0"}}, "zero.example:80", ReasonAddress},
		{lists{allow: []string{"zero6.example", "::/0"}}, "zero6.example:80", ReasonAddress},
		{lists{allow: []string{"nat0.example"}}, "nat0.example:80", ReasonAddress},
		{lists{ports: []int{8080}}, "public.example:8080", "1.1.1.1:8080 [2606:4700::1]:8080"},
		{lists{ports: []int{8080}}, "public.example:443", ReasonPort},

		{own, "own.example:443", ReasonListed},
		{own, "OWN.example.:443", ReasonListed},
		{own, "alias.example:443", ReasonListed},
		{own, "natalias.example:443", ReasonListed},
		{own, "mappedalias.example:443", ReasonListed},
		{own, "1.2.3.4:443", ReasonListed},
		{own, "[::ffff:1.2.3.4]:443", ReasonListed},
		{own, "own.example:80", "1.2.3.4:80"},
		{lists{refuse: []string{"own.example"}}, "own.example:80", ReasonListed},
		{lists{refuse: []string{"1.2.3.4"}}, "alias.example:80", ReasonListed},
		{lists{refuse: []string{"1.2.0.0/16"}}, "alias.example:80", ReasonListed},
		{lists{refuse: []string{"own.example"}, allow: []string{"own.example:443"}}, "own.example:443", ReasonListed},
		{lists{refuse: []string{"1.2.3.4"}, allow: []string{"alias.example:443"}}, "alias.example:443", ReasonListed},
		{lists{refuse: []string{"0.0.0.0:8080"}, allow: []string{"loop.example:8080"}}, "loop.example:8080", ReasonListed},
		{lists{refuse: []string{"[::]:8080"}, allow: []string{"loop.example:8080"}}, "loop.example:8080", ReasonListed},
		{lists{refuse: []string{"[::]:8080"}, allow: []string{"[::1]:8080"}}, "[::1]:8080", ReasonListed},
		{lists{refuse: []string{"0.0.0.0:8080"}, allow: []string{"127.0.0.0/8"}}, "127.0.0.2:80", "127.0.0.2:80"},
	} {
		r, err := newRules(Config{Allow: c.lists.allow, Refuse: c.lists.refuse, Ports: c.lists.ports, Resolver: world})
		if err != nil {
			t.Fatalf("%+v: %v", c.lists, err)
		}
		asked, err := parseTarget(c.target)
		if err != nil {
			t.Fatal(err)
		}
		addresses, err := r.addresses(t.Context(), asked)
		var dialled []string
		for _, address := range addresses {
			dialled = append(dialled, address.String())
		}
		got := strings.Join(dialled, " ")
		if refused, ok := errors.AsType[*refusal](err); ok {
			got = refused.reason
		} else if errors.Is(err, errNoAddress) {
			got = noAddress
		}
		if got != c.want {
			t.Errorf("%+v: addresses(%s) = %q, %v, want %q", c.lists, c.target, got, err, c.want)
		}
	}
}

// A server that listens everywhere is refused at every address of its machine.
func TestRefuseThisMachine(t *testing.T) {
	r, err := newRules(Config{Refuse: []string{"0.0.0.0:80"}})
	if err != nil {
		t.Fatal(err)
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range interfaces {
		addr, _ := netip.AddrFromSlice(each.(*net.IPNet).IP)
		if got := r.judge(target{addr: addr.Unmap(), port: 80}, addr.Unmap()); got != ReasonListed {
			t.Errorf("judge(%s) = %q, want %q", addr, got, ReasonListed)
		}
	}
}

// An entry that cannot be read ends the start, and is named.
func TestStartNamesTheEntry(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Allow: []string{"ok.example", "http://example.org"}}, `allow "http://example.org": no host, no address and no prefix`},
		{Config{Allow: []string{""}}, `allow "": no name`},
		{Config{Allow: []string{"*.example.org"}}, `allow "*.example.org": no name`},
		{Config{Allow: []string{"bücher.example"}}, `written as xn--`},
		{Config{Allow: []string{"10.0.0.1/8"}}, `10.0.0.0/8 is meant`},
		{Config{Allow: []string{"::ffff:10.0.0.0/104"}}, `written as one of IPv4`},
		{Config{Allow: []string{"0.0.0.0"}}, `allow "0.0.0.0": it is no address that can be reached`},
		{Config{Allow: []string{"[::]:80"}}, `allow "[::]:80": it is no address that can be reached`},
		{Config{Refuse: []string{"fe80::1%eth0"}}, `refuse "fe80::1%eth0": `},
		{Config{Refuse: []string{"example.org:0"}}, `refuse "example.org:0": no port`},
		{Config{Refuse: []string{"2130706433"}}, `refuse "2130706433": an IPv4 address is written as four`},
		{Config{Ports: []int{443, 0}}, `ports: 0 is no port`},
		{Config{Ports: []int{65536}}, `ports: 65536 is no port`},
	} {
		p, err := Start(c.config)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Start(%+v) = %v, want %q in it", c.config, err, c.want)
		}
	}
}
