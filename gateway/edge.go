package gateway

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
	"unicode"
)

// EdgeConfig says under which names a server answers, and to which web pages.
type EdgeConfig struct {
	// AllowedHosts are the hosts that a request may name, each for every port
	// ("chat.example.org") or for one ("chat.example.org:8443"). None means any
	// (C-32.5).
	AllowedHosts []string

	// LoopbackOnly lets through what names localhost or a loopback address, and
	// nothing else (C-32.5).
	LoopbackOnly bool

	// AllowedOrigins are the origins of the web pages that may ask, as browsers
	// write them: "https://chat.example.org". None means that no web page may
	// (C-32.1).
	AllowedOrigins []string

	// AllowCredentials lets pages of these origins send cookies from where they
	// are (C-32.2).
	AllowCredentials bool
}

// Edge keeps browsers from being used against their people: it refuses requests
// under names that are not the server's, and those of pages that are not
// allowed to ask (C-32.1, C-32.2, C-32.5). The zero Edge answers under any name,
// and to no web page.
type Edge struct {
	hosts       []string
	loopback    bool
	origins     []string
	credentials bool
}

var (
	errHost   = &Refusal{Status: http.StatusForbidden, Code: "forbidden", Reason: "host-not-allowed"}
	errOrigin = &Refusal{Status: http.StatusForbidden, Code: "forbidden", Reason: "origin-not-allowed"}
)

// NewEdge makes an edge. It refuses hosts and origins that no request could
// name.
func NewEdge(config EdgeConfig) (*Edge, error) {
	e := &Edge{loopback: config.LoopbackOnly, credentials: config.AllowCredentials}
	for _, host := range config.AllowedHosts {
		name, port := splitHost(host)
		if name == "" || strings.ContainsAny(name+port, "/@?#*[] ") || !isPlain(name) || !isPort(port) || strings.HasSuffix(host, ":") && !strings.EqualFold(host, name) {
			return nil, fmt.Errorf("allowed host %q: it is a name in ASCII or an address, with a port or without, such as chat.example.org", host)
		}
		e.hosts = append(e.hosts, joinHost(name, port))
	}
	for _, origin := range config.AllowedOrigins {
		if err := checkOrigin(origin); err != nil {
			return nil, fmt.Errorf("allowed origin %q: %w", origin, err)
		}
		e.origins = append(e.origins, origin)
	}
	return e, nil
}

// checkOrigin refuses what no browser sends as an Origin.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host:
		return errors.New("it is a scheme and a host, with a port or without, such as https://chat.example.org")
	case origin != strings.ToLower(origin):
		return errors.New("browsers send it in lower case")
	case u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443":
		return errors.New("browsers leave the usual port out")
	case !isPlain(u.Hostname()):
		return errors.New("browsers send names in ASCII, such as xn--bcher-kva.example")
	case strings.HasSuffix(u.Host, ":"), !isPort(u.Port()):
		return errors.New("its port is none")
	case strings.Contains(u.Host, "*"):
		return errors.New("each origin is listed by its name")
	}
	return nil
}

// isPlain reports whether a name can stand in a request: in ASCII, and with colons
// only if it is an address.
func isPlain(name string) bool {
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		return false
	}
	_, err := netip.ParseAddr(name)
	return err == nil || !strings.Contains(name, ":")
}

// isPort reports whether it is a port as browsers write one, or none at all.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// splitHost takes a host apart, in the form in which hosts are compared: lower
// case, no dot at the end, addresses without brackets.
func splitHost(host string) (name, port string) {
	name = host
	if h, p, err := net.SplitHostPort(host); err == nil {
		name, port = h, p
	} else if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		name = name[1 : len(name)-1]
	}
	return strings.TrimSuffix(strings.ToLower(name), "."), port
}

func joinHost(name, port string) string {
	if port == "" {
		return name
	}
	return net.JoinHostPort(name, port)
}

// admit judges a request by its Host and its Origin, and allows the page of a
// listed origin to read whatever the answer will be, a refusal too (C-32.2).
func (e *Edge) admit(w http.ResponseWriter, r *http.Request) *Refusal {
	origins := r.Header.Values("Origin")
	listed := len(origins) == 1 && slices.Contains(e.origins, origins[0])
	if len(e.origins) > 0 {
		w.Header().Add("Vary", "Origin")
	}
	if listed {
		w.Header().Set("Access-Control-Allow-Origin", origins[0])
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		if e.credentials {
			w.Header().Set("Access-Control-Allow-Credentials", "true")
		}
	}
	switch {
	case !e.knows(r.Host):
		return errHost
	case len(origins) > 0 && !listed, len(origins) == 0 && foreign(r):
		return errOrigin
	}
	return nil
}

// knows reports whether a request may name the host.
func (e *Edge) knows(host string) bool {
	name, port := splitHost(host)
	if e.loopback && !isLoopback(name) {
		return false
	}
	return len(e.hosts) == 0 || slices.Contains(e.hosts, name) || port != "" && slices.Contains(e.hosts, joinHost(name, port))
}

// IsLoopback reports whether a request that names the host is surely one of the
// machine itself: under localhost, or under a loopback address.
func IsLoopback(host string) bool {
	name, _ := splitHost(host)
	return isLoopback(name)
}

func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// foreign reports whether a browser says that another site's page has made it
// ask. Such a request has no Origin if the page may not read the answer; it
// would count all the same, with the person's cookie.
func foreign(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return true
		}
	}
	return false
}

// preflight answers a browser that asks what a page of a listed origin may do
// (C-31.10).
func preflight(w http.ResponseWriter, methods string) error {
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", methods)
	header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID")
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// isPreflight reports whether the request is one; [Edge.admit] has let it
// through, so its origin is listed.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != ""
}

// Guard puts the edge before a handler of other routes than the gateway's, with
// the methods that it knows: 403 for what the edge refuses, 405 for another
// method, and an answer to preflights.
func (e *Edge) Guard(methods []string, next http.Handler) http.Handler {
	allow := strings.Join(methods, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store") // caches may keep a 405 unless they are told not to
		refused := e.admit(w, r)
		switch {
		case refused != nil:
			refused.Answer(w, r)
		case isPreflight(r):
			preflight(w, allow)
		case !slices.Contains(methods, r.Method):
			w.Header().Set("Allow", allow)
			errMethod.Answer(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
