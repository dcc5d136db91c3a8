package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
)

// heard are the events on a tape: the name, whether it has an id, and the text.
func (t *tape) heard() []string {
	var lines []string
	for r := newReader(strings.NewReader(t.text())); ; {
		e, err := r.next()
		if err != nil {
			return lines
		}
		line := e.name
		if e.id != "" {
			line += " #"
		}
		if _, text, ok := strings.Cut(e.data, `"text":"`); ok {
			text, _, _ = strings.Cut(text, `"`)
			line += " " + text
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
}

// turn sends a turn of ann's and does not wait.
func (w *world) turn(id, text string) {
	w.t.Helper()
	if _, err := w.client.SendTurn(context.Background(), ann, id, conversation.Message{Text: text}); err != nil {
		w.t.Fatal(err)
	}
}

// C-30.2, C-30.3, C-30.5, C-30.15, C-28.8, T100: words come between the question
// and the answer, without ids; who comes in the middle gets a partial behind the
// question; who comes back behind the end gets nothing again (T37).
func TestStreamWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  words \"a b c d\" 1s\n  wait 1s")
		id := w.start()
		ctx, cancel := context.WithCancel(t.Context())
		early, done := w.stream(ctx, id)
		synctest.Wait()
		w.turn(id, "go")
		time.Sleep(2500 * time.Millisecond)
		late, done2 := w.stream(ctx, id)
		time.Sleep(time.Minute)
		w.turn(id, "on")
		time.Sleep(time.Minute)
		second := []string{"message # on", "delta a", "delta b", "delta c", "delta d", "message # a b c d"}
		want := append([]string{"status", "message # go", "delta a", "delta b", "delta c", "delta d", "message # a b c d"}, second...)
		if diff := cmp.Diff(want, early.heard()); diff != "" {
			t.Errorf("from the beginning (-want +got):\n%s", diff)
		}
		want = append([]string{"status", "message # go", "partial a b", "delta c", "delta d", "message # a b c d"}, second...)
		if diff := cmp.Diff(want, late.heard()); diff != "" {
			t.Errorf("from the middle (-want +got):\n%s", diff)
		}
		for _, frame := range []string{
			"event: delta\ndata: {\"turn\":1,\"text\":\"c \"}\n\n", "event: partial\ndata: {\"turn\":1,\"text\":\"a b \"}\n\n",
		} {
			if !strings.Contains(late.text(), frame) {
				t.Errorf("%q is not on the stream:\n%s", frame, late.text())
			}
		}
		again := &tape{}
		r := request("GET", "/v1/conversations/"+id+"/events?cursor=99.0", "ann@acme", "").WithContext(ctx)
		var all sync.WaitGroup
		all.Go(func() { w.handler.ServeHTTP(again, r) })
		synctest.Wait()
		if diff := cmp.Diff([]string{"status"}, again.heard()); diff != "" {
			t.Errorf("behind the end (-want +got):\n%s", diff)
		}
		cancel()
		<-done
		<-done2
		all.Wait()
	})
}

// T18: a reply that fails while its words are on their way still comes to its end,
// behind them, and so does the conversation.
func TestStreamOfAFailingReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  say \"I was about\"\n  wait 1s\n  fail cut")
		id := w.start()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tape, done := w.stream(ctx, id)
		synctest.Wait()
		w.turn(id, "go")
		time.Sleep(2 * time.Second)
		if err := w.client.Close(t.Context(), ann, id); err != nil {
			t.Fatal(err)
		}
		<-done
		got := strings.Join(tape.heard(), "; ")
		if want := "status; message # go; delta I was about; message # I was about; closed"; got != want {
			t.Errorf("the stream is %q, want %q", got, want)
		}
		if !strings.Contains(tape.text(), `"status":"failed"`) {
			t.Errorf("the reply did not fail:\n%s", tape.text())
		}
	})
}

// C-28.6, C-28.10, T40, T42, T55: the process dies in mid-reply. Who comes back
// to the next one is told that the reply begins again, and sees its end.
func TestStreamWordsAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "otherwise\n  words \"a b c\" 1s\n  wait 1s"
		w := newLiveWorld(t, text)
		id := w.start()
		w.turn(id, "go")
		time.Sleep(1500 * time.Millisecond)
		w.rt.Close()
		next := newWorldOn(t, w.store, text, conversation.NewHub(conversation.HubConfig{}))
		ctx, cancel := context.WithCancel(t.Context())
		tape, done := next.stream(ctx, id)
		synctest.Wait()
		if err := next.rt.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		want := []string{"status", "message # go", "reset", "delta a", "delta b", "delta c", "message # a b c"}
		if diff := cmp.Diff(want, tape.heard()); diff != "" {
			t.Errorf("after the crash (-want +got):\n%s", diff)
		}
		if !strings.Contains(tape.text(), "event: reset\ndata: {\"turn\":1}\n\n") {
			t.Errorf("no frame of a reset:\n%s", tape.text())
		}
		cancel()
		<-done
	})
}

