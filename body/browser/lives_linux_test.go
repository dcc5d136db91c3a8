package browser

import (
	"bufio"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
)

// witness is a host that says what it was told, and takes everything.
type witness struct {
	told  chan string
	stale atomic.Int64 // settlements that it does not take yet
}

func (w *witness) Settled(_ context.Context, _ body.Incarnation, operation string, outcome error) error {
	if w.stale.Add(-1) >= 0 {
		return body.ErrStale
	}
	w.told <- fmt.Sprintf("settled %s: %v", operation, outcome)
	return nil
}

func (w *witness) Ended(_ context.Context, evidence body.Evidence, last int) error {
	w.told <- fmt.Sprintf("ended %s: %s after %d", evidence.Incarnation, evidence.Proof, last)
	return nil
}

// A call that is cut has an unknown outcome, and goes on in the page. It is
// settled when nothing of it acts any more (notes finding 8).
func TestCut(t *testing.T) {
	needChromium(t)
	var hits atomic.Int64
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hit" {
			hits.Add(1)
			select {
			case arrived <- struct{}{}:
			default:
			}
		}
	}))
	defer server.Close()
	b := open(t, server, nil)
	w := &witness{told: make(chan string, 8)}
	b.Attach(w)
	do[Page](t, b, "x.1", Open, OpenInput{server.URL})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	e := effect("x.1", Evaluate, EvaluateInput{`for (;;) await fetch("/hit")`})
	if _, err := b.Perform(ctx, e); !errors.Is(err, context.Canceled) || errors.Is(err, body.ErrRefused) {
		t.Fatalf("Perform that was cut = %v, want an error that is not definite", err)
	}
	if got, want := <-w.told, fmt.Sprintf("settled %s: <nil>", e.Operation); got != want {
		t.Errorf("the host was told %q, want %q", got, want)
	}
	if n := processes(b.profile("x.1")); n > 0 {
		t.Errorf("%d processes live after the call was settled", n)
	}
	if got, want := <-w.told, fmt.Sprintf("ended x.1: closed after %d", e.Number); got != want {
		t.Errorf("the host was told %q, want %q", got, want)
	}
	server.CloseClientConnections()
	before := hits.Load()
	b.background.Wait()
	if after := hits.Load(); after != before {
		t.Errorf("%d requests after the call was settled", after-before)
	}
}

// A Chromium that ends by itself ends its life, and says so.
func TestCrash(t *testing.T) {
	needChromium(t)
	b := open(t, nil, nil)
	w := &witness{told: make(chan string, 8)}
	b.Attach(w)
	do[Text](t, b, "x.1", Read, nil)
	b.mu.Lock()
	first := b.lives["x.1"].process.identity
	b.mu.Unlock()
	first.signal(b.profile("x.1"), syscall.SIGKILL)
	if got := <-w.told; !strings.HasPrefix(got, "ended x.1: closed after ") {
		t.Errorf("the host was told %q, want the end of x.1", got)
	}
	if n := processes(b.profile("x.1")); n > 0 {
		t.Errorf("%d processes live after the end was told", n)
	}
}

