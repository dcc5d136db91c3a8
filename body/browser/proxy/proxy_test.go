package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// internet is what a test has instead of the public one: every address that is
// dialled is on record, and leads to one server.
type internet struct {
	server string

	mu      sync.Mutex
	dialled []string
	refused []string
	down    []string // addresses at which nobody answers
}

func (i *internet) dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	i.mu.Lock()
	i.dialled = append(i.dialled, address.String())
	down := slices.Contains(i.down, address.String())
	i.mu.Unlock()
	if down {
		return nil, errors.New("connect to " + address.String() + ": refused")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", i.server)
}

func (i *internet) hear(target, reason string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = append(i.refused, target+" "+reason)
}

// seen is what was dialled and refused since the last look.
func (i *internet) seen() (dialled, refused []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	dialled, refused = i.dialled, i.refused
	i.dialled, i.refused = nil, nil
	return dialled, refused
}

// start starts a proxy in front of a server that stands for the internet. When
// the test ends nothing of the proxy may be left.
func start(t *testing.T, config Config, server string) (*Proxy, *internet) {
	t.Helper()
	world := &internet{server: server}
	config.dial, config.Refused = world.dial, world.hear
	p, err := Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		nothingLeft(t)
	})
	return p, world
}

// nothingLeft waits until no goroutine of a proxy is there. Those of net/http
// and httputil end by themselves, a moment after their connections.
func nothingLeft(t *testing.T) {
	t.Helper()
	ours := []string{"proxy.(*Proxy)", "proxy.limited", "proxy.(*conn)", "switchProtocolCopier", "handleUpgradeResponse"}
	for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left := slices.ContainsFunc(ours, func(name string) bool { return strings.Contains(string(stacks), name) })
		if !left {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left when the proxy was closed:\n%s", stacks)
		}
	}
}

// serve starts a server for a test.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// client is one that asks through a proxy, and follows redirects as a browser.
func client(t *testing.T, p *Proxy) *http.Client {
	t.Helper()
	address := &url.URL{Scheme: "http", Host: p.Addr()}
	transport := &http.Transport{Proxy: http.ProxyURL(address), DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get asks for a page and returns its status, the reason of a refusal and the
// body.
func get(t *testing.T, c *http.Client, address string) (status int, reason, body string) {
	t.Helper()
	answer, err := c.Get(address)
	if err != nil {
		t.Fatalf("Get(%s) = %v", address, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("Get(%s): read the body: %v", address, err)
	}
	return answer.StatusCode, answer.Header.Get(Header), strings.TrimSpace(string(text))
}

// dialProxy opens a bare connection to a proxy.
func dialProxy(t *testing.T, p *Proxy) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), bufio.NewReader(c)
}

// say sends bytes to a proxy and returns the head of its answer.
func say(t *testing.T, c net.Conn, r *bufio.Reader, method, text string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("answer to %q: %v", text, err)
	}
	return answer
}

// connect asks for a tunnel.
func connect(t *testing.T, p *Proxy, host string) (*net.TCPConn, *bufio.Reader, *http.Response) {
	t.Helper()
	c, r := dialProxy(t, p)
	return c, r, say(t, c, r, http.MethodConnect, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
}

// hello answers with what it was asked for.
func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s%s", r.Host, r.URL) }

// changing is a resolver that answers otherwise each time.
type changing struct {
	mu      sync.Mutex
	answers []string
}

func (c *changing) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.answers[0]
	c.answers = c.answers[1:]
	return names{host: answer}.LookupNetIP(ctx, network, host)
}

// What is dialled is what was judged: a name is looked up once for a connection,
// and again for the next.
func TestRebinding(t *testing.T) {
	resolver := &changing{answers: []string{"1.1.1.1", "127.0.0.1", "1.1.1.1 127.0.0.1", "1.1.1.2"}}
	p, world := start(t, Config{Resolver: resolver}, serve(t, hello))
	c := client(t, p)
	for i, want := range []struct {
		status  int
		dialled []string
		refused []string
	}{
		{200, []string{"1.1.1.1:80"}, nil},
		{403, nil, []string{"rebind.example:80 address"}},
		{403, nil, []string{"rebind.example:80 address"}},
		{200, []string{"1.1.1.2:80"}, nil},
	} {
		status, _, body := get(t, c, "http://rebind.example/")
		dialled, refused := world.seen()
		if status != want.status || !slices.Equal(dialled, want.dialled) || !slices.Equal(refused, want.refused) {
			t.Errorf("request %d = %d %q, dialled %v, refused %v, want %+v", i, status, body, dialled, refused, want)
		}
	}
	if len(resolver.answers) != 0 {
		t.Errorf("%d lookups were not made, want one for each request", len(resolver.answers))
	}
}