// C-28.8: words that are still to be taken when the record has been read are
// never sent behind it.
func TestNoWordsBehindRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  words \"a b c\" 1s\n  wait 1s")
		id := w.start()
		slept := false
		tape := &tape{onFlush: func(*tape) { // the client takes long to accept the first frame
			if !slept {
				slept = true
				w.turn(id, "go")
				time.Sleep(5 * time.Second)
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			w.handler.ServeHTTP(tape, request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx))
		})
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"status", "message # go", "message # a b c"}, tape.heard()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		cancel()
		all.Wait()
	})
}

// C-28.11, C-32.10, SSE-12, SSE-15, SSE-17, check 35: a client that does not read costs
// neither the model nor the other clients anything. What it missed is merged, or
// it is cut and comes back for the record.
func TestStalledClientOfWords(t *testing.T) {
	for _, stall := range []time.Duration{4 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newLiveWorld(t, "otherwise\n  repeat 400 \"word \" 9ms\n  wait 400ms")
			_, listener := w.piped(t)
			id := w.start()
			stalled := listener.dial() // it buffers nothing
			defer stalled.Close()
			openStream(stalled, id)
			slow := bufio.NewReader(stalled)
			response, err := http.ReadResponse(slow, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := newReader(response.Body)
			r.expect(t, eventStatus)
			ctx, cancel := context.WithCancel(t.Context())
			var tapes []*tape
			var done []<-chan time.Time
			for range 9 {
				tape, ended := w.stream(ctx, id)
				tapes, done = append(tapes, tape), append(done, ended)
			}
			synctest.Wait()
			begun := time.Now()
			w.say(id, "go")
			if took := time.Since(begun); took != 4*time.Second {
				t.Errorf("the model took %v beside a stalled client, want 4s", took)
			}
			synctest.Wait()
			for _, tape := range tapes {
				if got := len(tape.heard()); got != 1+2+400 {
					t.Errorf("another client got %d events, want each delta", got)
				}
			}
			time.Sleep(stall - 4*time.Second)
			var names []string
			for e, err := r.next(); err == nil && len(names) < 5; e, err = r.next() {
				names = append(names, e.name)
				if e.name == "message" && len(names) > 1 {
					break
				}
			}
			if stall < writeWithin && len(names) == 0 || stall > writeWithin && w.open() != 9 {
				t.Errorf("after %v the stalled client got %v, %d streams are open", stall, names, w.open())
			}
			if stall < writeWithin && (names[len(names)-1] != "message" || len(names) > 4) {
				t.Errorf("who was behind gets %v, want what was missed in one piece", names)
			}
			cancel()
			for _, ended := range done {
				<-ended
			}
		})
	}
}

// C-28.9, C-31.7, C-32.8, check 8: the 65th stream of a conversation is a 429, for who may read
// it; a stranger gets the 404. A place that is left is free.
func TestTooManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  reply")
		id := w.start()
		ctx, cancel := context.WithCancel(t.Context())
		var done []<-chan time.Time
		for range conversation.DefaultMaxReaders {
			_, ended := w.stream(ctx, id)
			done = append(done, ended)
		}
		synctest.Wait()
		got := w.ask(request("GET", "/v1/conversations/"+id+"/events", "ann@acme", ""))
		if got.Code != 429 || got.Body.String() != `{"error":"TooManyReaders"}` || got.Header().Get("Retry-After") == "" {
			t.Errorf("the 65th: %d %s %v", got.Code, got.Body, got.Header())
		}
		if got := w.ask(request("GET", "/v1/conversations/"+id+"/events", "bob@acme", "")); got.Code != 404 {
			t.Errorf("a stranger: %d", got.Code)
		}
		cancel()
		for _, ended := range done {
			<-ended
		}
		again := &tape{}
		w.handler.ServeHTTP(again, request("HEAD", "/v1/conversations/"+id+"/events", "ann@acme", ""))
		if synctest.Wait(); again.code != 200 {
			t.Errorf("after they left: %d", again.code)
		}
		if n := w.store.Counts().Subscriptions; n != 0 {
			t.Errorf("%d subscriptions live", n)
		}
	})
}

// BenchmarkWords is the cost of one delta for 64 streams of a conversation.
func BenchmarkWords(b *testing.B) {
	piece := func() *conversation.Piece {
		return &conversation.Piece{Words: conversation.Words{Kind: conversation.WordsDelta, Turn: 1, Text: "some words "}}
	}
	for _, once := range []bool{true, false} {
		b.Run(fmt.Sprintf("encoded once %t", once), func(b *testing.B) {
			var frames []byte
			for b.Loop() {
				p := piece()
				for range 64 {
					if !once {
						p = piece()
					}
					frames = append(frames[:0], p.Encoded(frameOf)...)
				}
			}
		})
	}
}
