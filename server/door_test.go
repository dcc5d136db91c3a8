package server

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// listening is a listener that says where it is.
type listening struct{ net.Listener }

func (listening) Accept() (net.Conn, error) { return nil, net.ErrClosed }

type at struct {
	listening
	address net.TCPAddr
}

func (a at) Addr() net.Addr { return &a.address }

// C-32.1, C-32.5: a server that only this machine can reach answers under the
// names of this machine; one that others can reach under any, until somebody
// lists them. Its own pages may ask it, wherever they were opened.
func TestDoor(t *testing.T) {
	const local, wide = "127.0.0.1", "0.0.0.0"
	for _, test := range []struct {
		settings     Settings
		listen       string
		host, origin string
		want         int
	}{
		{Settings{}, local, "127.0.0.1:7275", "", 200},
		{Settings{}, local, "localhost:7275", "http://localhost:7275", 200},
		{Settings{}, local, "[::1]:7275", "http://[::1]:7275", 200},
		{Settings{}, local, "rebound.example:7275", "", 403},
		{Settings{}, local, "127.0.0.1:7275", "http://127.0.0.1:7276", 403},
		{Settings{}, local, "127.0.0.1:7275", "http://rebound.example:7275", 403},
		{Settings{}, wide, "chat.example.org", "", 200},
		{Settings{}, wide, "chat.example.org", "http://chat.example.org", 403},
		{Settings{}, "192.0.2.7", "192.0.2.7:7275", "http://192.0.2.7:7275", 200},
		{Settings{}, "127.0.0.9", "127.0.0.9:7275", "http://127.0.0.9:7275", 200},
		{Settings{AllowedHosts: []string{"parley.internal"}}, wide, "parley.internal", "", 200},
		{Settings{AllowedHosts: []string{"parley.internal"}}, wide, "127.0.0.1:7275", "", 200},
		{Settings{AllowedHosts: []string{"parley.internal"}}, wide, "chat.example.org", "", 403},
		{Settings{AllowedOrigins: []string{"https://app.example"}}, local, "127.0.0.1:7275", "https://app.example", 200},
		{Settings{PublicURL: "https://Chat.Example.org/"}, local, "chat.example.org", "https://chat.example.org", 200},
		{Settings{PublicURL: "https://chat.example.org:443"}, local, "chat.example.org", "https://chat.example.org", 200},
		{Settings{PublicURL: "https://chat.example.org"}, local, "chat.example.org", "http://chat.example.org", 403},
		{Settings{PublicURL: "https://chat.example.org:8443"}, local, "chat.example.org", "https://chat.example.org:8443", 200}, // nginx's $host has no port
		{Settings{PublicURL: "https://chat.example.org:8443"}, local, "chat.example.org:8443", "https://chat.example.org", 403},
		{Settings{PublicURL: "https://[2001:db8::7]:8443"}, local, "[2001:db8::7]", "https://[2001:db8::7]:8443", 200},
		{Settings{PublicURL: "https://chat.example.org"}, wide, "other.example", "", 403},
	} {
		d, err := newDoor(test.settings)
		if err != nil {
			t.Fatal(err)
		}
		edge, err := d.open(at{address: net.TCPAddr{IP: net.ParseIP(test.listen), Port: 7275}})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		if r.Host = test.host; test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		got := httptest.NewRecorder()
		edge.Guard([]string{"GET"}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(got, r)
		if got.Code != test.want {
			t.Errorf("%+v on %s: host %q, origin %q: %d; want %d", test.settings, test.listen, test.host, test.origin, got.Code, test.want)
		}
	}
	for origin, want := range map[string]string{
		originOf("http", "a", 80): "http://a", originOf("https", "::1", 443): "https://[::1]", originOf("https", "a", 80): "https://a:80",
	} {
		if origin != want {
			t.Errorf("origin %q; want %q", origin, want)
		}
	}
}

// What cannot be meant is refused in the words of the file.
func TestDoorSettings(t *testing.T) {
	for want, settings := range map[string]Settings{
		"public_url is no address":         {PublicURL: "chat.example.org"},
		"public_url is no":                 {PublicURL: "https://chat.example.org/parley"},
		`trusted_proxies has "10.0.0.0/99`: {TrustedProxies: []string{"127.0.0.1", "10.0.0.0/99"}},
		"trusted_proxies has":              {TrustedProxies: []string{"nginx"}},
		`trusted_proxies has "::ffff`:      {TrustedProxies: []string{"::ffff:10.0.0.0/90"}},
		`host "bücher.example"`:            {PublicURL: "https://bücher.example"},
		`host "https://a"`:                 {AllowedHosts: []string{"https://a"}},
		`allowed origin "*"`:               {AllowedOrigins: []string{"*"}},
		"tls_cert and tls_key go":          {TLSCert: "cert.pem"},
		"h2c is HTTP/2 without TLS":        {TLSCert: "cert.pem", TLSKey: "key.pem", H2C: true},
		"TLS: stat nowhere.pem":            {TLSCert: "nowhere.pem", TLSKey: "nowhere.key"},
		"max_streams is -1":                {MaxStreams: -1},
		"posts_per_minute is -1":           {PostsPerMinute: -1},
	} {
		if _, err := newDoor(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("newDoor(%+v) = %v; want %q", settings, err, want)
		}
	}
}

// C-32.5: a range of IPv4 is the same one when it is written as IPv6, as its
// peers are; a loopback address that may be a proxy closes the metrics.
func TestMappedProxies(t *testing.T) {
	d, err := newDoor(Settings{TrustedProxies: []string{"::ffff:127.0.0.0/104"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"127.0.0.1:5", "[::ffff:127.0.0.1]:5"} {
		r := httptest.NewRequest("GET", "http://localhost/metrics", nil)
		if r.RemoteAddr = peer; !isTrusted(d.proxies, peerOf(r)) || d.isNearby(r) {
			t.Errorf("%s: trusted %v, nearby %v; want a proxy, which is not nearby", peer, isTrusted(d.proxies, peerOf(r)), d.isNearby(r))
		}
	}
}

// Only what a trusted proxy says counts, and of that only what itself has said:
// the rest of a list is anybody's word. From others the headers are taken away.
func TestProxies(t *testing.T) {
	d, err := newDoor(Settings{TrustedProxies: []string{"127.0.0.1", "10.0.0.0/8", "fd00::/8"}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.trustsLoopback() {
		t.Error("a list with 127.0.0.1 does not trust loopback")
	}
	for _, test := range []struct{ peer, host, proto, client, want string }{
		{"127.0.0.1:5", "chat.example.org", "https", "198.51.100.7", "chat.example.org 198.51.100.7:0 secure proxied"},
		{"[::ffff:127.0.0.1]:5", "chat.example.org", "https", "198.51.100.7", "chat.example.org 198.51.100.7:0 secure proxied"},
		{"10.1.2.3:5", "a, b", "http, https", "1.1.1.1, 198.51.100.7, 10.9.9.9", "b 198.51.100.7:0 secure proxied"},
		{"10.1.2.3:5", "b", "https, http", "[2001:db8::1]:4711", "b [2001:db8::1]:0 proxied"},
		{"10.1.2.3:5", "", "", "forged", "own 10.1.2.3:5 proxied"},
		{"10.1.2.3:5", "", "", "forged, 10.9.9.9", "own 10.9.9.9:0 proxied"},
		{"127.0.0.2:5", "chat.example.org", "https", "198.51.100.7", "own 127.0.0.2:5 proxied"},
		{"192.0.2.1:5", "chat.example.org", "https", "198.51.100.7", "own 192.0.2.1:5 proxied"},
		{"pipe", "chat.example.org", "https", "198.51.100.7", "own pipe proxied"},
		{"127.0.0.1:5", "", "", "", "own 127.0.0.1:5"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host, r.RemoteAddr = "own", test.peer
		for name, value := range map[string]string{forwardedHost: test.host, forwardedProto: test.proto, forwardedFor: test.client} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		got := ""
		behindProxies(d.proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = fmt.Sprint(r.Host, " ", r.RemoteAddr)
			if d.secure(r) {
				got += " secure"
			}
			if arrivalOf(r).proxied {
				got += " proxied"
			}
			for _, name := range forwarding {
				if r.Header.Get(name) != "" {
					got += " with " + name
				}
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		if got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
