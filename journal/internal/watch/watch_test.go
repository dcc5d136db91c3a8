package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal"
)

func held(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, set := range h.streams {
		n += 1 + len(set)
	}
	return n
}

// A released subscription leaves nothing behind, not even the entry of its
// stream, and a notification that nobody waits for makes none (C-3.6).
func TestNothingIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub Hub
		ctx, cancel := context.WithCancel(t.Context())
		var wakes []<-chan struct{}
		for _, stream := range []string{"a", "a", "b"} {
			wake, err := hub.Subscribe(ctx, stream)
			if err != nil {
				t.Fatal(err)
			}
			wakes = append(wakes, wake)
		}
		hub.Notify("a")
		hub.Notify("nobody")
		if got := held(&hub); got != 5 {
			t.Errorf("%d entries for two streams with three subscriptions, want 5", got)
		}
		cancel()
		synctest.Wait()
		if got := held(&hub); got != 0 {
			t.Errorf("%d entries are left, want none", got)
		}
		<-wakes[0] // what it held before the release
		for _, wake := range wakes {
			for range wake {
			}
		}
		hub.Notify("a")
	})
}

// Close and the end of a context may meet; the channel is closed once.
func TestCloseAndRelease(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var hub Hub
			ctx, cancel := context.WithCancel(t.Context())
			wake, err := hub.Subscribe(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			go cancel()
			go hub.Close()
			if _, open := <-wake; open {
				t.Error("a notification, want the end")
			}
			synctest.Wait()
			if _, err := hub.Subscribe(t.Context(), "a"); !errors.Is(err, journal.ErrClosed) {
				t.Errorf("Subscribe after Close: %v, want ErrClosed", err)
			}
		})
	}
}
