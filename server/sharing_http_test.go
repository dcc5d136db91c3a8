package server

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/issuer"
	"github.com/parley-run/parley/server/issuer/issuertest"
)

// incident is the configuration of the tests of this file: ann may call the pager and
// see what it says, bob neither.
const incident = `
listen = "127.0.0.1:0"
model = "script:%s"
mcp.pager.url = "%s"

[sharing.tools]
"pager_*" = ["incident"]

[[sharing.people]]
tenant = "acme"
actor = "ann"
clears = ["incident"]
tools = ["pager_*"]

[[sharing.people]]
tenant = "acme"
actor = "bob"
tools = ["clock"]
`

// incidentScript calls the pager for whoever says so, and says what it found.
const incidentScript = `when has "alerts"
  call pager_alerts {}
then
  say "CANARY-said "
  results
when has "clock"
  call clock {}
then
  say "It is late."
otherwise
  say "Nothing."
`

func (w *world) incident() *running {
	w.t.Helper()
	script := filepath.Join(w.t.TempDir(), "room.script")
	if err := os.WriteFile(script, []byte(incidentScript), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.withPager(fmt.Sprintf(incident, script, newPager(w.t, "CANARY-result").URL))
}

// as is a client of somebody's.
func (r *running) as(token string) *client.Client {
	r.t.Helper()
	c, err := client.New(r.URL(), token, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// tap reads a stream byte for byte until it is left.
func (r *running) tap(token, id string) (leave func() string) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+"/v1/conversations/"+id+"/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	bearing(token)(request)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	var text []byte
	var done sync.WaitGroup
	done.Go(func() {
		defer answer.Body.Close()
		text, _ = io.ReadAll(answer.Body) // it ends when it is left
	})
	return func() string { cancel(); done.Wait(); return string(text) }
}

// body is the whole answer to a GET.
func (r *running) body(token, path string) string {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.URL()+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	bearing(token)(request)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.Status + string(text)
}

// C-35.6, C-36, C-37, T89, T92: two people with tokens over real HTTP. In no byte of
// bob's stream, history, list, status or line is anything that the pager said, nor
// the name of its class or tool; his own turn cannot call it, and is recorded as
// denied; the clock it can. After a restart it is the same, and the logs of the
// conversation and of each turn replay without key, model and configuration.
func TestSharedOverHTTP(t *testing.T) {
	w := newWorld(t)
	s := w.incident()
	ann, bob := s.token("ann"), s.token("bob")
	id, err := s.as(ann).StartShared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.as(ann).AddParticipant(t.Context(), id, person("acme", "bob", "")); err != nil {
		t.Fatal(err)
	}
	leave, leaveAnns := s.tap(bob, id), s.tap(ann, id)
	if got := say(t, s.as(ann), id, "the alerts"); got.Status != conversation.StatusComplete || !strings.Contains(got.Text, "CANARY-result") || got.Classes[0] != "incident" {
		t.Errorf("ann is answered %+v", got)
	}
	say(t, s.as(ann), id, "what was CANARY-asked?")
	if got := say(t, s.as(bob), id, "the clock"); got.Status != conversation.StatusComplete || len(got.Classes) > 0 {
		t.Errorf("bob is answered %+v; want the time, without a class", got)
	}
	denied := say(t, s.as(bob), id, "the alerts")
	if denied.Status != conversation.StatusFailed || denied.Reason != conversation.ReasonDenied {
		t.Errorf("bob's turn that calls the pager is %+v; want failed, denied", denied)
	}
	last := "seen: " + leave()
	if text := leaveAnns(); !strings.Contains(text, "CANARY-result") || strings.Count(text, "event: message") < 7 {
		t.Errorf("ann's stream is %s", text)
	}
	s.end()

	s = w.incident()
	path := "/v1/conversations/" + id
	again := s.tap(bob, id)
	if got := say(t, s.as(bob), id, "and the clock?"); got.Status != conversation.StatusComplete {
		t.Errorf("after a restart bob is answered %+v", got)
	}
	for what, text := range map[string]string{
		"stream": last, "resumed stream": again(), "history": s.body(bob, path+"/history"), "backward": s.body(bob, path+"/history?direction=backward&render=html"),
		"list": s.body(bob, "/v1/conversations"), "status": s.body(bob, path), "line": s.body(bob, path+"/waiting"), "people": s.body(bob, path+"/participants"),
	} {
		for _, canary := range []string{"CANARY", "pager", "turn:" + id + ":o1"} {
			if strings.Contains(text, canary) {
				t.Errorf("bob's %s has %q: %s", what, canary, text)
			}
		}
	}
	if text := s.body(ann, path+"/history"); strings.Count(text, "CANARY-result") != 1 || strings.Contains(text, "restricted") {
		t.Errorf("ann's history is %s", text)
	}
	s.end()
	database := filepath.Join(w.config.Data, "parley.db")
	replays(t, database, id)
	replays(t, database, denied.TurnExecutionID)
	if log := w.log.String(); strings.Contains(log, "CANARY") {
		t.Errorf("the log has what somebody said:\n%s", log)
	}
}

// C-34.2, C-31.1: who would be the service can have no token.
func TestServiceHasNoToken(t *testing.T) {
	s := newWorld(t).start()
	defer s.end()
	if _, _, err := s.Directory().CreateToken(t.Context(), service); err == nil {
		t.Error("the service has a token")
	}
	if err := s.me().AddParticipant(t.Context(), s.shared(), identity.Identity{Actor: service.Actor, OnBehalfOf: identity.Some("me")}); err == nil {
		t.Error("the service takes part")
	}
}

// shared starts a shared conversation of the owner's.
func (r *running) shared() string {
	r.t.Helper()
	id, err := r.me().StartShared(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// C-7.2, K4: the tools of people are granted in every conversation, one's own too;
// who has no rule of them calls none.
func TestGrantsInOnesOwn(t *testing.T) {
	w := newWorld(t)
	s := w.incident()
	defer s.end()
	for actor, want := range map[string]conversation.Status{"ann": conversation.StatusComplete, "bob": conversation.StatusFailed, "eve": conversation.StatusFailed} {
		c := s.as(s.token(actor))
		id, err := c.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := say(t, c, id, "the alerts"); got.Status != want {
			t.Errorf("%s is answered %+v; want %s", actor, got, want)
		}
		if got := say(t, c, id, "hello"); got.Text != "Nothing." {
			t.Errorf("%s is answered %+v", actor, got)
		}
	}
}

// C-31.1, C-33.10: what the newest JWT of somebody says counts, over HTTP: an older
// one that is shown again gives nothing back, and who has a static token alone has no
// claims.
func TestClaimsOverHTTP(t *testing.T) {
	key := issuertest.NewKey(t)
	a := issuertest.New("https://login.example.org")
	a.Publish(map[string]crypto.Signer{"k": key})
	w := newWorld(t)
	w.config.issuers = a
	w.config.Settings.OIDC = &issuer.Config{Issuer: a.URL, Audience: "parley"}
	w.config.Settings.Sharing.People = []SharingRule{{Claim: map[string]string{"groups": "oncall"}, Starts: new(true)}}
	s := w.start()
	defer s.end()
	now := time.Now()
	jwt := func(age time.Duration, groups ...string) string {
		return a.Sign(t, "k", key, map[string]any{"sub": "ann", "iat": now.Add(-age).Unix(), "groups": groups})
	}
	_, static, err := s.Directory().CreateToken(t.Context(), identity.Identity{Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	old, off, on := jwt(time.Hour, "dev", "oncall"), jwt(time.Minute, "dev"), jwt(0, "oncall")
	for _, step := range []struct {
		what, bearer string
		want         error
	}{
		{"static, before any", static.Reveal(), conversation.ErrForbidden},
		{"on call", old, nil},
		{"static, while the JWT is known", static.Reveal(), nil},
		{"no longer", off, conversation.ErrForbidden},
		{"as before", old, conversation.ErrForbidden},
		{"on call again", on, nil},
	} {
		if _, err := s.as(step.bearer).StartShared(t.Context()); !errors.Is(err, step.want) {
			t.Errorf("%s: %v; want %v", step.what, err, step.want)
		}
	}
}
