package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwarding are the headers in which proxies tell of a request that they pass
// on. Those with a value in forwarded are read, the others only give a proxy away.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", forwardedFor, forwardedHost, forwardedProto, "X-Forwarded-Port", "X-Forwarded-Server"}

const (
	forwardedFor   = "X-Forwarded-For"
	forwardedHost  = "X-Forwarded-Host"
	forwardedProto = "X-Forwarded-Proto"
)

// arrival is how a request came.
type arrival struct {
	proxied bool // a proxy has passed it on, or it says so
	secure  bool // a trusted proxy had it under TLS
}

type arrivalKey struct{}

func arrivalOf(r *http.Request) arrival {
	a, _ := r.Context().Value(arrivalKey{}).(arrival)
	return a
}

// behindProxies takes what trusted proxies say of a request for what it is: the
// Host, the client's address, and whether it came under TLS. From anybody else
// these headers are taken away, so that nothing can believe them.
func behindProxies(trusted []netip.Prefix, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := http.Header{}
		for _, name := range forwarding {
			if values := r.Header.Values(name); len(values) > 0 {
				said[name] = values
				r.Header.Del(name)
			}
		}
		if len(said) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		a := arrival{proxied: true}
		if isTrusted(trusted, peerOf(r)) {
			if host := last(said[forwardedHost]); host != "" {
				r.Host = host
			}
			a.secure = strings.EqualFold(last(said[forwardedProto]), "https")
			r.RemoteAddr = clientOf(trusted, said[forwardedFor], r.RemoteAddr)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), arrivalKey{}, a)))
	})
}

// peerOf is the address of the other end of a connection, the zero one if it has
// none.
func peerOf(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

func isTrusted(trusted []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(trusted, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// last is the last of the values of a header that is a list: what the nearest
// proxy has said. Those before it came from further away.
func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	all := strings.Split(values[len(values)-1], ",")
	return strings.TrimSpace(all[len(all)-1])
}

// clientOf is the address from which the first trusted proxy was asked: the last
// in the list that is no trusted proxy itself. What stands before it is anybody's
// word.
func clientOf(trusted []netip.Prefix, values []string, peer string) string {
	all := strings.Split(strings.Join(values, ","), ",")
	for _, entry := range slices.Backward(all) {
		entry = strings.TrimSpace(entry)
		address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]"))
		if withPort, errPort := netip.ParseAddrPort(entry); err != nil && errPort == nil {
			address, err = withPort.Addr(), nil
		}
		if err != nil {
			return peer
		}
		address = address.Unmap().WithZone("")
		peer = net.JoinHostPort(address.String(), "0")
		if !isTrusted(trusted, address) {
			return peer
		}
	}
	return peer
}
