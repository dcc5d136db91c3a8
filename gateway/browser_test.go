package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// pageScript is what every page can do: listen opens a stream, whose events next
// gives in order.
const pageScript = `<!doctype html><script>
const streams = [], heard = []
let wake = () => {}
function listen(path) {
	const stream = new EventSource(path), number = streams.push(stream) - 1
	for (const kind of ["status", "message", "partial", "delta", "reset", "closed", "reconnect", "error"])
		stream.addEventListener(kind, e => {
			heard.push({stream: number, kind, id: e.lastEventId || "", data: e.data, state: stream.readyState})
			wake()
		})
}
async function next() {
	while (heard.length == 0) await new Promise(resolve => wake = resolve)
	return heard.shift()
}
</script>`

// heard is an event as a page hears it.
type heard struct {
	Stream int     `json:"stream"`
	Kind   string  `json:"kind"`
	ID     string  `json:"id"`
	Data   *string `json:"data"` // none on a connection error
	State  int     `json:"state"`
}

// The states of an EventSource.
const (
	connecting = 0
	closed     = 2
)

// tab is a page of a site, in a browser profile of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// do runs a script in the page.
func (p tab) do(script string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](script)); err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
}

// ask runs a script and returns its number.
func (p tab) ask(script string) int {
	p.t.Helper()
	n, err := chromedp.Run(p.ctx, chromedp.Evaluate[int](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return n
}

// listen opens a stream of a conversation.
func (p tab) listen(id string) {
	p.t.Helper()
	p.do("listen('/v1/conversations/" + id + "/events')")
}

// next waits for an event, which need not be one of the kinds to leave out.
func (p tab) next(except ...string) heard {
	p.t.Helper()
	for {
		e, err := chromedp.Run(p.ctx, chromedp.Evaluate[heard]("next()", func(params *runtime.EvaluateParams) { params.AwaitPromise = new(true) }))
		if err != nil {
			p.t.Fatalf("next event: %v", err)
		}
		if !slices.Contains(except, e.Kind) {
			return e
		}
	}
}

// expect wants the next event of a stream to be of a kind.
func (p tab) expect(stream int, kind event) heard {
	p.t.Helper()
	e := p.next()
	if e.Stream != stream || e.Kind != string(kind) {
		p.t.Fatalf("the next event is %s; want %s of stream %d", e, kind, stream)
	}
	return e
}

func (e heard) String() string {
	data := "nothing"
	if e.Data != nil {
		data = *e.Data
	}
	return strings.Join([]string{e.Kind, "of stream", string(rune('0' + e.Stream)), "id", e.ID, "with", data}, " ")
}

// site is a gateway and a page of one origin. The page's person is known by a
// cookie.
type site struct {
	*world
	server *httptest.Server

	mu    sync.Mutex
	asked []asked
}

// asked is a request for a stream.
type asked struct {
	id, last string
	proto    int
}

// siteConfig is what sites differ in.
type siteConfig struct {
	tls    bool         // with HTTP/2
	cut    bool         // streams are cut in mid-event, and clients come back at once
	odd    http.Handler // of the path /odd
	change func(*Config)
}

func newSite(t *testing.T, config siteConfig) *site {
	t.Helper()
	s := &site{server: httptest.NewUnstartedServer(nil)}
	scheme := "http"
	if config.tls {
		scheme = "https"
	}
	edge, err := NewEdge(EdgeConfig{AllowedHosts: []string{"127.0.0.1"}, AllowedOrigins: []string{scheme + "://" + s.server.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	s.world = newWorldOn(t, journaltest.Wrap(memory.New()), "otherwise\n  reply", conversation.NewHub(conversation.HubConfig{}), func(_ *kernel.Config, c *Config) {
		c.Edge, c.Authenticate = edge, byCookie
		if config.change != nil {
			config.change(c)
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "person", Value: "ann@acme", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, pageScript)
	})
	mux.HandleFunc("/v1/conversations/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, asked{r.PathValue("id"), r.Header.Get("Last-Event-ID"), r.ProtoMajor})
		s.mu.Unlock()
		s.gateway.ServeHTTP(w, r)
	})
	if config.odd != nil {
		mux.Handle("/odd", config.odd)
	}
	s.server.Config.Handler = mux
	if config.cut {
		s.server.Listener = &cuttingListener{Listener: s.server.Listener}
	}
	if config.tls {
		s.server.EnableHTTP2 = true
		s.server.StartTLS()
	} else {
		s.server.Start()
	}
	t.Cleanup(s.server.Close)
	return s
}

// byCookie takes a cookie for who it says.
func byCookie(r *http.Request) (identity.Principal, error) {
	cookie, err := r.Cookie("person")
	if err != nil || cookie.Value != "ann@acme" {
		return identity.Principal{}, errors.New("no such person")
	}
	return *ann, nil
}

// visit opens the site's page.
func (s *site) visit(t *testing.T, browser context.Context) tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(s.server.URL)); err != nil {
		t.Fatal(err)
	}
	return tab{t, ctx}
}

// requests are those for streams of a conversation, so far.
func (s *site) requests(id string) []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(a asked) bool { return a.id != id })
}

// cuttingListener cuts each connection some bytes behind the head of a stream, with
// a reset, and a little later each time. It has clients come back after 10 ms,
// whatever the stream says.
type cuttingListener struct {
	net.Listener
	cuts int
}

func (l *cuttingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.cuts++
	return &cutConn{Conn: conn, left: 480 + 37*l.cuts}, nil
}

type cutConn struct {
	net.Conn
	stream bool
	left   int
}

var retryLine = regexp.MustCompile(`\nretry: [0-9]{4}\n`)

func (c *cutConn) Write(p []byte) (int, error) {
	c.stream = c.stream || bytes.Contains(p, []byte("Content-Type: text/event-stream"))
	if !c.stream {
		return c.Conn.Write(p)
	}
	p = retryLine.ReplaceAll(p, []byte("\nretry: 0010\n"))
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.Conn.Write(p[:n]); err != nil || c.left > 0 {
		return n, err
	}
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Conn.Close()
	return n, net.ErrClosed
}
