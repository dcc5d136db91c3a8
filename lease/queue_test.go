package lease_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/lease"
)

// decodeLoosely reads some fields of an event.
func decodeLoosely(t tester, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
}

func (h *house) queue(c lease.Caller, of body.Incarnation, lasting time.Duration) lease.Request {
	h.t.Helper()
	r, err := h.r.Queue(h.t.Context(), c, lease.Browser, of, lasting)
	if err != nil {
		h.t.Fatalf("Queue(%s) = %v", c.Conversation, err)
	}
	return r
}

func (h *house) wantWakes(want ...string) {
	h.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, h.wokenSoFar()); diff != "" {
		h.t.Errorf("wakes (-want +got):\n%s", diff)
	}
}

// LC-8: a release wakes those who asked, once, in the order of their requests
// (L-20.8), whatever freed it, and runs nothing: they acquire like anyone, and a
// third one may be faster (L-20.3).
func TestLC8Queue(t *testing.T) {
	ways := map[string]func(h *house, claim lease.Claim, g lease.Guard) error{
		"ordinary stop": func(h *house, _ lease.Claim, g lease.Guard) error { return g.Release(context.Background()) },
		"idle close": func(h *house, c lease.Claim, _ lease.Guard) error {
			return h.bodies[lease.Browser].Idle(context.Background(), c.Incarnation)
		},
		"recovery": func(h *house, c lease.Claim, _ lease.Guard) error {
			time.Sleep(lease.DefaultLength)
			return h.r.Recover(context.Background(), operator, lease.Browser, c.Incarnation)
		},
		"sweep": func(h *house, c lease.Claim, _ lease.Guard) error {
			h.set(h.over, "conv-a", true)
			time.Sleep(lease.DefaultLength)
			h.bodies[lease.Browser].Stop(context.Background(), body.Life{Incarnation: c.Incarnation}, func(context.Context) error { return nil })
			time.Sleep(5 * time.Second)
			return nil
		},
	}
	for name, free := range ways {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t)
			claim, g := h.hold(ann)
			first := h.queue(eve, claim.Incarnation, lease.MaxLength)
			h.queue(bob, claim.Incarnation, lease.MaxLength)
			time.Sleep(time.Second)
			h.wantWakes()
			if err := free(h, claim, g); err != nil {
				t.Fatalf("%s = %v", name, err)
			}
			h.wantWakes("conv-e browser.0", "conv-b browser.0")
			_, third := h.hold(caller("conv-3", "third"))
			_, err := h.r.Acquire(t.Context(), eve, lease.Browser, 0)
			wantErr(t, "Acquire by the woken one", err, lease.ErrBusy)
			if err := third.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.reboot()
			h.wantWakes("conv-e browser.0", "conv-b browser.0") // no second time
			if r, err := h.r.Request(eve, first.ID); err != nil || r.State != lease.Woken {
				t.Errorf("Request = %+v, %v; want woken", r, err)
			}
		})
	}
}

// A request wakes nobody when it was withdrawn, has lapsed, or its requester lost
// the right (L-20.5, L-20.9).
func TestQueueWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, g := h.hold(ann)
		withdrawn := h.queue(bob, claim.Incarnation, 0)
		lapsed := h.queue(eve, claim.Incarnation, lease.MinWait)
		denied := h.queue(caller("conv-d", "dan"), claim.Incarnation, 0)
		wantErr(t, "Withdraw by another", h.r.Withdraw(t.Context(), eve, withdrawn.ID), lease.ErrNoRequest)
		if err := h.r.Withdraw(t.Context(), bob, withdrawn.ID); err != nil {
			t.Errorf("Withdraw = %v", err)
		}
		wantErr(t, "Withdraw again", h.r.Withdraw(t.Context(), bob, withdrawn.ID), lease.ErrNoRequest)
		time.Sleep(lease.MinWait)
		h.set(h.deny, "conv-d", true)
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.wantWakes()
		for id, want := range map[string]lease.RequestState{withdrawn.ID: lease.Withdrawn, lapsed.ID: lease.Lapsed, denied.ID: lease.Denied} {
			who := map[lease.RequestState]lease.Caller{lease.Withdrawn: bob, lease.Lapsed: eve, lease.Denied: caller("conv-d", "dan")}[want]
			if r, err := h.r.Request(who, id); err != nil || r.State != want {
				t.Errorf("Request(%s) = %+v, %v; want %s", id, r, err, want)
			}
			if _, err := h.r.Request(ann, id); !errors.Is(err, lease.ErrNoRequest) {
				t.Errorf("Request(%s) by another = %v, want none", id, err)
			}
		}
	})
}

