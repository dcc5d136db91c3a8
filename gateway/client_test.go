package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

func dial(t *testing.T, server *httptest.Server, token string) *client.Client {
	t.Helper()
	c, err := client.New(server.URL, token, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The Go client sees over HTTP what the library sees, errors included.
func TestClient(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	c, stranger := dial(t, server, "ann@acme"), dial(t, server, "bob@acme")
	ctx := t.Context()
	id, err := c.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	messageID, err := c.Send(ctx, id, conversation.Message{Text: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Send(ctx, id, conversation.Message{Text: "one", ID: messageID}); err != nil || again != messageID { // T26, T27
		t.Errorf("Send again = %q, %v", again, err)
	}
	w.say(id, "two")
	info, err := c.Status(ctx, id)
	if want := (conversation.Info{ID: id, State: conversation.StateOpen, Turns: 2}); err != nil || info != want {
		t.Errorf("Status = %+v, %v; want %+v", info, err, want)
	}
	page, err := c.History(ctx, id, conversation.HistoryOptions{Limit: 1, Direction: journal.Backward})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Text != "two" || page.Entries[0].Cursor != page.Next {
		t.Errorf("History = %+v, %v", page, err)
	}
	list, err := c.List(ctx, "", 0)
	if err != nil || len(list.Conversations) != 1 || list.Conversations[0].Title != "one" {
		t.Errorf("List = %+v, %v", list, err)
	}
	for name, call := range map[string]func(*client.Client, string) error{
		"Send":   func(c *client.Client, id string) error { _, err := c.Send(ctx, id, conversation.Message{}); return err },
		"Stop":   func(c *client.Client, id string) error { return c.Stop(ctx, id, 0) },
		"Close":  func(c *client.Client, id string) error { return c.Close(ctx, id) },
		"Status": func(c *client.Client, id string) error { _, err := c.Status(ctx, id); return err },
		"History": func(c *client.Client, id string) error {
			_, err := c.History(ctx, id, conversation.HistoryOptions{})
			return err
		},
		"Events": func(c *client.Client, id string) error {
			for _, err := range c.Events(ctx, id, nil) {
				return err
			}
			return nil
		},
	} {
		foreign, missing := call(stranger, id), call(stranger, kernel.NewID())
		if !errors.Is(foreign, conversation.ErrNotFound) || foreign.Error() != missing.Error() {
			t.Errorf("%s of a stranger: %v, and of a missing one %v", name, foreign, missing)
		}
	}
	if _, err := c.Send(ctx, id, conversation.Message{}); !errors.Is(err, conversation.ErrInvalidTurn) {
		t.Errorf("Send of nothing: %v", err)
	}
	if _, err := c.Send(ctx, id, conversation.Message{Text: "a", EditOf: -1}); !errors.Is(err, conversation.ErrInvalidTurn) {
		t.Errorf("Send of an edit of nothing: %v", err)
	}
	if err := c.Stop(ctx, id, 0); !errors.Is(err, conversation.ErrInvalidTurn) {
		t.Errorf("Stop of no turn: %v", err)
	}
	if _, err := c.List(ctx, "!", 0); !errors.Is(err, conversation.ErrInvalidCursor) {
		t.Errorf("List from !: %v", err)
	}
	if _, err := dial(t, server, "eve").Start(ctx); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("Start by nobody: %v", err)
	}
	if err := c.Close(ctx, id); err != nil {
		t.Errorf("Close: %v", err)
	}
	w.end(id)
	if _, err := c.Send(ctx, id, conversation.Message{Text: "late"}); !errors.Is(err, conversation.ErrClosed) {
		t.Errorf("Send after the close: %v", err)
	}
	for event, err := range c.Events(ctx, id, &page.Next) {
		t.Errorf("from the end of a closed conversation: %+v, %v; want nothing", event, err)
	}
}

// cutter is a server in front of another that cuts each stream after some
// bytes.
type cutter struct {
	http.Handler
	after int
}

func (c cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == "text/event-stream" {
		w = &cutting{ResponseWriter: w, left: c.after}
	}
	c.Handler.ServeHTTP(w, r)
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) > c.left {
		c.ResponseWriter.Write(p[:c.left])
		return c.left, io.ErrShortWrite
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// T37, SSE-21: a client whose streams are cut in the middle of anything sees
// each entry once, in order.
func TestClientOverCutStreams(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	w.say(id, "a", "b", "c", "d")
	w.end(id)
	page, err := w.client.History(t.Context(), ann, id, conversation.HistoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for after := 340; after < 1200; after += 61 { // the first entry gets through
		all.Go(func() {
			server := httptest.NewServer(cutter{w.handler, after})
			defer server.Close()
			c := dial(t, server, "ann@acme")
			var got []int
			var from *conversation.Cursor
			for over := false; !over; {
				progress := false
				for event, err := range c.Events(context.Background(), id, from) {
					switch {
					case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
						t.Error(err)
						return
					case event.Kind == client.Message:
						got, from, progress = append(got, event.Record.Ord), &event.Record.Cursor, true
					case event.Kind == client.Closed:
						over = true
					}
				}
				over = over || !progress // the cut comes before the close each time: a 204
			}
			if len(got) != len(page.Entries) {
				t.Errorf("streams cut after %d bytes bring %v; want %d entries", after, got, len(page.Entries))
			}
			for i, ord := range got {
				if ord != i+1 {
					t.Errorf("streams cut after %d bytes bring %v", after, got)
					break
				}
			}
		})
	}
	all.Wait()
}
