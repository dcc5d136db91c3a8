package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// C-32.1, C-32.4, C-32.5, C-31.10: the door stands before every path that the server does
// not know, and before the one without a path that net/http would answer
// itself.
func TestDoorBeforeUnknownPaths(t *testing.T) {
	s := newWorld(t).start()
	address := s.listener.Addr().String()
	own := "http://" + address
	for _, test := range []struct {
		line, host, origin string
		want               int
	}{
		{"OPTIONS *", address, "", 404},
		{"OPTIONS *", address, own, 404},
		{"OPTIONS *", address, "https://evil.example", 403},
		{"OPTIONS *", "evil.example", "", 403},
		{"GET /nothing", address, "", 404},
		{"GET /nothing", address, own, 404},
		{"GET /nothing", address, "https://evil.example", 403},
		{"GET /nothing", "evil.example", "", 403},
		{"GET /v1", "evil.example", "", 403},
		{"CONNECT evil.example:443", "evil.example:443", "", 403},
		{"CONNECT " + address, address, "", 404},
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\n", test.line, test.host)
		if test.origin != "" {
			fmt.Fprintf(conn, "Origin: %s\r\n", test.origin)
		}
		io.WriteString(conn, "Connection: close\r\n\r\n")
		got, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		allowed := ""
		if test.origin == own {
			allowed = own
		}
		header := got.Header
		if got.StatusCode != test.want || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("%s, Host %s, Origin %q: %d with %v; want %d, nosniff, and for the page %q",
				test.line, test.host, test.origin, got.StatusCode, header, test.want, allowed)
		}
		conn.Close()
	}
	s.end()
}
