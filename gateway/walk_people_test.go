package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// people: every refusal that who takes part in a conversation can be given, and what
// they are told of each other.
func (c *walk) people(t *testing.T) {
	w := c.in(newRoomWorld(t, "when has \"long\"\n  wait 1h\notherwise\n  reply", func(_ *kernel.Config, c *Config) {
		c.Authenticate = func(r *http.Request) (identity.Principal, error) {
			who, err := byToken(r)
			if r.Header.Get("X-Credential") != "" {
				who.Credential = identity.NewSecret("of somebody else's making")
			}
			return who, err
		}
	}))
	path := "/v1/conversations/" + w.room(bob)
	w.answers(request("POST", "/v1/conversations", "ann@acme", `{"shared":true}`), 201)
	w.answers(request("POST", "/v1/conversations", "ann@acme", `{"shared":null}`), 201)
	w.answers(request("POST", "/v1/conversations", "ann@evil", `{"shared":true}`), 403)
	w.answers(request("GET", "/v1/conversations", "bob@acme", ""), 200)
	person := func(name string) string {
		return `{"tenant":"acme","actor":"` + name + `","onBehalfOf":null}`
	}
	for _, method := range []string{"POST", "DELETE"} {
		w.answers(request(method, path+"/participants", "bob@acme", person("cal")), 403)
		cut := request(method, path+"/participants", "ann@acme", "")
		cut.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		w.answers(cut, 400)
	}
	w.answers(request("POST", path+"/close", "bob@acme", ""), 403)
	w.answers(request("DELETE", path+"/participants", "ann@acme", person("ann")), 409)
	delegated := request("POST", path+"/turns", "bob@acme", `{"text":"hello"}`)
	delegated.Header.Set("X-Credential", "yes")
	w.answers(delegated, 403)

	w.answers(request("POST", path+"/turns", "bob@acme", `{"text":"long"}`), 202)
	synctest.Wait()
	w.answers(request("POST", path+"/turns", "ann@acme", `{"text":"and mine"}`), 202)
	synctest.Wait()
	for _, token := range []string{"ann@acme", "bob@acme"} {
		w.answers(request("GET", path+"/participants", token, ""), 200)
		w.answers(request("GET", path+"/waiting", token, ""), 200)
	}

	for i := range conversation.MaxParticipants - 2 {
		w.answers(request("POST", path+"/participants", "ann@acme", person(fmt.Sprint("p", i))), 204)
	}
	w.answers(request("POST", path+"/participants", "ann@acme", person("one too many")), 409)
}

// clearances: an entry as its asker, as who is cleared, and as who is not sees it;
// and every state of a shared conversation.
func (c *walk) clearances(t *testing.T) {
	w := c.in(newRoomWorld(t, "when has \"fail\"\n  fail refused\notherwise\n  call files {}\nthen\n  say \"CANARY\"", func(_ *kernel.Config, c *Config) { c.HTML = bracketed }))
	id := w.room(bob)
	w.say(id, "one", "two", "fail")
	ctx, over := t.Context(), func() { time.Sleep(time.Minute); synctest.Wait() }
	if _, err := w.client.SendTurn(ctx, bob, id, conversation.Message{Text: "mine"}); err != nil {
		t.Fatal(err)
	}
	over()
	if _, err := w.client.SendTurn(ctx, ann, id, conversation.Message{Text: "over"}); err != nil {
		t.Fatal(err)
	}
	over()
	notice := conversation.Notice{Topic: conversation.TopicLease, Text: "it is free", For: &ann.Identity} // of classes that nobody has stated
	if err := conversation.NewNotifier(w.client).Notify(ctx, id, notice); err != nil {
		t.Fatal(err)
	}
	over()
	w.end(id)
	for _, suffix := range []string{"", "/history", "/events", "/history?render=html", "/events?render=html"} {
		for _, token := range []string{"ann@acme", "bob@acme"} {
			got := &tape{}
			w.handler.ServeHTTP(got, request("GET", "/v1/conversations/"+id+suffix, token, ""))
			if got.code != 200 || suffix != "" && strings.Contains(got.text(), "restricted") != (token == "bob@acme") {
				t.Errorf("GET %s by %s: %d %s", suffix, token, got.code, got.text())
			}
		}
	}
}
