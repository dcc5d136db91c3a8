package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
)

// follower collects what a Follow yields.
type follower struct {
	mu   sync.Mutex
	got  []Record
	at   []time.Duration // since the beginning
	err  error
	over bool
}

func (w *readerWorld) follow(ctx context.Context, id string, from *Cursor) *follower {
	f := &follower{}
	begun := time.Now()
	go func() {
		for r, err := range w.client.Follow(ctx, ann, id, from) {
			f.mu.Lock()
			f.err = err
			if err == nil {
				f.got = append(f.got, r)
				f.at = append(f.at, time.Since(begun))
			}
			f.mu.Unlock()
		}
		f.mu.Lock()
		f.over = true
		f.mu.Unlock()
	}()
	return f
}

func (f *follower) state() (texts_ []string, over bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return texts(f.got), f.over, f.err
}

// live starts a conversation whose body repeats what is said.
func (w *readerWorld) live() string {
	w.t.Helper()
	id, err := w.client.Start(context.Background(), ann, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *readerWorld) say(id, text string) {
	w.t.Helper()
	if _, err := w.client.SendTurn(context.Background(), ann, id, Message{Text: text}); err != nil {
		w.t.Fatal(err)
	}
}

// C-18.1, C-18.5, C-18.7: entries come at once, across rotations, and the
// sequence ends after the close; nothing is left behind (C-42.4).
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		id := w.live()
		w.say(id, "before")
		synctest.Wait()
		f := w.follow(t.Context(), id, nil)
		synctest.Wait()
		for _, text := range []string{"one", "rotate", "two", "rotate", "rotate", "three"} {
			w.say(id, text)
			synctest.Wait()
		}
		want := []string{
			"1 user before", "2 assistant before", "3 user one", "4 assistant one", "5 user rotate", "6 assistant rotate",
			"7 user two", "8 assistant two", "9 user rotate", "10 assistant rotate", "11 user rotate", "12 assistant rotate",
			"13 user three", "14 assistant three",
		}
		got, over, err := f.state()
		if diff := cmp.Diff(want, got); diff != "" || over || err != nil {
			t.Errorf("without a moment's wait: over %v, %v (-want +got):\n%s", over, err, diff)
		}
		if n := w.store.Counts().Subscriptions; n != 1 {
			t.Errorf("%d subscriptions of one follower; want 1", n)
		}
		if err := w.client.Close(t.Context(), ann, id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, over, err := f.state(); len(got) != len(want) || !over || err != nil {
			t.Errorf("after the close: %d entries, over %v, %v; want %d, true", len(got), over, err, len(want))
		}
		if n := w.store.Counts().Subscriptions; n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// C-18.3: a store whose notifications are all lost delivers everything, each
// entry a poll interval late at most.
func TestFollowWithoutNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		w.store.Mute()
		id := w.live()
		f := w.follow(t.Context(), id, nil)
		var said []time.Duration
		begun := time.Now()
		for i := range 20 {
			time.Sleep(370 * time.Millisecond)
			said = append(said, time.Since(begun))
			w.say(id, fmt.Sprint(i))
			if i%5 == 4 {
				w.say(id, "rotate")
				said = append(said, time.Since(begun))
			}
		}
		time.Sleep(PollInterval)
		synctest.Wait()
		got, _, err := f.state()
		if len(got) != 2*len(said) || err != nil {
			t.Fatalf("%d entries, %v; want %d", len(got), err, 2*len(said))
		}
		for i, at := range f.at {
			if late := at - said[i/2]; late > PollInterval {
				t.Errorf("entry %d came %v late", i, late)
			}
		}
		if err := w.client.Close(t.Context(), ann, id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(PollInterval)
		synctest.Wait()
		if _, over, err := f.state(); !over || err != nil {
			t.Errorf("after the close: over %v, %v", over, err)
		}
	})
}

// C-18.4, T37, SSE-35: a follower that is cut at every entry and resumed from
// its cursor sees each entry once, then the end; from the very end it sees the
// end alone.
func TestFollowResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		l := w.lay("c").said("one").noise(300).rotate().rotate().refused().said("two").close()
		var from *Cursor
		var got []Record
		for {
			n := len(got)
			for r, err := range w.client.Follow(t.Context(), ann, "c", from) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
				break
			}
			if len(got) == n {
				break
			}
			from = &got[n].Cursor
		}
		if diff := cmp.Diff(l.want, got, equalRecords); diff != "" {
			t.Errorf("resumed at every entry (-want +got):\n%s", diff)
		}
		for _, at := range []Cursor{{2, 6}, {2, 99}, {99, 0}} {
			for r, err := range w.client.Follow(t.Context(), ann, "c", &at) {
				t.Errorf("from %v: %v, %v; want nothing", at, r, err)
			}
		}
		if n := w.store.Counts().Subscriptions; n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// T22's kin for readers: what is appended between the read that finds nothing