// A refusal says what and why, and nothing that a resolver found.
func TestRefusal(t *testing.T) {
	resolver := names{"public.example": "1.1.1.1", "inside.example": "10.11.12.13"}
	p, world := start(t, Config{Resolver: resolver, Refuse: []string{"own.example:443"}}, serve(t, hello))
	c := client(t, p)
	for _, want := range []struct{ address, target, reason string }{
		{"http://inside.example/", "inside.example:80", ReasonAddress},
		{"http://INSIDE.example./", "inside.example:80", ReasonAddress},
		{"http://127.0.0.1/", "127.0.0.1:80", ReasonAddress},
		{"http://[::1]/", "[::1]:80", ReasonAddress},
		{"http://public.example:22/", "public.example:22", ReasonPort},
		{"http://localhost/", "localhost:80", ReasonLocal},
		{"http://2130706433/", "2130706433", ReasonHost},
		{"http://own.example:443/", "own.example:443", ReasonListed},
		{"http://" + p.Addr() + "/", p.Addr(), ReasonListed},
	} {
		status, reason, body := get(t, c, want.address)
		dialled, refused := world.seen()
		if status != 403 || reason != want.reason || !strings.Contains(body, want.target) || strings.Contains(body, "10.11") {
			t.Errorf("Get(%s) = %d, %q, %q, want 403, %q and %q in the text", want.address, status, reason, body, want.reason, want.target)
		}
		if !slices.Equal(refused, []string{want.target + " " + want.reason}) || len(dialled) != 0 {
			t.Errorf("Get(%s): refused %v, dialled %v", want.address, refused, dialled)
		}
	}
	for _, want := range []struct{ host, target, reason string }{
		{"public.example:22", "public.example:22", ReasonPort},
		{"inside.example:443", "inside.example:443", ReasonAddress},
		{"own.example:443", "own.example:443", ReasonListed},
		{"public.example", "public.example", ReasonHost},
		{"0x7f.1:443", "0x7f.1:443", ReasonHost},
		{"[fe80::1%25lo]:443", "[fe80::1%25lo]:443", ReasonHost},
	} {
		_, _, answer := connect(t, p, want.host)
		dialled, refused := world.seen()
		if answer.StatusCode != 403 || answer.Header.Get(Header) != want.reason || len(dialled) != 0 ||
			!slices.Equal(refused, []string{want.target + " " + want.reason}) {
			t.Errorf("CONNECT %s = %d %v, dialled %v, refused %v, want 403, %s", want.host, answer.StatusCode, answer.Header, dialled, refused, want.reason)
		}
	}
}

// What is no request to a proxy for http is not served.
func TestOtherForms(t *testing.T) {
	p, world := start(t, Config{Resolver: names{"public.example": "1.1.1.1"}}, serve(t, hello))
	for _, want := range []struct {
		line   string
		status int
		reason string
	}{
		{"GET / HTTP/1.1", 400, ""},
		{"OPTIONS * HTTP/1.1", 400, ""},
		{"GET //public.example/ HTTP/1.1", 400, ""},
		{"GET https://public.example/ HTTP/1.1", 403, ReasonScheme},
		{"GET ftp://public.example/ HTTP/1.1", 403, ReasonScheme},
		{"GET file:///etc/passwd HTTP/1.1", 403, ReasonScheme},
		{"GET http:///path HTTP/1.1", 403, ReasonHost},
		{"GET http:public.example/ HTTP/1.1", 403, ReasonHost},
		{"GET http://user@public.example/ HTTP/1.1", 403, ReasonHost},
		{"CONNECT user@public.example:443 HTTP/1.1", 403, ReasonHost},
		{"CONNECT /public.example:443 HTTP/1.1", 403, ReasonHost},
		{"GET http://public.example%2eevil.example/ HTTP/1.1", 400, ""},
	} {
		c, r := dialProxy(t, p)
		answer := say(t, c, r, http.MethodGet, want.line+"\r\nHost: public.example\r\n\r\n")
		if got := answer.Header.Get(Header); answer.StatusCode != want.status || got != want.reason {
			t.Errorf("%s = %d %q, want %d %q", want.line, answer.StatusCode, got, want.status, want.reason)
		}
		if dialled, _ := world.seen(); len(dialled) > 0 {
			t.Errorf("%s: dialled %v", want.line, dialled)
		}
	}
}

// A redirect comes back as it is; what follows it asks again.
func TestRedirects(t *testing.T) {
	next := map[string]string{"/one": "http://second.example/two", "/two": "http://inside.example/three"}
	p, world := start(t, Config{Resolver: names{"first.example": "1.1.1.1", "second.example": "2.2.2.2", "inside.example": "127.0.0.1"}},
		serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, next[r.URL.Path], http.StatusFound) }))
	status, reason, body := get(t, client(t, p), "http://first.example/one")
	if status != 403 || reason != ReasonAddress {
		t.Errorf("the chain ends with %d %q %q, want 403 %q", status, reason, body, ReasonAddress)
	}
	dialled, refused := world.seen()
	if diff := cmp.Diff([][]string{{"1.1.1.1:80", "2.2.2.2:80"}, {"inside.example:80 address"}}, [][]string{dialled, refused}); diff != "" {
		t.Errorf("dialled and refused (-want +got):\n%s", diff)
	}
}

