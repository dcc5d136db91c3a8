package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

var bob = identity.Identity{Tenant: identity.Some("acme"), Actor: "bob"}

// C-29.14: each call about the people of a conversation is the request that it
// should be, and its answer is read.
func TestPeople(t *testing.T) {
	var got string
	next := answer(204, "")
	c := newClient(t, func(r *http.Request) *http.Response {
		got = r.Method + " " + r.URL.Path
		if r.Body != nil {
			data, _ := io.ReadAll(r.Body)
			got += " " + r.Header.Get("Content-Type") + " " + string(data)
		}
		return next
	})
	ask := func(response *http.Response, call func() (any, error), want, wantAnswer string) {
		t.Helper()
		next = response
		value, err := call()
		if text := fmt.Sprint(value); err != nil || got != want || text != wantAnswer {
			t.Errorf("%v:\n%s\n%s\nwant\n%s\n%s", err, got, text, want, wantAnswer)
		}
	}
	const path = "/base/v1/conversations"
	ask(answer(201, `{"id":"c1"}`), func() (any, error) { return c.StartShared(t.Context()) },
		"POST "+path+` application/json {"shared":true}`, "c1")
	ask(answer(204, ""), func() (any, error) { return "", c.AddParticipant(t.Context(), "a", bob) },
		"POST "+path+`/a/participants application/json {"tenant":"acme","actor":"bob"}`, "")
	ask(answer(204, ""), func() (any, error) { return "", c.RemoveParticipant(t.Context(), "a", identity.Identity{Actor: "b"}) },
		"DELETE "+path+`/a/participants application/json {"actor":"b"}`, "")
	ask(answer(200, `{"participants":[{"identity":{"actor":"b"},"since":"2026-01-01T00:00:00Z","owner":true}],"manages":true}`),
		func() (any, error) {
			people, err := c.Participants(t.Context(), "a")
			return fmt.Sprintln(people.Manages, people.Participants[0].Owner, people.Participants[0].Identity.Actor), err
		}, "GET "+path+"/a/participants", "true true b\n")
	ask(answer(200, `{"waiting":[{"asker":{"actor":"b"},"time":"2026-01-01T00:00:00Z","text":"hello","mine":true}]}`),
		func() (any, error) {
			waiting, err := c.Waiting(t.Context(), "a")
			return fmt.Sprintln(waiting[0].Asker.Actor, waiting[0].Text, waiting[0].Mine), err
		}, "GET "+path+"/a/waiting", "b hello true\n")
	next = answer(200, "<html>")
	if err := c.AddParticipant(t.Context(), "a", bob); !errors.Is(err, ErrProtocol) {
		t.Errorf("an answer that should be none: %v; want ErrProtocol", err)
	}
}

// C-33.12, C-35.7: the refusals of a shared conversation are its sentinels; that of a
// server's door is another one.
func TestRefusalsOfPeople(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		want   error
	}{
		{403, `{"error":"forbidden","reason":"not-permitted"}`, conversation.ErrForbidden},
		{403, `{"error":"forbidden","reason":"host-not-allowed"}`, ErrForbidden},
		{403, `a proxy's page`, ErrForbidden},
		{403, `{"error":"DelegationUnsupported"}`, conversation.ErrDelegationUnsupported},
		{400, `{"error":"InvalidParticipant"}`, conversation.ErrInvalidParticipant},
		{409, `{"error":"TooManyParticipants"}`, conversation.ErrTooManyParticipants},
		{409, `{"error":"OwnerStays"}`, conversation.ErrOwnerStays},
	} {
		c := newClient(t, func(*http.Request) *http.Response { return answer(test.status, test.body) })
		if err := c.AddParticipant(t.Context(), "a", bob); !errors.Is(err, test.want) {
			t.Errorf("%s: %v; want %v", test.body, err, test.want)
		}
	}
}
