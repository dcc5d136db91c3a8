package gateway

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stall opens a stream on a connection that takes nothing but what is read from it,
// and reads as far as its status.
func (p *peers) stall(t *testing.T, id string) *reader {
	t.Helper()
	conn := p.listener.dial()
	t.Cleanup(func() { conn.Close() })
	openStream(conn, id)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(response.Body)
	r.expect(t, eventStatus)
	return r
}

// C-28.11, C-32.10, SSE-12, SSE-15: beside a reader that has stalled a thousand
// posts and all that they bring take no time at all, and each of the others gets
// each entry.
func TestManyPostsBesideStalledReader(t *testing.T) {
	posts := 1_000
	if underRace {
		posts = 100
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.peers(t, nil)
		id := w.start()
		p.stall(t, id)
		var all sync.WaitGroup
		counts := make([]int, 99)
		for i := range counts {
			all.Go(func() {
				p.read(i%2 == 1, id, "", 1<<40, func(e sse) {
					if event(e.name) == eventMessage {
						counts[i]++
					}
				})
			})
		}
		synctest.Wait()
		begun := time.Now()
		for i := range posts {
			got := w.ask(request("POST", "/v1/conversations/"+id+"/turns", "ann@acme", fmt.Sprintf(`{"text":"%d"}`, i)))
			if got.Code != 202 {
				t.Fatalf("post %d: %d %s", i, got.Code, got.Body)
			}
			synctest.Wait()
		}
		if took := time.Since(begun); took != 0 || w.open() != 100 {
			t.Errorf("%d posts took %v beside a stalled reader, %d streams are open", posts, took, w.open())
		}
		w.end(id)
		all.Wait()
		for i, n := range counts {
			if n != 2*posts {
				t.Errorf("reader %d got %d entries, want %d", i, n, 2*posts)
			}
		}
	})
}

// C-32.10, SSE-17, SSE-18, SSE-19, SSE-20: a reader stalls while entries of 200 KiB
// pile up and words flow: in the replay, or behind it. Others of the same
// conversation get all of it at once. The one who stalled is cut off, drops nothing
// silently, and finds the rest, with the close, when it comes back.
func TestSSE19StalledReaderComesBack(t *testing.T) {
	entries := 10
	if underRace {
		entries = 6
	}
	for _, inReplay := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newLiveWorld(t, "when has \"big\"\n  repeat 200 \""+strings.Repeat("x", 1024)+"\"\notherwise\n  repeat 100 \"word \" 1ms")
			p := w.peers(t, nil)
			id := w.start()
			fill := func() {
				for range entries {
					w.say(id, "big")
				}
			}
			if inReplay {
				fill()
			}
			stalled := p.stall(t, id)
			synctest.Wait()
			begun := time.Now()
			if !inReplay {
				fill()
			}
			other, leave := w.resume(id, "")
			w.say(id, "flow")
			if took := time.Since(begun); took != 100*time.Millisecond {
				t.Errorf("in replay %t: beside a stalled reader the words took %v, want 100ms", inReplay, took)
			}
			synctest.Wait()
			if names := other.events(); len(names) < 1+2*entries+2+100 || names[len(names)-1] != "message" {
				t.Errorf("in replay %t: another reader got %d events", inReplay, len(names))
			}
			time.Sleep(writeWithin + 2*time.Second)
			synctest.Wait()
			if open := w.open(); open != 1 {
				t.Errorf("in replay %t: %d streams are open; want the other one", inReplay, open)
			}
			w.end(id)
			leave()
			var seen []string
			last := ""
			for e, err := stalled.next(); err == nil; e, err = stalled.next() {
				if e.id != "" {
					seen, last = append(seen, e.id), e.id
				}
			}
			if len(seen) > 5 {
				t.Errorf("in replay %t: a stalled reader was sent %d entries of 200 KiB", inReplay, len(seen))
			}
			var name string
			p.read(false, id, last, 1<<40, func(e sse) {
				name = e.name
				if e.id != "" {
					seen = append(seen, e.id)
				}
			})
			if want := w.ids(id); !slices.Equal(seen, want) || name != string(eventClosed) {
				t.Errorf("in replay %t: after coming back it has %d entries of %d, and the last event is %s", inReplay, len(seen), len(want), name)
			}
		})
	}
}