// What is passed on is the request as it was asked, without what is for the proxy.
func TestHeaders(t *testing.T) {
	type heard struct {
		uri, host string
		header    http.Header
	}
	requests := make(chan heard, 1)
	p, _ := start(t, Config{Resolver: names{"public.example": "1.1.1.1"}}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- heard{r.RequestURI, r.Host, r.Header}
		w.Header().Set(Header, "forged")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("Proxy-Anything", "1")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		http.Error(w, "no", http.StatusTeapot)
	}))
	c, r := dialProxy(t, p)
	answer := say(t, c, r, http.MethodGet, "GET http://Public.example:80/a%2Fb//c?q=1;x=%zz HTTP/1.1\r\nHost: other.example\r\n"+
		"Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nProxy-Anything: 1\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n"+
		"Cookie: a=1\r\nAccept: */*\r\n\r\n")
	got := <-requests
	want := heard{"/a%2Fb//c?q=1;x=%zz", "public.example", http.Header{"Cookie": {"a=1"}, "Accept": {"*/*"}, "Connection": {"close"}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(heard{})); diff != "" {
		t.Errorf("what arrived (-want +got):\n%s", diff)
	}
	answer.Header.Del("Date")
	wantAnswer := http.Header{
		"Set-Cookie": {"a=1", "b=2"}, "Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}, "Content-Length": {"3"},
	}
	if diff := cmp.Diff(wantAnswer, answer.Header); diff != "" || answer.StatusCode != http.StatusTeapot {
		t.Errorf("the answer is %d; its headers (-want +got):\n%s", answer.StatusCode, diff)
	}
}

// A request within the body of another reaches nobody, wherever the two lengths
// of it disagree.
func TestSmuggling(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	p, _ := start(t, Config{Resolver: names{"public.example": "1.1.1.1"}}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.Path)
	}))
	const inner = "GET http://public.example/smuggled HTTP/1.1\r\nHost: public.example\r\n\r\n"
	for _, headers := range []string{
		fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", 5, len(inner), inner),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner),
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(inner), inner),
		fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
		fmt.Sprintf("Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
		fmt.Sprintf("Transfer-Encoding : chunked\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
	} {
		c, r := dialProxy(t, p)
		say(t, c, r, http.MethodPost, "POST http://public.example/outer HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n"+headers)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, r)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"/outer", "/outer", "/outer"}; !slices.Equal(paths, want) {
		t.Errorf("the server was asked for %v, want %v", paths, want)
	}
}

// What fails behind the proxy says so, in words that name no address.
func TestFailures(t *testing.T) {
	resolver := names{"down.example": "1.1.1.1", "half.example": "1.1.1.1 2.2.2.2", "cut.example": "3.3.3.3"}
	p, world := start(t, Config{Resolver: resolver}, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "cut.example" {
			panic(http.ErrAbortHandler)
		}
		hello(w, r)
	}))
	world.down = []string{"1.1.1.1:80"}
	for _, want := range []struct {
		host   string
		status int
		body   string
	}{
		{"unknown.example", 502, "cannot reach unknown.example:80: no address of the name was found"},
		{"down.example", 502, "cannot reach down.example:80: the connection failed"},
		{"cut.example", 502, "cannot reach cut.example:80: the connection failed"},
		{"half.example", 200, "hello half.example/"},
	} {
		status, reason, body := get(t, client(t, p), "http://"+want.host+"/")
		if status != want.status || reason != "" || body != want.body {
			t.Errorf("%s = %d, %q, %q, want %d, %q", want.host, status, reason, body, want.status, want.body)
		}
	}
	if dialled, _ := world.seen(); !slices.Contains(dialled, "2.2.2.2:80") {
		t.Errorf("dialled %v, want the second address after the first", dialled)
	}
}

// late is a resolver, and a network, whose every answer is that the time is over.
type late struct{}

func (late) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("a lookup has no deadline")
	}
	return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
}

func TestTimeouts(t *testing.T) {
	p, _ := start(t, Config{Resolver: late{}}, "")
	p.config.dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a dial has no deadline")
		}
		return nil, context.DeadlineExceeded
	}
	if status, _, body := get(t, client(t, p), "http://late.example/"); status != 504 || !strings.Contains(body, "no answer in time") {
		t.Errorf("a late server = %d %q, want 504", status, body)
	}
}

// The environment's proxies are not asked.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	p, _ := start(t, Config{Resolver: names{"public.example": "1.1.1.1"}}, serve(t, hello))
	if status, _, body := get(t, client(t, p), "http://public.example/x"); status != 200 || body != "hello public.example/x" {
		t.Errorf("Get = %d %q, want the page", status, body)
	}
	if got := p.forwarder.Transport.(*http.Transport).Proxy; got != nil {
		t.Error("the transport asks for a proxy")
	}
}
