package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/internal/browsertest"
	"github.com/parley-run/parley/server/datadir"
)

// wire is the network between a browser and a server, which a test can cut, and at
// which it hears what the browser is told.
type wire struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	heard []byte // by the browser
	conns []net.Conn
}

func newWire(t *testing.T) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener}
	t.Cleanup(func() {
		listener.Close()
		w.set(true)
		w.running.Wait()
	})
	return w
}

// url is where the server is met over the wire.
func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

// to joins the wire to a server.
func (w *wire) to(address string) {
	w.target = strings.TrimPrefix(address, "http://")
	w.running.Go(func() {
		for {
			near, err := w.listener.Accept()
			if err != nil {
				return
			}
			w.running.Go(func() { w.join(near) })
		}
	})
}

func (w *wire) join(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	cut := w.cut
	w.conns = append(w.conns, near, far)
	w.mu.Unlock()
	if cut {
		near.(*net.TCPConn).SetLinger(0)
		return
	}
	w.running.Go(func() {
		io.Copy(far, near)
		far.Close()
	})
	io.Copy(io.MultiWriter(near, w), far)
}

// Write hears what comes from the server.
func (w *wire) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text...)
	return len(text), nil
}

// said is all that came from the server.
func (w *wire) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.heard)
}

// set cuts the wire, and all that goes over it, or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for _, conn := range w.conns {
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
		w.conns = nil
	}
}

