package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// secretTalk calls a tool whose class bob is not cleared for, and says what it found
// slowly.
const secretTalk = "when has \"plain\"\n  words \"nothing to hide\" 1s\notherwise\n  call files {}\nthen\n  words \"CANARY is what the files say\" 1s"

// follow opens a stream of somebody's on a tape, in a bubble.
func (w *world) follow(id, token string) (*tape, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	seen, done := &tape{}, make(chan struct{})
	r := request("GET", "/v1/conversations/"+id+"/events?render=html", token, "").WithContext(ctx)
	go func() {
		defer close(done)
		w.handler.ServeHTTP(seen, r)
	}()
	synctest.Wait()
	return seen, func() { cancel(); <-done }
}

// asks sends a text of somebody's and lets a minute pass.
func (w *world) asks(who *identity.Principal, id, text string) {
	w.t.Helper()
	if _, err := w.client.SendTurn(context.Background(), who, id, conversation.Message{Text: text}); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

// C-37.3, C-37.8, C-37.9, C-30.13: of an answer that bob is not cleared for nothing
// is in any byte of his stream or history, resumed or not, with HTML or not, and its
// live words go to ann alone. What is not restricted both see.
func TestStreamsShowWhatOneMaySee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRoomWorld(t, secretTalk)
		w.gateway.config.HTML = bracketed
		id := w.room(bob)
		anns, leaveAnns := w.follow(id, "ann@acme")
		bobs, leaveBobs := w.follow(id, "bob@acme")
		w.asks(ann, id, "plain words")
		w.asks(ann, id, "look into it")
		w.asks(ann, id, "what was it, CANARY?") // of an answer that has the class in its context, the question has it too
		w.asks(bob, id, "plain, please")
		again, leaveAgain := w.follow(id, "bob@acme")
		history := w.ask(request("GET", "/v1/conversations/"+id+"/history?render=html", "bob@acme", "")).Body.String()
		for _, leave := range []func(){leaveAnns, leaveBobs, leaveAgain} {
			leave()
		}
		for where, text := range map[string]string{"stream": bobs.text(), "resumed stream": again.text(), "history": history} {
			for _, canary := range []string{"CANARY", "secret", "files", "turn:" + id + ":o1"} {
				if strings.Contains(text, canary) {
					t.Errorf("bob's %s has %q: %s", where, canary, text)
				}
			}
			if n := strings.Count(text, `"status":"restricted"`); n != 3 || !strings.Contains(text, "nothing to hide") {
				t.Errorf("bob's %s has %d restricted entries; want 3: %s", where, n, text)
			}
		}
		for _, want := range []string{"CANARY", `"classes":["secret"]`, "event: delta", `"turnExecutionId":"turn:` + id + `:o1:`, "<p>CANARY"} {
			if !strings.Contains(anns.text(), want) {
				t.Errorf("ann's stream has no %q: %s", want, anns.text())
			}
		}
		if own := strings.Count(bobs.text(), "event: delta"); own == 0 || own != strings.Count(bobs.text(), "event: delta\ndata: {\"turn\":4,") {
			t.Errorf("bob's stream has words of others, or none of his own: %s", bobs.text())
		}
	})
}

// C-37.10: who is removed under an open stream, between two entries of one page, is
// given none of those that come after it, nor another word; the stream ends as for a
// caller whom nobody knows any more, and does not wait for that to be asked again.
func TestRemovalUnderAnOpenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRoomWorld(t, secretTalk)
		id := w.room(bob)
		for range 3 {
			w.asks(ann, id, "plain")
		}
		seen := &tape{onFlush: func(seen *tape) {
			if ids, _ := seen.messages(); len(ids) == 3 {
				if err := w.client.RemoveParticipant(context.Background(), ann, id, bob.Identity); err != nil {
					t.Error(err)
				}
			}
		}}
		begun := time.Now()
		w.handler.ServeHTTP(seen, request("GET", "/v1/conversations/"+id+"/events", "bob@acme", ""))
		if names := seen.events(); !slices.Equal(names, []string{"status", "message", "message", "message", "error"}) {
			t.Errorf("the stream was %v", names)
		}
		if !strings.HasSuffix(seen.text(), "event: error\ndata: {\"error\":\"not found\"}\n\n") || time.Since(begun) > time.Second {
			t.Errorf("after %v it ended with %q", time.Since(begun), seen.text())
		}
	})
}

// C-37.9, C-37.10: nor is who is removed in the middle of an answer to them told how
// it goes on; and where nobody can say who takes part they are not, either.
func TestRemovalInMidAnswer(t *testing.T) {
	for name, refuse := range map[string]func(*world, string) error{
		"removed": func(w *world, id string) error {
			return w.client.RemoveParticipant(context.Background(), ann, id, bob.Identity)
		},
		"unknown": func(w *world, _ string) error {
			w.store.OnRead(func(stream string) error {
				if strings.HasPrefix(stream, conversation.ParticipantsPrefix) {
					return errors.New("disk at QWERTZ")
				}
				return nil
			})
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newRoomWorld(t, secretTalk)
			id := w.room(bob)
			seen, leave := w.follow(id, "bob@acme")
			if _, err := w.client.SendTurn(t.Context(), bob, id, conversation.Message{Text: "plain"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond)
			if err := refuse(w, id); err != nil {
				t.Fatal(err)
			}
			told := len(seen.text())
			time.Sleep(time.Minute)
			leave()
			rest := seen.text()[told:]
			if !strings.HasPrefix(rest, "event: error\n") || strings.Contains(rest, "hide") || strings.Contains(rest, "QWERTZ") || !strings.Contains(seen.text(), "nothing") {
				t.Errorf("%s: afterwards the stream had %q, behind %q", name, rest, seen.text()[:told])
			}
		})
	}
}
