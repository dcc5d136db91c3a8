package proxy

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-run/parley/internal/browsertest"
)

// attempts is a page that tries every way to a server which it may not reach, and
// then says which WebSocket of its own was answered.
const attempts = `<!doctype html><title>attempts</title><body><script>
const inside = "PORT";
const hosts = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost", "app.localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "rebind.example"];
const over = (thing, ...names) => new Promise((done) => names.forEach((name) => thing.addEventListener(name, () => done(name))));
const made = (tag, attributes) => {
	const element = Object.assign(document.createElement(tag), attributes);
	const ended = over(element, "load", "error");
	document.body.append(element);
	return ended;
};
const socket = (address) => { try { return over(new WebSocket(address), "open", "close"); } catch { return "invalid"; } };
const rtc = async () => {
	const connection = new RTCPeerConnection({ iceServers: [
		{ urls: "stun:127.0.0.1:UDP" },
		{ urls: ["turn:127.0.0.1:UDP", "turn:127.0.0.1:" + inside + "?transport=tcp"], username: "u", credential: "c" },
	] });
	connection.createDataChannel("d");
	await connection.setLocalDescription();
	while (connection.iceGatheringState !== "complete") await over(connection, "icegatheringstatechange");
	connection.close();
};
const all = async () => {
	for (const host of hosts) {
		const address = "http://" + host + ":" + inside + "/";
		await Promise.all([
			fetch(address, { mode: "no-cors" }).catch(() => 0),
			fetch("/go?to=" + encodeURIComponent(address), { mode: "no-cors" }).catch(() => 0),
			made("img", { src: address + "i" }), made("script", { src: address + "s" }), made("iframe", { src: address + "f" }),
			made("link", { rel: "stylesheet", href: address + "c" }),
		]);
	}
	// Few of these: Chromium holds back the WebSockets of a page whose others failed.
	await Promise.all(["ws://127.0.0.1:", "wss://127.0.0.1:", "ws://rebind.example:"].map((start) => socket(start + inside + "/")));
	for (const rel of ["preconnect", "dns-prefetch", "prefetch", "preload"]) document.head.append(Object.assign(document.createElement("link"), { rel, as: "fetch", href: "http://127.0.0.1:" + inside + "/" }));
	await rtc();
	const page = await (await fetch("/plain")).text();
	return page + " " + await socket("ws://" + location.host + "/socket");
};
const ended = all();
</script>`

// L-13: a real Chromium with the flags of a proxy reaches a server on loopback
// through no door: no navigation, redirect, subresource, WebSocket, spelling of
// the address, name that resolves to it, or WebRTC. What is allowed, it reaches.
func TestChromium(t *testing.T) {
	var reached, datagrams atomic.Int64
	inside := listen(t, func(*net.TCPConn) { reached.Add(1) })
	_, insidePort, _ := net.SplitHostPort(inside)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			if _, _, err := udp.ReadFrom(make([]byte, 2048)); err != nil {
				return
			}
			datagrams.Add(1)
		}
	}()
	defer func() { udp.Close(); <-read }()
	_, udpPort, _ := net.SplitHostPort(udp.LocalAddr().String())

	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/go":
			http.Redirect(w, r, r.FormValue("to"), http.StatusFound)
		case "/plain":
			fmt.Fprint(w, "plain")
		case "/socket":
			accept(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, strings.NewReplacer("PORT", insidePort, "UDP", udpPort).Replace(attempts))
		}
	})
	_, sitePort, _ := net.SplitHostPort(site)
	world := &internet{}
	p, err := Start(Config{
		Allow:    []string{"site.example:" + sitePort},
		Ports:    []int{80, 443, number(t, insidePort)},
		Resolver: names{"site.example": "127.0.0.1", "rebind.example": "127.0.0.1"},
		Refused:  world.hear,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	var flags []chromedp.ExecAllocatorOption
	for name, value := range p.Flags() {
		flags = append(flags, chromedp.Flag(name, value))
	}
	page := browsertest.Open(t, browsertest.Start(t, flags...), "http://site.example:"+sitePort+"/")
	page.Expect("") // everything is refused, and the console says so
	if got := page.Evaluate[string]("ended"); got != "plain open" {
		t.Errorf("of what is allowed came %q, want the page and a WebSocket", got)
	}
	world.seen()
	for _, address := range []string{
		"http://127.0.0.1:" + insidePort + "/", "http://rebind.example:" + insidePort + "/",
		"http://site.example:" + sitePort + "/go?to=" + url.QueryEscape("http://localhost:"+insidePort+"/"),
	} {
		page.Go(address)
		if got := page.Text(); !strings.HasPrefix(got, "refused ") {
			t.Errorf("%s shows %q, want a refusal", address, got)
		}
	}
	_, refused := world.seen()
	for _, want := range []string{"127.0.0.1:" + insidePort + " address", "rebind.example:" + insidePort + " address", "localhost:" + insidePort + " local_name"} {
		if !slices.Contains(refused, want) {
			t.Errorf("refused %v, want %q among them", refused, want)
		}
	}
	if tcp, packets := reached.Load(), datagrams.Load(); tcp != 0 || packets != 0 {
		t.Errorf("what is inside was reached by %d connections and %d datagrams", tcp, packets)
	}
}

// accept takes a WebSocket and says nothing on it.
func accept(w http.ResponseWriter, r *http.Request) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	io.Copy(io.Discard, buffered)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
