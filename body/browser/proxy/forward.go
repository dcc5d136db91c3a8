package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Header holds the reason of a refusal, in the answer that refuses. No answer of
// another server over http has it; one within a tunnel may, so a program goes by
// [Config].Refused.
const Header = "Parley-Refused"

// serve answers one request of Chromium: a tunnel for https, ws and wss, a
// request to pass on for http.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.handlers.Done()
	if r.Method != http.MethodConnect && r.URL.Scheme == "" {
		http.Error(w, "this is a proxy: it has no pages of its own", http.StatusBadRequest)
		return
	}
	t, err := asked(r)
	if err != nil {
		p.fail(w, t, err)
		return
	}
	upstream, err := p.connect(r.Context(), t)
	if err != nil {
		p.fail(w, t, err)
		return
	}
	defer upstream.Close()
	if r.Method == http.MethodConnect {
		p.tunnel(w, upstream)
		return
	}
	p.forwarder.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passage{}, &passing{target: t, upstream: upstream})))
}

// asked is what a request wants to reach.
func asked(r *http.Request) (target, error) {
	if r.Method == http.MethodConnect {
		t, err := parseTarget(r.RequestURI)
		if err != nil || t.port == 0 {
			return target{}, &refusal{printable(r.RequestURI), ReasonHost}
		}
		return t, nil
	}
	if r.URL.Scheme != "http" {
		return target{}, &refusal{printable(r.URL.Host), ReasonScheme}
	}
	t, err := parseTarget(r.URL.Host)
	if err != nil || r.URL.User != nil {
		return target{}, &refusal{printable(r.URL.Host), ReasonHost}
	}
	if t.port == 0 {
		t.port = 80
	}
	return t, nil
}

// connect opens a connection to one of the addresses that were judged; each has
// its share of the time.
func (p *Proxy) connect(ctx context.Context, t target) (*conn, error) {
	deadline := time.Now().Add(dialTimeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	addresses, err := p.rules.addresses(ctx, t)
	if err != nil {
		return nil, err
	}
	addresses = addresses[:min(len(addresses), 4)]
	for i, address := range addresses {
		var dialled net.Conn
		dialled, err = p.dial(ctx, address, time.Until(deadline)/time.Duration(len(addresses)-i))
		if err != nil {
			continue
		}
		if upstream, ok := p.open.add(dialled); ok {
			return upstream, nil
		}
		return nil, errors.New("too many connections are open")
	}
	return nil, err
}

func (p *Proxy) dial(ctx context.Context, address netip.AddrPort, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return p.config.dial(ctx, address)
}

// fail answers a request that reaches nothing. The answer has no address and
// nothing of a resolver, for a page may read it.
func (p *Proxy) fail(w http.ResponseWriter, t target, err error) {
	if refused, ok := errors.AsType[*refusal](err); ok {
		p.log.Debug("request of the browser refused", "reason", refused.reason)
		if p.config.Refused != nil {
			p.config.Refused(refused.target, refused.reason)
		}
		w.Header().Set(Header, refused.reason)
		http.Error(w, refused.Error(), http.StatusForbidden)
		return
	}
	var timeout net.Error
	switch {
	case errors.Is(err, errNoAddress):
		http.Error(w, fmt.Sprintf("cannot reach %s: %v", t, errNoAddress), http.StatusBadGateway)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		http.Error(w, fmt.Sprintf("cannot reach %s: no answer in time", t), http.StatusGatewayTimeout)
	default:
		http.Error(w, fmt.Sprintf("cannot reach %s: the connection failed", t), http.StatusBadGateway)
	}
}

// tunnel carries bytes both ways until both ends have finished, or one fails.
func (p *Proxy) tunnel(w http.ResponseWriter, upstream *conn) {
	hijacked, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil { // the client is gone
		return
	}
	defer hijacked.Close()
	client := hijacked.(*conn)
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	carry := func(to *conn, from io.Reader) {
		if _, err := io.Copy(to, from); err != nil || to.CloseWrite() != nil {
			client.Close()
			upstream.Close()
		}
	}
	var both sync.WaitGroup
	both.Go(func() { carry(upstream, early(buffered.Reader, client)) })
	both.Go(func() { carry(client, upstream) })
	both.Wait()
}

// early reads what the client sent before its tunnel stood, and then on.
func early(buffered *bufio.Reader, client io.Reader) io.Reader {
	return io.MultiReader(io.LimitReader(buffered, int64(buffered.Buffered())), client)
}

// passage is the key of a passing in the ctx of its request.
type passage struct{}

// passing is a request that is passed on, with the connection that was opened
// for it alone.
type passing struct {
	target   target
	upstream net.Conn
	used     bool
}

func passingOf(ctx context.Context) *passing { return ctx.Value(passage{}).(*passing) }

// newForwarder makes what passes requests on. It follows no redirect: Chromium
// does, and asks again.
func (p *Proxy) newForwarder() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: rewrite,
		Transport: &http.Transport{ // no Proxy: nothing of the environment counts
			DialContext:            takeUpstream,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			withoutProxy(r.Header)
			r.Header.Del(Header)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			p.fail(w, passingOf(r.Context()).target, err)
		},
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
}

// takeUpstream hands the transport the connection of its request, once.
func takeUpstream(ctx context.Context, _, _ string) (net.Conn, error) {
	passing := passingOf(ctx)
	if passing.used {
		return nil, errors.New("the connection of this request was used")
	}
	passing.used = true
	return passing.upstream, nil
}

// rewrite makes the request that is passed on. Its Host is what was judged; what
// is for the one connection only, httputil has taken away.
func rewrite(r *httputil.ProxyRequest) {
	t := passingOf(r.In.Context()).target
	if t.port == 80 {
		t.port = 0
	}
	r.Out.URL.Host = t.String()
	r.Out.Host = r.Out.URL.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery // httputil drops what it cannot parse
	withoutProxy(r.Out.Header)
}

// withoutProxy drops what is said to a proxy, or by one.
func withoutProxy(header http.Header) {
	for name := range header {
		if strings.HasPrefix(name, "Proxy-") {
			delete(header, name)
		}
	}
}
