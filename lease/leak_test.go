package lease_test

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/lease"
)

// No token, prompt, actor, name or title is in a conflict, a status, an error, a
// log or a wake of somebody else; of the token only the hash is in the store
// (L-5.5, L-7.6, L-19.2, L-28.8).
func TestNothingLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		secret := lease.Caller{
			Conversation: "conv-s",
			Identity:     identity.Identity{Tenant: identity.Some("tenant-of-secrets"), Actor: "actor-of-secrets", OnBehalfOf: identity.Some("boss-of-secrets")},
			Seat:         lease.Seat{Kind: lease.Service, ID: "turn-of-secrets"},
		}
		var seen lockedBuffer
		show := func(v any, err error) {
			if v != nil {
				data, failed := json.Marshal(v)
				if failed != nil {
					t.Errorf("Marshal(%T) = %v", v, failed)
				}
				seen.Write(data)
			}
			if err != nil {
				fmt.Fprint(&seen, err)
				if busy, ok := errors.AsType[*lease.BusyError](err); ok {
					data, _ := json.Marshal(busy)
					seen.Write(data)
					var keys map[string]any
					json.Unmarshal(data, &keys)
					if diff := cmp.Diff([]string{"actions", "incarnation", "owner", "resource", "state"}, slices.Sorted(maps.Keys(keys))); diff != "" {
						t.Errorf("keys of busy (-want +got):\n%s", diff)
					}
				}
			}
			fmt.Fprintln(&seen)
		}
		look := func() {
			show(h.r.Status(), nil)
			_, err := h.r.Acquire(t.Context(), bob, lease.Browser, 0)
			show(nil, err)
			show(nil, h.r.Recover(t.Context(), bob, lease.Browser, "browser.0"))
		}
		claim := h.acquire(secret, lease.Browser)
		g := h.guard(secret, claim)
		g.Do(t.Context(), sim.Write, jsontext.Value(`"text-of-secrets"`))
		look()
		request := h.queue(bob, claim.Incarnation, 0)
		h.mu.Lock()
		h.wake = func(_ context.Context, r lease.Request) error {
			data, _ := json.Marshal(r)
			seen.Write(data)
			return errors.New("page-of-secrets")
		}
		h.mu.Unlock()
		h.bodies[lease.Browser].On(sim.AfterAct, func(context.Context, body.Incarnation) error { return errors.New("title-of-secrets") })
		g.Do(t.Context(), sim.Write, jsontext.Value(`"text-of-secrets"`))
		look()
		h.bodies[lease.Browser].On(sim.AtCheck, func(context.Context, body.Incarnation) error { return errors.New("title-of-secrets") })
		show(nil, h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation))
		h.bodies[lease.Browser].On(sim.AtCheck, nil)
		show(nil, h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation))
		time.Sleep(time.Second)
		show(h.r.Request(bob, request.ID))
		fmt.Fprint(&seen, h.log.String())
		if !strings.Contains(seen.String(), "conv-s") {
			t.Error("the owner is named nowhere: the test proves nothing")
		}
		for _, word := range []string{"of-secrets", claim.Token.Reveal(), "lease_"} {
			if i := strings.Index(seen.String(), word); i >= 0 {
				t.Errorf("%q leaks: …%s…", word, seen.String()[max(0, i-80):i+len(word)])
			}
		}
		events, err := h.inner.ReadRange(t.Context(), lease.StreamOf(lease.Browser), 0, 100, journal.Forward)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			for _, word := range []string{claim.Token.Reveal(), "text-of", "title-of", "page-of"} {
				if strings.Contains(string(e.Data), word) {
					t.Errorf("event %s holds %q", e.Kind, word)
				}
			}
		}
	})
}

// A claim does not print, log or marshal its token.
func TestClaimHidesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim := h.acquire(ann, lease.Browser)
		if data, err := json.Marshal(claim); err == nil || strings.Contains(string(data), "lease_") {
			t.Errorf("Marshal of a claim = %s, %v; want refused", data, err)
		}
	})
}

// L-2.5, I8: a status is a pure read: it waits for no write and changes no byte,
// even while the store hangs.
func TestStatusIsAPureRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.hold(ann)
		before := h.store.Counts()
		release := make(chan struct{})
		h.store.At(1, func() { <-release })
		answer := make(chan error, 1)
		go func() {
			_, err := h.r.Acquire(t.Context(), bob, lease.Voice, 0)
			answer <- err
		}()
		synctest.Wait()
		h.wantState(lease.Voice, lease.Free, "") // what is not durable is not so
		for range 1000 {
			h.r.Status()
		}
		close(release)
		wantErr(t, "Acquire", <-answer, nil)
		if got := h.store.Counts().Since(before); got.Appends != 1 || got.Reads+got.Heads+got.Lists > 0 {
			t.Errorf("a thousand status reads asked the store for %+v", got)
		}
	})
}

// A whole life and a conflict, side by side, wait for one another no longer than
// for one write (I8): a call that is done waiting says so.
func TestWaitingIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		release := make(chan struct{})
		h.store.At(1, func() { <-release })
		answer := make(chan error, 1)
		go func() {
			_, err := h.r.Acquire(t.Context(), ann, lease.Browser, 0)
			answer <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		_, err := h.r.Acquire(ctx, bob, lease.Browser, 0)
		wantErr(t, "Acquire behind a store that hangs", err, context.DeadlineExceeded)
		close(release)
		wantErr(t, "Acquire", <-answer, nil)
	})
}
