package journaltest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/parley-run/parley/journal"
)

var subscribeCases = []contractCase{
	{"each append is seen", eachAppendSeen},
	{"merged", merged},
	{"every subscriber of the stream", everySubscriber},
	{"release", release},
	{"nothing is left", nothingLeft},
	{"context done before", subscribeDone},
}

// patience is how long a notification may take. A store of one process gives
// it before Append returns; one that is shared by nodes may need a moment.
const patience = 10 * time.Second

// wantWake waits for a notification.
func wantWake(t *testing.T, wake <-chan struct{}) {
	t.Helper()
	select {
	case _, open := <-wake:
		if !open {
			t.Fatal("the subscription was released, want a notification")
		}
	case <-time.After(patience):
		t.Fatal("no notification")
	}
}

// wantReleased waits until a subscription is closed, past what it still holds.
func wantReleased(t *testing.T, wake <-chan struct{}) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, open := <-wake:
			if !open {
				return
			}
		case <-deadline:
			t.Fatal("the subscription was not released")
		}
	}
}

func subscribe(t *testing.T, ctx context.Context, s journal.Store, stream string) <-chan struct{} {
	t.Helper()
	wake, err := s.Subscribe(ctx, stream)
	if err != nil {
		t.Fatalf("Subscribe(%q): %v", stream, err)
	}
	return wake
}

// eachAppendSeen: who reads on from the last position after each notification
// sees every append, to a stream that does not exist yet, too, and whatever its
// expectation (C-3.5).
func eachAppendSeen(t *testing.T, s journal.Store) {
	wake := subscribe(t, t.Context(), s, "s")
	must(t, s, journal.Append{Stream: "s", Expect: 0, Events: facts("a", 1)})
	wantWake(t, wake)
	must(t, s, journal.Append{Stream: "other", Events: facts("b", 1)}, journal.Append{Stream: "s", Expect: journal.AtEnd, Events: facts("b", 2)})
	wantWake(t, wake)
	wantIDs(t, s, "s", "a0", "b0", "b1")
}

// merged: many appends may become one notification, and none waits for a
// subscriber that does not listen (C-3.5).
func merged(t *testing.T, s journal.Store) {
	const appends = 100
	wake := subscribe(t, t.Context(), s, "s")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range appends {
			if err := s.Append(t.Context(), journal.Append{Stream: "s", Expect: journal.AtEnd, Events: facts("a", 1)}); err != nil {
				t.Errorf("Append: %v", err)
			}
		}
	}()
	<-done
	position := journal.Seq(0)
	for position < appends {
		wantWake(t, wake)
		position += journal.Seq(len(read(t, s, "s", position, 1000, journal.Forward)))
	}
}

func everySubscriber(t *testing.T, s journal.Store) {
	var wakes []<-chan struct{}
	for range 3 {
		wakes = append(wakes, subscribe(t, t.Context(), s, "s"))
	}
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 1)})
	for _, wake := range wakes {
		wantWake(t, wake)
	}
}

// release: a subscription ends with its context, and no other with it (C-3.6).
func release(t *testing.T, s journal.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	gone, stays := subscribe(t, ctx, s, "s"), subscribe(t, t.Context(), s, "s")
	cancel()
	wantReleased(t, gone)
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 1)})
	wantWake(t, stays)
	if _, open := <-gone; open {
		t.Error("a released subscription was notified")
	}
}

// nothingLeft: thousands of subscriptions come and go, and no goroutine of them
// stays (C-3.6).
func nothingLeft(t *testing.T, s journal.Store) {
	must(t, s, journal.Append{Stream: "s", Events: facts("a", 1)})
	before := runtime.NumGoroutine()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var wakes []<-chan struct{}
		for range 100 {
			wakes = append(wakes, subscribe(t, ctx, s, "s"))
		}
		cancel()
		for _, wake := range wakes {
			wantReleased(t, wake)
		}
	}
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > before+5 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines after 2,000 subscriptions, %d before", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
}

func subscribeDone(t *testing.T, s journal.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wake, err := s.Subscribe(ctx, "s")
	if !errors.Is(err, context.Canceled) || wake != nil {
		t.Errorf("Subscribe with a cancelled context: %v, %v, want no channel and context.Canceled", wake, err)
	}
}
