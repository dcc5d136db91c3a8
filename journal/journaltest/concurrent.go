package journaltest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/journal"
)

var concurrentCases = []contractCase{
	{"one winner for each sequence", oneWinner},
	{"many writers without a fence", manyWriters},
	{"two streams move as one", twoStreams},
	{"a batch is seen whole", seenWhole},
}

// rivals runs n goroutines and waits for them.
func rivals(n int, run func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { run(i) })
	}
	wg.Wait()
}

// oneWinner: of those who expect the same sequence exactly one writes it (C-3.2).
func oneWinner(t *testing.T, s journal.Store) {
	const writers, length = 8, 25
	var mu sync.Mutex
	winners := make(map[journal.Seq][]string)
	rivals(writers, func(i int) {
		for seq := journal.Seq(0); seq < length; {
			id := fmt.Sprint(i, "-", seq)
			err := s.Append(t.Context(), journal.Append{Stream: "s", Expect: seq, Events: []journal.Event{{Kind: "FACT", ID: id}}})
			switch {
			case err == nil:
				mu.Lock()
				winners[seq] = append(winners[seq], id)
				mu.Unlock()
				seq++
			case errors.Is(err, journal.ErrConflict):
				head, _, err := s.HeadOf(t.Context(), "s")
				if err != nil {
					t.Errorf("HeadOf: %v", err)
					return
				}
				if head <= seq {
					t.Errorf("conflict at %d, and the stream ends at %d", seq, head)
					return
				}
				seq = head
			default:
				t.Errorf("Append: %v", err)
				return
			}
		}
	})
	want := make(map[journal.Seq][]string)
	for _, event := range read(t, s, "s", 0, 1000, journal.Forward) {
		want[event.Seq] = []string{event.ID}
	}
	if diff := cmp.Diff(want, winners); diff != "" || len(want) != length {
		t.Errorf("winners (-log +told to have won):\n%s", diff)
	}
}

// manyWriters: appends at the end never conflict and none is lost.
func manyWriters(t *testing.T, s journal.Store) {
	const writers, each = 8, 20
	rivals(writers, func(i int) {
		for n := range each {
			err := s.Append(t.Context(), journal.Append{
				Stream: "s", Expect: journal.AtEnd,
				Events: []journal.Event{{Kind: "FACT", ID: fmt.Sprint(i)}, {Kind: "FACT", ID: fmt.Sprint(i, ".", n)}},
			})
			if err != nil {
				t.Errorf("Append: %v", err)
			}
		}
	})
	events := read(t, s, "s", 0, 1000, journal.Forward)
	if len(events) != 2*writers*each {
		t.Fatalf("%d events, want %d", len(events), 2*writers*each)
	}
	count := make(map[string]int)
	for i := 0; i < len(events); i += 2 {
		writer := events[i].ID
		if got, want := events[i+1].ID, fmt.Sprint(writer, ".", count[writer]); got != want {
			t.Fatalf("event %d has id %q, want %q: a batch was torn or out of order", i+1, got, want)
		}
		count[writer]++
	}
}

// twoStreams: a batch over two streams is written to both or to none, whoever
// else writes (C-3.2).
func twoStreams(t *testing.T, s journal.Store) {
	const writers, each = 6, 20
	rivals(writers, func(i int) {
		for n := range each {
			head, _, err := s.HeadOf(t.Context(), "a")
			if err != nil {
				t.Errorf("HeadOf: %v", err)
				return
			}
			fact := []journal.Event{{Kind: "FACT", ID: fmt.Sprint(i, ".", n)}}
			batch := []journal.Append{{Stream: "a", Expect: head, Events: fact}, {Stream: "b", Expect: head, Events: fact}}
			if i%2 == 0 {
				batch[0], batch[1] = batch[1], batch[0]
			}
			if err := s.Append(t.Context(), batch...); err != nil && !errors.Is(err, journal.ErrConflict) {
				t.Errorf("Append: %v", err)
			}
		}
	})
	a, b := read(t, s, "a", 0, 1000, journal.Forward), read(t, s, "b", 0, 1000, journal.Forward)
	if len(a) == 0 {
		t.Error("nobody ever wrote")
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("streams a and b differ (-a +b):\n%s", diff)
	}
}

// seenWhole: a reader sees the events of a batch all at once.
func seenWhole(t *testing.T, s journal.Store) {
	const batches, size = 50, 3
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range batches {
			if err := s.Append(t.Context(), journal.Append{Stream: "s", Expect: journal.AtEnd, Events: facts("a", size)}); err != nil {
				t.Errorf("Append: %v", err)
			}
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		events, err := s.ReadRange(t.Context(), "s", 0, 1000, journal.Forward)
		if err != nil || len(events)%size != 0 {
			t.Errorf("a reader saw %d events of batches of %d, %v", len(events), size, err)
			break
		}
	}
	wg.Wait()
}