// Bounds (L-20.7), the incarnation (L-20.6), and who may ask.
func TestQueueRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		queue := func(c lease.Caller, of body.Incarnation, lasting time.Duration) error {
			_, err := h.r.Queue(t.Context(), c, lease.Browser, of, lasting)
			return err
		}
		wantErr(t, "Queue for what is free", queue(bob, "browser.0", 0), lease.ErrStale)
		claim, _ := h.hold(ann)
		wantErr(t, "Queue for another incarnation", queue(bob, "browser.9", 0), lease.ErrStale)
		wantErr(t, "Queue for nine seconds", queue(bob, claim.Incarnation, 9*time.Second), lease.ErrLimit)
		wantErr(t, "Queue for an hour", queue(bob, claim.Incarnation, time.Hour), lease.ErrLimit)
		wantErr(t, "Queue by nobody", queue(lease.Caller{}, claim.Incarnation, 0), lease.ErrDenied)
		h.set(h.deny, "conv-b", true)
		wantErr(t, "Queue without the grant", queue(bob, claim.Incarnation, 0), lease.ErrDenied)
		h.set(h.deny, "conv-b", false)
		for i := range lease.MaxRequests {
			h.queue(caller(fmt.Sprint("conv-", i), "x"), claim.Incarnation, lease.MinWait)
		}
		wantErr(t, "the 33rd request", queue(bob, claim.Incarnation, 0), lease.ErrLimit)
		_, err := h.r.Acquire(t.Context(), bob, lease.Browser, 0)
		if busy, _ := errors.AsType[*lease.BusyError](err); busy == nil || len(busy.Actions) != 0 {
			t.Errorf("Acquire with a full queue = %+v, want busy without an action (L-19.3)", err)
		}
		time.Sleep(lease.MinWait) // they have lapsed
		h.queue(bob, claim.Incarnation, 0)
		wantErr(t, "a second one of a conversation", queue(bob, claim.Incarnation, 0), lease.ErrLimit)
	})
}

// L-22.8: a request survives a restart; one whose wake was not given before a
// crash is given after it, and one that may have been is not.
func TestQueueSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, _ := h.hold(ann)
		h.queue(bob, claim.Incarnation, lease.MaxLength)
		h.queue(eve, claim.Incarnation, lease.MaxLength)
		h.crash()
		h.wantWakes()
		h.mu.Lock()
		h.wake = func(context.Context, lease.Request) error { return errors.New("the network is gone") }
		h.mu.Unlock()
		h.store.After(func(n int, _ []journal.Append) error {
			if len(h.stream(lease.Browser)) == 9 { // BLOCKED RECOVERING RELEASED and one SPENT: dead from here
				h.store.Before(func(int, []journal.Append) error { return errors.New("this process is dead") })
			}
			return nil
		})
		if err := h.r.Recover(t.Context(), operator, lease.Browser, claim.Incarnation); err != nil {
			t.Fatalf("Recover = %v", err)
		}
		h.wantWakes("conv-b browser.0")
		h.r.Close()
		h.boot()
		h.wantWakes("conv-b browser.0", "conv-e browser.0") // bob's was uncertain: final
		h.reboot()
		h.wantWakes("conv-b browser.0", "conv-e browser.0")
		h.wantStream(lease.Browser, "GRANTED", "RESERVED", "COMPLETED", "QUEUED", "QUEUED", "BLOCKED", "RECOVERING", "RELEASED", "SPENT", "SPENT")
	})
}