// A Chromium that does not start is a definite refusal that says why, and leaves
// nothing (LC-43). So is one that there is not.
func TestNoChromium(t *testing.T) {
	script := filepath.Join(t.TempDir(), "chromium")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no usable sandbox >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{script: `it ended: "no usable sandbox"`, "/nowhere": `no Chromium found: "/nowhere" is no program`} {
		b := open(t, nil, func(c *Config) { c.Executable = program })
		_, err := b.Perform(t.Context(), effect("x.1", Read, nil))
		if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Perform with %s = %v, want a refusal with %q in one line", program, err, want)
		}
		if evidence, err := b.Check(t.Context(), body.Life{Incarnation: "x.1", Begun: 1}); err != nil {
			t.Errorf("Check = %+v, %v", evidence, err)
		}
		if left, _ := os.ReadDir(filepath.Join(b.config.Directory, profiles)); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// With a shared profile, cookies and storage reach the next life; the page, its
// variables, its windows and its pictures do not. Without, nothing does.
func TestNextLife(t *testing.T) {
	needChromium(t)
	server := site(t, map[string]string{"/": `<title>shop</title><script>
		name ||= "window"; const kept = document.cookie + "/" + localStorage.basket</script>`})
	const leave = `document.cookie = "id=7; max-age=999"; localStorage.basket = "full"; var mine = 1; name = "left"; history.pushState(0, "", "#x"); 1`
	const look = `[kept, typeof mine, name, history.length]`
	for _, sharing := range []bool{false, true} {
		b := open(t, server, func(c *Config) { c.SharedProfile = sharing })
		do[Page](t, b, "x.1", Open, OpenInput{server.URL})
		do[Value](t, b, "x.1", Evaluate, EvaluateInput{leave})
		if err := b.Stop(t.Context(), body.Life{Incarnation: "x.1", Begun: 2}, func(context.Context) error { return nil }); err != nil {
			t.Fatalf("Stop = %v", err)
		}
		if text := do[Text](t, b, "x.2", Read, nil); text.URL != "about:blank" || text.Text != "" {
			t.Errorf("shared %t: the next life begins on %q with %q", sharing, text.URL, text.Text)
		}
		do[Page](t, b, "x.2", Open, OpenInput{server.URL})
		want := `["/undefined","undefined","window",2]`
		if sharing {
			want = `["id=7/full","undefined","window",2]`
		}
		got := do[Value](t, b, "x.2", Evaluate, EvaluateInput{look})
		if diff := cmp.Diff(want, string(got.Value)); diff != "" {
			t.Errorf("shared %t: the next life sees (-want +got):\n%s", sharing, diff)
		}
	}
}

// childEnv names the directory of the child of TestKilled.
const childEnv = "PARLEY_TEST_BROWSER"

// TestChild is a server that owns a browser, until it is killed. TestKilled starts it;
// without that it is nothing.
func TestChild(t *testing.T) {
	directory := os.Getenv(childEnv)
	if directory == "" {
		return
	}
	b, err := New(Config{Directory: directory})
	if err != nil {
		t.Fatal(err)
	}
	e := effect("x.1", Read, nil)
	var noted jsontext.Value
	e.Note = func(_ context.Context, reference jsontext.Value) error { noted = reference.Clone(); return nil }
	if _, err := b.Perform(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("noted %s\n", noted)
	select {}
}

// A server that is killed takes its Chromium along, and the next one proves it.
// One that somehow lives on with the profile is seen, and exactly it is ended.
func TestKilled(t *testing.T) {
	needChromium(t)
	directory := t.TempDir()
	server := exec.Command(os.Args[0], "-test.run=^TestChild$")
	server.Env = append(os.Environ(), childEnv+"="+directory)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	life := body.Life{Incarnation: "x.1", Begun: 1}
	for lines := bufio.NewScanner(out); life.Reference == nil && lines.Scan(); {
		if noted, ok := strings.CutPrefix(lines.Text(), "noted "); ok {
			life.Reference = jsontext.Value(noted)
		}
	}
	b := open(t, nil, func(c *Config) { c.Directory = directory })
	if _, err := b.Check(t.Context(), life); !errors.Is(err, body.ErrAlive) {
		t.Errorf("Check beside the living server = %v, want ErrAlive", err)
	}
	_ = server.Process.Kill()
	_ = server.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for err = b.proved(ctx, life); errors.Is(err, body.ErrAlive) && ctx.Err() == nil; err = b.proved(ctx, life) {
	}
	if err != nil {
		t.Fatalf("Check after the server was killed = %v, want evidence", err)
	}

	stray := exec.Command("/bin/sh", "-c", "sleep 600 & wait", profileFlag(b.profile("x.1")))
	other := exec.Command("/bin/sh", "-c", "sleep 600 & wait", profileFlag(b.profile("x.10")))
	for _, command := range []*exec.Cmd{stray, other} {
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	}
	if err := b.proved(ctx, life); !errors.Is(err, body.ErrAlive) {
		t.Errorf("Check beside a stray process = %v, want ErrAlive", err)
	}
	var reaped sync.WaitGroup
	reaped.Go(func() { _ = stray.Wait() })
	if err := b.Stop(ctx, life, func(context.Context) error { return nil }); err != nil {
		t.Errorf("Stop = %v", err)
	}
	reaped.Wait()
	if err := b.proved(ctx, life); err != nil {
		t.Errorf("Check after the stop = %v", err)
	}
	if state, _, err := stat(other.Process.Pid); err != nil || state == 'Z' {
		t.Errorf("the process of another life is %c, %v; want it untouched", state, err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()

	// A process id of a former run of the machine, or one that was given again,
	// proves no life.
	for _, change := range []func(*reference){func(r *reference) { r.Boot = "before" }, func(r *reference) { r.Started++ }} {
		boot, err := bootID()
		if err != nil {
			t.Fatal(err)
		}
		own, err := identify(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		r := reference{Profile: b.profile("x.1"), Boot: boot, identity: own}
		if life.Reference, err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if err := b.proved(ctx, life); !errors.Is(err, body.ErrAlive) {
			t.Errorf("Check of a process that lives = %v, want ErrAlive", err)
		}
		change(&r)
		if life.Reference, err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if err := b.proved(ctx, life); err != nil {
			t.Errorf("Check of a process that is another = %v, want evidence", err)
		}
	}
}

// proved returns the error of a check.
func (b *Browser) proved(ctx context.Context, of body.Life) error {
	_, err := b.Check(ctx, of)
	return err
}

// attack tries ways into the network that a page has, TPORT and UPORT being the
// ports of a trap, and says "done".
const attack = `<title>attack</title><body><form id=post method=post target=frame></form><iframe name=frame></iframe><script>
const all = async () => {
	const add = (tag, attributes) => document.body.append(Object.assign(document.createElement(tag), attributes));
	for (const host of ["127.0.0.1", "localhost", "0.0.0.0", "2130706433", "0x7f000001", "[::1]", "[::ffff:7f00:1]", "inside.example"]) {
		const at = "http://" + host + ":TPORT/";
		add("img", { src: at + "img" }); add("iframe", { src: at + "frame" }); add("script", { src: at + "script" });
		add("video", { src: at + "video" }); add("embed", { src: at + "embed" }); add("object", { data: at + "object" });
		add("link", { rel: "stylesheet", href: at + "css" }); add("link", { rel: "prefetch", href: at + "prefetch" });
		add("link", { rel: "preconnect", href: at }); add("link", { rel: "dns-prefetch", href: at }); add("link", { rel: "icon", href: at });
		add("div", { textContent: "x", style: "background: url(" + at + "url)" });
		add("iframe", { srcdoc: '<meta http-equiv=refresh content="0;url=' + at + 'refresh">' });
		navigator.sendBeacon(at + "beacon", "x");
		new EventSource(at + "events").onerror = (e) => e.target.close();
		try { new WebSocket("ws://" + host + ":TPORT/socket") } catch {}
		try { new WebTransport("https://" + host + ":UPORT/") } catch {}
		window.open(at + "window");
		post.action = at + "post"; post.submit();
		await Promise.allSettled([fetch(at + "fetch", { mode: "no-cors" }), fetch("/redirect?" + at, { mode: "no-cors" }), import(at + "module")]);
	}
	try { await navigator.serviceWorker.register("/worker.js") } catch {}
	const worker = new Worker("/worker.js"); await new Promise((done) => { worker.onmessage = worker.onerror = done });
	const peer = new RTCPeerConnection({ iceServers: [{ urls: ["stun:127.0.0.1:UPORT", "turn:127.0.0.1:UPORT"], username: "u", credential: "c" }] });
	peer.createDataChannel("d"); await peer.setLocalDescription();
	while (peer.iceGatheringState != "complete") await new Promise((done) => peer.addEventListener("icegatheringstatechange", done, { once: true }));
	return "done";
}</script>`

// inside.example resolves to loopback.
type inside struct{}

func (inside) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "inside.example" {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}

// A page finds no way to a server on loopback that is not allowed. The same page
// finds it where it is allowed: the trap can be sprung.
func TestAttack(t *testing.T) {
	needChromium(t)
	var trapped, datagrams atomic.Int64
	trap := httptest.NewUnstartedServer(nil)
	trap.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			trapped.Add(1)
		}
	}
	trap.Start()
	t.Cleanup(trap.Close)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for buffer := make([]byte, 2048); ; datagrams.Add(1) {
			if _, _, err := udp.ReadFrom(buffer); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() { _ = udp.Close(); reading.Wait() })
	_, tcpPort, _ := net.SplitHostPort(trap.Listener.Addr().String())
	_, udpPort, _ := net.SplitHostPort(udp.LocalAddr().String())
	ports := strings.NewReplacer("TPORT", tcpPort, "UPORT", udpPort)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
		case "/worker.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, ports.Replace(`fetch("http://127.0.0.1:TPORT/worker", {mode: "no-cors"}).finally(() => self.postMessage?.(1))`))
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, ports.Replace(attack))
		}
	}))
	t.Cleanup(server.Close)
	for _, allowed := range []bool{false, true} {
		b := open(t, server, func(c *Config) {
			c.Resolver, c.Ports = inside{}, []int{trap.Listener.Addr().(*net.TCPAddr).Port}
			if allowed {
				c.Allow = append(c.Allow, trap.Listener.Addr().String())
			}
		})
		page := do[Page](t, b, "x.1", Open, OpenInput{server.URL})
		if page.Title != "attack" {
			t.Fatalf("open = %+v", page)
		}
		if v := do[Value](t, b, "x.1", Evaluate, EvaluateInput{"await all()"}); string(v.Value) != `"done"` {
			t.Errorf("allowed %t: the page came to %+v", allowed, v)
		}
		do[Page](t, b, "x.1", Open, OpenInput{server.URL + "/redirect?" + trap.URL})
		do[Closed](t, b, "x.1", Close, nil)
		if got := trapped.Load() > 0; got != allowed || datagrams.Load() > 0 {
			t.Errorf("allowed %t: %d connections and %d datagrams at the trap", allowed, trapped.Load(), datagrams.Load())
		}
	}
}