// and the subscription is not missed until the poll (SSE-22), and what a
// rotation writes after a read of the old generation is not skipped.
func TestFollowMissesNothingInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		w := newReaderWorld(t, inner)
		l := w.lay("c").flush()
		// Each point read of the next generation, which follows a read that came
		// to the end, is met by a burst of writes.
		bursts := 0
		w.store.OnRead(func(stream string) error {
			if stream == kernel.StreamOf("c", l.generation+1) && bursts < 5 {
				bursts++
				l.said(fmt.Sprint("burst ", bursts)).rotate()
			}
			return nil
		})
		f := w.follow(t.Context(), "c", nil)
		synctest.Wait()
		got, _, err := f.state()
		if diff := cmp.Diff(texts(l.want), got); diff != "" || err != nil || bursts != 5 {
			t.Errorf("after %d bursts: %v (-want +got):\n%s", bursts, err, diff)
		}
	})
}

// subscribeHook calls hook before each subscription.
type subscribeHook struct {
	journal.Store
	hook func(stream string)
}

func (s subscribeHook) Subscribe(ctx context.Context, stream string) (<-chan struct{}, error) {
	s.hook(stream)
	return s.Store.Subscribe(ctx, stream)
}

// SSE-22: an entry that is written just before the subscription begins comes
// without waiting for the poll.
func TestFollowSubscribesBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := func(string) {}
		w := newReaderWorld(t, subscribeHook{memory.New(), func(stream string) { hook(stream) }})
		l := w.lay("c").flush()
		hook = func(string) { l.said("in between").flush() }
		f := w.follow(t.Context(), "c", nil)
		synctest.Wait()
		if got, _, err := f.state(); len(got) != 2 || err != nil {
			t.Errorf("Follow = %v, %v; want both entries at once", got, err)
		}
	})
}

// A store that ends subscriptions, or gives none, leaves the poll.
func TestFollowWithoutSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newReaderWorld(t, noSubscriptions{memory.New()})
		l := w.lay("c").flush()
		f := w.follow(t.Context(), "c", nil)
		synctest.Wait()
		before := w.store.Counts()
		time.Sleep(10 * PollInterval)
		synctest.Wait()
		if did := w.store.Counts().Since(before); did.Reads > 10 {
			t.Errorf("%d reads in ten poll intervals", did.Reads)
		}
		l.said("late").flush()
		time.Sleep(PollInterval)
		synctest.Wait()
		if got, _, err := f.state(); len(got) != 2 || err != nil {
			t.Errorf("Follow = %v, %v; want both entries", got, err)
		}
	})
}

type noSubscriptions struct{ journal.Store }

func (noSubscriptions) Subscribe(context.Context, string) (<-chan struct{}, error) {
	closed := make(chan struct{})
	close(closed)
	return closed, nil
}

// C-18.1, C-3.6: a caller who goes away ends the following and frees all of it;
// so does a failing store.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		w.lay("c").said("one").flush()
		ctx, cancel := context.WithCancel(t.Context())
		f := w.follow(ctx, "c", nil)
		g := w.follow(t.Context(), "c", nil)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if _, over, err := f.state(); !over || !errors.Is(err, context.Canceled) {
			t.Errorf("after the cancel: over %v, %v", over, err)
		}
		w.store.OnRead(func(string) error { return journal.ErrClosed })
		time.Sleep(PollInterval)
		synctest.Wait()
		if _, over, err := g.state(); !over || !errors.Is(err, journal.ErrClosed) {
			t.Errorf("after a failed read: over %v, %v", over, err)
		}
		if n := w.store.Counts().Subscriptions; n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// A conversation that ends while a follower begins is over for it as well,
// whichever read the end comes before, and wherever the follower begins: past
// the tip too, where no event of the end lies ahead (C-17.8, C-18.7).
func TestFollowBegunAtTheEnd(t *testing.T) {
	for name, finish := range map[string]func(l *laid){
		"close":              func(l *laid) { l.close() },
		"rotate and close":   func(l *laid) { l.rotate().close() },
		"rotate, say, close": func(l *laid) { l.rotate().said("late").close() },
	} {
		for _, from := range []*Cursor{nil, {Generation: 0, Seq: endOfGeneration}, {Generation: 7}} {
			for k := 1; k <= 16; k++ {
				synctest.Test(t, func(t *testing.T) {
					w := newMemoryWorld(t)
					l := w.lay("c").said("one").flush()
					reads := 0
					w.store.OnRead(func(string) error {
						if reads++; reads == k {
							finish(l)
						}
						return nil
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					for _, err := range w.client.Follow(ctx, ann, "c", from) {
						if err != nil {
							t.Errorf("%s before read %d, from %v: %v", name, k, from, err)
						}
					}
				})
			}
		}
	}
}

// An idle follower costs two small reads per poll interval.
func TestFollowIdleCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWorld(t)
		w.lay("c").said("one").flush()
		w.follow(t.Context(), "c", nil)
		synctest.Wait()
		before := w.store.Counts()
		time.Sleep(60 * PollInterval)
		synctest.Wait()
		did := w.store.Counts().Since(before)
		if did.Reads > 60 || did.Heads > 60 || did.EventsRead > 0 || did.Subscribes > 0 {
			t.Errorf("an idle minute cost %+v; want one read and one point read a second", did)
		}
	})
}
