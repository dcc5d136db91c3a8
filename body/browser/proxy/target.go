package proxy

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// maxTarget bounds the bytes of a host with its port: a name has at most 253.
const maxTarget = 300

// target is what a request wants to reach. It has a name or an address, never
// both.
type target struct {
	name string // lower case, without a dot at its end
	addr netip.Addr
	port uint16 // 0 if there is none
}

// String is the target as host:port, or without a port if it has none.
func (t target) String() string {
	host := t.name
	if t.addr.IsValid() {
		host = t.addr.String()
	}
	if t.port != 0 {
		return net.JoinHostPort(host, strconv.Itoa(int(t.port)))
	}
	if t.addr.Is6() {
		return "[" + host + "]"
	}
	return host
}

// parseTarget reads a host with or without a port, as it stands in a request or
// in a Config. It takes no spelling of which two programs could think differently:
// an IPv4 address is four decimal numbers, an IPv6 address stands in brackets and
// has no zone, a name is ASCII.
func parseTarget(text string) (target, error) {
	if len(text) > maxTarget {
		return target{}, errors.New("the host is too long")
	}
	host, port, err := splitPort(text)
	if err != nil {
		return target{}, err
	}
	t := target{port: port}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		t.addr, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !t.addr.Is6() || t.addr.Zone() != "" {
			return target{}, errors.New("what stands in brackets is no IPv6 address without a zone")
		}
		t.addr = t.addr.Unmap()
		return t, nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(host, ".")
	if isNumber(labels[len(labels)-1]) { // browsers take it for an address, resolvers too
		t.addr, err = netip.ParseAddr(host)
		if err != nil {
			return target{}, errors.New("an IPv4 address is written as four decimal numbers")
		}
		return t, nil
	}
	if t.name = host; !isName(labels) || len(host) > 253 {
		return target{}, errors.New("no name of a host in ASCII (a name in another script is written as xn--…)")
	}
	return t, nil
}

// splitPort cuts the port from behind a host; brackets stay.
func splitPort(text string) (host string, port uint16, err error) {
	end := strings.IndexByte(text, ':')
	if strings.HasPrefix(text, "[") {
		end = strings.IndexByte(text, ']') + 1
		if end == 0 {
			return "", 0, errors.New("a bracket is not closed")
		}
	}
	if end < 0 || end == len(text) {
		return text, 0, nil
	}
	digits, ok := strings.CutPrefix(text[end:], ":")
	number, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || number == 0 {
		return "", 0, errors.New("no port from 1 to 65535 stands behind the host (an IPv6 address is written in brackets)")
	}
	return text[:end], uint16(number), nil
}

// isNumber reports whether a label is a number, decimal, octal or hexadecimal.
func isNumber(label string) bool {
	if digits, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func isName(labels []string) bool {
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// isLocal reports whether a name belongs to the local network by what it is,
// whatever it resolves to.
func isLocal(name string) bool {
	for _, suffix := range []string{"localhost", "local", "internal", "home.arpa"} {
		if name == suffix || strings.HasSuffix(name, "."+suffix) {
			return true
		}
	}
	return !strings.Contains(name, ".")
}

// printable is what a request has asked for as it may be shown: bounded and in
// ASCII.
func printable(text string) string {
	quoted := strconv.QuoteToASCII(text[:min(len(text), maxTarget)])
	quoted = quoted[1 : len(quoted)-1]
	return quoted[:min(len(quoted), maxTarget)]
}
