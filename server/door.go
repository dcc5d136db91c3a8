package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-run/parley/gateway"
)

// door is how the server is met: under which names, by which web pages, through
// which proxies, and with which certificate.
type door struct {
	edge        gateway.EdgeConfig // as configured; open adds the server's own names
	proxies     []netip.Prefix
	public      *url.URL     // where people meet it; nil if nobody said
	certificate *certificate // nil without TLS
	h2c         bool
}

// newDoor reads the settings of the door, and refuses what cannot work.
func newDoor(s Settings) (door, error) {
	d := door{h2c: s.H2C, edge: gateway.EdgeConfig{
		AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins, AllowCredentials: s.AllowCredentials,
	}}
	for key, limit := range map[string]int{
		"max_streams": s.MaxStreams, "max_streams_per_caller": s.MaxStreamsPerCaller, "posts_per_minute": s.PostsPerMinute,
	} {
		if limit < 0 {
			return door{}, fmt.Errorf("configuration: setting %s is %d; it is a number above 0, or 0 for the default", key, limit)
		}
	}
	for _, entry := range s.TrustedProxies {
		prefix, err := parsePrefix(entry)
		if err != nil {
			return door{}, fmt.Errorf("configuration: trusted_proxies has %q; it is an address or a range such as 10.0.0.0/8", entry)
		}
		d.proxies = append(d.proxies, prefix)
	}
	var err error
	if s.PublicURL != "" {
		if d.public, err = parsePublicURL(s.PublicURL); err != nil {
			return door{}, err
		}
		d.edge.AllowedHosts = slices.Concat(d.edge.AllowedHosts, []string{d.public.Hostname()}) // under any port: a proxy may leave it out
		d.edge.AllowedOrigins = slices.Concat(d.edge.AllowedOrigins, []string{d.public.String()})
	}
	if _, err := gateway.NewEdge(d.edge); err != nil {
		return door{}, fmt.Errorf("configuration: %w", err)
	}
	switch {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return door{}, errors.New("configuration: tls_cert and tls_key go together; one of them is not set")
	case s.TLSCert != "" && s.H2C:
		return door{}, errors.New("configuration: h2c is HTTP/2 without TLS, and tls_cert is set; leave one of them out")
	case s.TLSCert != "":
		d.certificate, err = readCertificate(s.TLSCert, s.TLSKey)
	}
	return d, err
}

func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().Prefix(address.Unmap().BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if address := prefix.Addr(); address.Is4In6() { // as peers are looked at: an address of IPv4 is one, however it is written
		if prefix.Bits() < 96 {
			return netip.Prefix{}, errors.New("a range of IPv4 in IPv6 that holds others too")
		}
		prefix = netip.PrefixFrom(address.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), nil
}

func parsePublicURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("configuration: public_url is no address of a server, such as https://chat.example.org")
	}
	if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
		u.Host = u.Host[:strings.LastIndexByte(u.Host, ':')]
	}
	u.Path = ""
	return u, nil
}

// publicAddress is where people meet the server, "" if nobody said.
func (d door) publicAddress() string {
	if d.public == nil {
		return ""
	}
	return d.public.String()
}

// open makes the edge of a server that listens there. Its own pages may ask it,
// under each name of this machine. Where only this machine can reach it, it
// answers under these names and the configured ones alone; else a list of hosts
// holds if there is one, and the names of this machine are always on it.
func (d door) open(listener net.Listener) (*gateway.Edge, error) {
	config := d.edge
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return gateway.NewEdge(config)
	}
	names := []string{"localhost", "127.0.0.1", "::1"}
	if own := address.IP.String(); !address.IP.IsUnspecified() && own != "127.0.0.1" && own != "::1" {
		names = append(names, own)
	}
	if address.IP.IsLoopback() || len(config.AllowedHosts) > 0 {
		config.AllowedHosts = slices.Concat(names, config.AllowedHosts)
	}
	scheme := "http"
	if d.certificate != nil {
		scheme = "https"
	}
	for _, name := range names {
		config.AllowedOrigins = slices.Concat(config.AllowedOrigins, []string{originOf(scheme, name, address.Port)})
	}
	return gateway.NewEdge(config)
}

// originOf is the origin of a page as browsers write it.
func originOf(scheme, name string, port int) string {
	usual := scheme == "http" && port == 80 || scheme == "https" && port == 443
	switch {
	case !usual:
		return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(name, strconv.Itoa(port)))
	case strings.Contains(name, ":"):
		return scheme + "://[" + name + "]"
	}
	return scheme + "://" + name
}

// secure reports whether the person's side of a request is under TLS, so that a
// cookie may ask for it.
func (d door) secure(r *http.Request) bool {
	return d.certificate != nil || d.public != nil && d.public.Scheme == "https" || arrivalOf(r).secure
}

// trustsLoopback reports whether a program on this machine may be a proxy, so
// that a request from this machine may be anybody's.
func (d door) trustsLoopback() bool {
	for _, prefix := range d.proxies {
		if prefix.Contains(netip.IPv6Loopback()) || prefix.Overlaps(netip.MustParsePrefix("127.0.0.0/8")) {
			return true
		}
	}
	return false
}
