package gateway

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/conversation"
)

// endless says a word a second: to "long" without an end, else two.
const endless = "when has \"long\"\n  forever \"so \" 1s\notherwise\n  words \"it is\" 1s\n  wait 1s"

// post sends an order of ann's and wants its answer.
func (w *world) post(id, route, body string, want int) {
	w.t.Helper()
	if got := w.ask(request("POST", "/v1/conversations/"+id+route, "ann@acme", body)); got.Code != want {
		w.t.Errorf("POST %s %s: %d %s; want %d", route, body, got.Code, got.Body, want)
	}
}

// transcript is the whole history as lines: ord, turn, status and text.
func (w *world) transcript(id string) (lines []string) {
	w.t.Helper()
	page, err := w.client.History(context.Background(), ann, id, conversation.HistoryOptions{Limit: conversation.MaxPage})
	if err != nil || !page.Done {
		w.t.Fatalf("History = %+v, %v", page, err)
	}
	for _, r := range page.Entries {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d of %d %s %s", r.Ord, r.Turn, r.Status, r.Text)))
	}
	return lines
}

// resume opens a stream of ann's behind an entry, "" for the beginning.
func (w *world) resume(id, last string) (seen *tape, leave func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := request("GET", "/v1/conversations/"+id+"/events", "ann@acme", "").WithContext(ctx)
	r.Header.Set("Last-Event-ID", last)
	seen = &tape{}
	var open sync.WaitGroup
	open.Go(func() { w.handler.ServeHTTP(seen, r) })
	synctest.Wait()
	return seen, func() { cancel(); open.Wait() }
}

// messages are the durable frames on a tape, by id.
func (t *tape) messages() (ids, data []string) {
	for r := newReader(strings.NewReader(t.text())); ; {
		e, err := r.next()
		if err != nil {
			return ids, data
		}
		if e.name == string(eventMessage) {
			ids, data = append(ids, e.id), append(data, e.data)
		}
	}
}

// C-46.2, C-46.3, C-46.6: a stop ends the turn that it names, if that turn runs:
// in mid-stream, and not when it is over, twice over, or not begun. The stream
// tells the words, then the record of what there was.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, endless)
		id := w.start()
		tape, leave := w.resume(id, "")
		defer leave()
		w.post(id, "/stop", `{"turn":1}`, 202) // not begun
		w.turn(id, "long ago")
		time.Sleep(2500 * time.Millisecond)
		w.post(id, "/stop", `{"turn":2}`, 202) // not begun either
		w.post(id, "/stop", `{"turn":7}`, 202)
		time.Sleep(time.Second)
		w.post(id, "/stop", `{"turn":1}`, 202)
		w.post(id, "/stop", `{"turn":1}`, 202)
		synctest.Wait()
		want := []string{"status", "message # long ago", "delta so", "delta so", "delta so", "message # so so so"}
		if diff := cmp.Diff(want, tape.heard()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if _, data := tape.messages(); !strings.Contains(data[1], `"status":"interrupted"`) {
			t.Errorf("the record of the answer is %s", data[1])
		}

		w.turn(id, "a long time")
		time.Sleep(1500 * time.Millisecond)
		w.post(id, "/stop", `{"turn":1}`, 202) // over
		time.Sleep(time.Second)
		if got := w.ask(request("POST", "/v1/conversations/"+id+"/stop", "bob@acme", `{"turn":2}`)); got.Code != 404 {
			t.Errorf("a stranger's stop: %d", got.Code)
		}
		time.Sleep(time.Second)
		w.post(id, "/stop", `{"turn":2}`, 202)
		synctest.Wait()
		w.say(id, "short")
		w.end(id)
		w.post(id, "/stop", `{"turn":3}`, 202) // the conversation is over too
		want = []string{
			"1 of 1 accepted long ago", "2 of 1 interrupted so so so", "3 of 2 accepted a long time", "4 of 2 interrupted so so so",
			"5 of 3 accepted short", "6 of 3 complete it is",
		}
		if diff := cmp.Diff(want, w.transcript(id)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
	})
}