// C-30.4, SSE-21: a line that is lost in mid-answer is said to be lost, heals by
// cursor, and redraws nothing; what is said meanwhile is said once, when it is back.
func testLostLine(t *testing.T, browser context.Context) {
	wire := newWire(t)
	r := newRoom(t, browser, func(s *Settings) { s.AllowedOrigins = []string{wire.url()} })
	wire.to(r.URL())
	id := r.talked("before")
	p := browsertest.Open(t, browser, r.link(wire.url()))
	p.Expect("net::ERR_") // the browser tells of each connection that fails
	p.Until(`!document.querySelector("#room").hidden`)
	show(p, id, "=== 2")
	write(p, "without end")
	p.Until(newest + `.querySelector(".body").textContent.includes("word word")`)
	p.Evaluate[bool](`document.querySelectorAll(".entry").forEach((e) => e.kept = true), true`)
	wire.set(true)
	p.Until(`document.querySelector("#line").textContent.includes("connection is lost")`)
	p.Shot(shots + "/lost.png")
	write(p, "said offline")
	p.Until(newest + `.querySelector(".mark").textContent === "waiting" && ` + newest + `.querySelector(".why").textContent.includes("cannot be reached")`)
	wire.set(false)
	p.Until(`document.querySelector("#line").textContent === ""`)
	p.Until(`document.querySelectorAll(".entry").length === 6 && ` + newest + `.dataset.status === "complete"`)
	if got := p.Evaluate[string](`[...document.querySelectorAll(".entry")].map((e) => e.kept ? "kept" : "new").join()`); got != "kept,kept,kept,new,new,new" {
		t.Errorf("entries are %s; want those before the cut kept, but for the record of the live answer", got)
	}
	page, err := r.me().History(t.Context(), id, conversation.HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := slices.DeleteFunc(page.Entries, func(record conversation.Record) bool {
		return record.Text != "said offline" || record.Role != conversation.RoleUser
	})
	if len(said) != 1 {
		t.Errorf("the message is recorded %d times, want once", len(said))
	}
}

// What is on its way, or begun, in one conversation is not lost by looking at
// another one.
func testSwitching(t *testing.T, browser context.Context) {
	wire := newWire(t)
	r := newRoom(t, browser, func(s *Settings) { s.AllowedOrigins = []string{wire.url()} })
	wire.to(r.URL())
	one, other := r.talked("one"), r.talked("other")
	p := browsertest.Open(t, browser, r.link(wire.url()))
	p.Expect("net::ERR_")
	p.Until(`!document.querySelector("#room").hidden`)
	show(p, one, "=== 2")
	wire.set(true)
	write(p, "on its way")
	p.Until(newest + `.querySelector(".mark").textContent === "waiting"`)
	p.Evaluate[bool](`document.querySelector("#text").focus(), true`)
	p.Press("begun")
	wire.set(false)
	show(p, other, "=== 2")
	p.Until(`document.querySelector("#text").value === ""`)
	answer(t, r.me(), one, 2)
	show(p, one, "=== 4")
	p.Until(`document.querySelector("#text").value === "begun"`)
}

// C-17: older messages come while scrolling up, each once and in order, and what
// is read stays where it is.
func testTwoThousand(t *testing.T, browser context.Context) {
	const turns = 1000
	queue := false
	r := newRoom(t, browser, func(s *Settings) { s.BargeIn = &queue })
	id := r.talked()
	const batch = 250 // of the 256 that may wait
	me := r.me()
	for begun := 0; begun < turns; begun += batch {
		for i := range batch {
			if _, err := me.Send(t.Context(), id, conversation.Message{Text: fmt.Sprintf("message %d, which says no more than that", begun+i+1)}); err != nil {
				t.Fatal(err)
			}
		}
		answer(t, me, id, begun+batch)
	}
	p := r.enter()
	show(p, id, "=== 50")
	p.Until(`document.querySelector("#scroll").scrollTop > 600`)
	moved := p.Evaluate[float64](`(async () => {
		const place = document.querySelector("#scroll"), entries = document.querySelector("#entries");
		let most = 0;
		while (entries.childElementCount < ` + fmt.Sprint(2*turns) + `) {
			const first = entries.firstChild, count = entries.childElementCount;
			place.scrollTop = 300;
			const before = first.getBoundingClientRect().top;
			await new Promise((done) => new MutationObserver((_, seen) => { seen.disconnect(); done(); }).observe(entries, { childList: true }));
			most = Math.max(most, Math.abs(first.getBoundingClientRect().top - before));
			await new Promise(requestAnimationFrame);
		}
		return most;
	})()`)
	if moved > 1 {
		t.Errorf("what was read moved by %g pixels when older messages came", moved)
	}
	if got := p.Evaluate[bool](`[...document.querySelectorAll(".entry")].every((e, i) => Number(e.dataset.turn) === Math.floor(i / 2) + 1)`); !got {
		t.Error("the messages are not in order, each once")
	}
	p.Click("#jump button")
	p.Until(`document.querySelector("#jump").hidden`)
}

// The search finds a title that is not among the newest fifty.
func testSearch(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	r.talked("a needle, long ago")
	for range 60 {
		if _, err := r.me().Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p := r.enter()
	p.Until(`document.querySelectorAll("#list li").length === 50`)
	p.Click("#search")
	p.Press("NEEDLE")
	p.Until(`document.querySelectorAll("#list li").length === 1 && document.querySelector("#list .name").textContent === "a needle, long ago"`)
	p.Press("s in hay")
	p.Until(`document.querySelectorAll("#list li").length === 0 && document.querySelector("#list-note").textContent === "No title has these words."`)
}

// C-32.12: when the session is over the page says so; a new link in the same tab
// goes on, and nothing that was written is lost.
func testSessionEnds(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("hello")
	p := r.enter()
	show(p, id, "=== 2")
	tokens, err := r.Directory().Tokens()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if token.Kind == datadir.KindSession {
			if err := r.Directory().RevokeToken(t.Context(), token.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.Expect("status of 401")
	write(p, "too late")
	p.Until(`document.querySelector("#door-text").textContent.includes("Your session is over.")`)
	p.Evaluate[string](`location.hash = ` + browsertest.Quote(strings.TrimPrefix(r.link(""), "/")))
	p.Until(`!document.querySelector("#room").hidden`)
	show(p, id, "=== 3")
	p.Until(newest + `.querySelector(".mark").textContent === "not sent"`)
	p.Click(`.entry:last-child .tools button`)
	p.Until(`document.querySelector("#text").value === "too late"`)
}

// C-26: where nothing more can be said the page says why.
func testClosed(t *testing.T, browser context.Context) {
	r := newRoom(t, browser)
	id := r.talked("hello")
	p := r.enter()
	show(p, id, "=== 2")
	if err := r.me().Close(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.Until(`document.querySelector("#advice").textContent === "This conversation is closed." && document.querySelector("#text").disabled`)
	p.Shot(shots + "/closed.png")
	p.Reload()
	p.Until(`document.querySelectorAll(".entry").length === 2 && document.querySelector("#text").disabled`)
	p.Expect("status of 404")
	p.Evaluate[string](`location.hash = "#/c/nowhere"`)
	p.Until(`document.querySelector("#advice").textContent === "This conversation is not there, or is not yours."`)
}