// C-46.3: a stop that races with the next message ends what it names, and never
// the answer to that message, whichever comes first.
func TestStopRacesWithMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, endless)
		for range 20 {
			id := w.start()
			w.turn(id, "long ago")
			time.Sleep(1500 * time.Millisecond)
			var both sync.WaitGroup
			both.Go(func() { w.post(id, "/stop", `{"turn":1}`, 202) })
			both.Go(func() { w.post(id, "/turns", `{"text":"next"}`, 202) })
			both.Wait()
			time.Sleep(time.Minute)
			want := []string{"1 of 1 accepted long ago", "2 of 1 interrupted so", "3 of 2 accepted next", "4 of 2 complete it is"}
			if diff := cmp.Diff(want, w.transcript(id)); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		}
	})
}

// C-14.1, T40, T65: a message cuts the answer that is being written. On the stream
// its words are followed by its record, then by the question that cut it, and no
// word of one turn bears the number of the other. Who comes back finds the same
// entries under the same ids.
func TestInterruptedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, endless)
		id := w.start()
		first, leave := w.resume(id, "")
		w.turn(id, "long ago")
		time.Sleep(2500 * time.Millisecond)
		w.post(id, "/turns", `{"text":"what is it?"}`, 202)
		time.Sleep(time.Minute)
		leave()
		want := []string{
			"status", "message # long ago", "delta so", "delta so", "message # so so",
			"message # what is it?", "delta it", "delta is", "message # it is",
		}
		if diff := cmp.Diff(want, first.heard()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		for _, glued := range []string{`"turn":1,"text":"it`, `"turn":2,"text":"so`} {
			if strings.Contains(first.text(), glued) {
				t.Errorf("%s is on the stream:\n%s", glued, first.text())
			}
		}
		again, leave := w.resume(id, "")
		leave()
		ids, data := first.messages()
		idsAgain, dataAgain := again.messages()
		if diff := cmp.Diff(append(ids, data...), append(idsAgain, dataAgain...)); diff != "" || len(ids) != 4 {
			t.Errorf("entries after coming back (-first +again):\n%s", diff)
		}
	})
}

// T24, check 39: who closes the stream ends nothing but the stream.
func TestClosedStreamCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, "otherwise\n  words \"a b c d\" 1s")
		id := w.start()
		_, leave := w.resume(id, "")
		w.turn(id, "go")
		time.Sleep(1500 * time.Millisecond)
		leave()
		time.Sleep(time.Minute)
		if got, want := w.transcript(id), []string{"1 of 1 accepted go", "2 of 1 complete a b c d"}; !slices.Equal(got, want) {
			t.Errorf("the transcript is %q, want %q", got, want)
		}
	})
}

// T25, T38, T98, T100: who comes back in mid-answer, from anywhere, is shown all
// of it, finds the turn in the history, and stops it. A stream that is resumed
// behind the stop repeats nothing, and goes on (T37).
func TestStopAfterReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLiveWorld(t, endless)
		id := w.start()
		before, leave := w.resume(id, "")
		w.turn(id, "long ago")
		time.Sleep(1500 * time.Millisecond)
		leave()
		time.Sleep(time.Second)

		ids, _ := before.messages()
		back, leave := w.resume(id, ids[0])
		time.Sleep(time.Second)
		got := w.ask(request("GET", "/v1/conversations/"+id+"/history?direction=backward&limit=1", "ann@acme", ""))
		var page conversation.Page
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || len(page.Entries) != 1 || page.Entries[0].Status != conversation.StatusAccepted {
			t.Fatalf("the newest entry: %s, %v; want a message without an answer (C-15.15)", got.Body, err)
		}
		w.post(id, "/stop", fmt.Sprintf(`{"turn":%d}`, page.Entries[0].Turn), 202)
		synctest.Wait()
		leave()
		if diff := cmp.Diff([]string{"status", "partial so so", "delta so", "message # so so so"}, back.heard()); diff != "" {
			t.Errorf("after coming back (-want +got):\n%s", diff)
		}

		ids, _ = back.messages()
		last, leave := w.resume(id, ids[0])
		defer leave()
		w.post(id, "/turns", `{"text":"short"}`, 202)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"status", "message # short", "delta it", "delta is", "message # it is"}, last.heard()); diff != "" {
			t.Errorf("behind the stop (-want +got):\n%s", diff)
		}
	})
}
