package sqlite

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
)

// What the tails answer is what the journal says, whatever they have forgotten,
// and they stay within their bytes.
func TestTailsModel(t *testing.T) {
	const most, longest = 20_000, 40
	const largestPart = longest * (1000 + 2*eventOverhead)
	hits := 0
	rapid.Check(t, func(r *rapid.T) {
		tails, model := newTails(most), memory.New()
		streams := rapid.SampledFrom(strings.Split("abcdefghijkl", ""))
		r.Repeat(map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				var group []written
				for range rapid.IntRange(1, 4).Draw(r, "parts") {
					part := written{stream: streams.Draw(r, "stream")}
					sizes := rapid.Permutation([]int{0, 10, 30, 300, 1000}).Draw(r, "sizes")
					large := rapid.IntRange(0, 5*longest).Draw(r, "large")
					at := rapid.Int64Range(-9999, 9999).Draw(r, "time")
					for i := range rapid.IntRange(1, longest).Draw(r, "events") {
						event := journal.Event{Kind: "FACT", ID: fmt.Sprint(at, i), Time: time.UnixMicro(at), Data: []byte(strings.Repeat("1", sizes[i%5]))}
						if i == large {
							event.Data = []byte(strings.Repeat("1", largestTail+1))
						}
						part.events = append(part.events, event)
					}
					part.first, _, _ = model.HeadOf(t.Context(), part.stream)
					if err := model.Append(t.Context(), journal.Append{Stream: part.stream, Expect: part.first, Events: part.events}); err != nil {
						r.Fatal(err)
					}
					group = append(group, part)
				}
				tails.unsettle(group)
				if _, ok := tails.head(group[0].stream); ok {
					r.Fatalf("an unsettled tail was read")
				}
				tails.settle(group)
				if got := bytesHeld(tails); got > most+2*largestPart {
					r.Fatalf("%d bytes in memory, want at most %d and what one part has in each generation", got, most)
				}
			},
			"read": func(r *rapid.T) {
				stream := streams.Draw(r, "stream")
				from, limit := journal.Seq(rapid.Int64Range(-2, 200).Draw(r, "from")), rapid.IntRange(-1, 50).Draw(r, "limit")
				dir := rapid.SampledFrom([]journal.Direction{journal.Forward, journal.Backward}).Draw(r, "direction")
				got, ok := tails.read(stream, from, limit, dir)
				if !ok {
					return
				}
				hits++
				want, _ := model.ReadRange(t.Context(), stream, from, limit, dir)
				if len(want)+len(got) > 0 && !reflect.DeepEqual(want, got) { // cmp is slow on long data
					r.Fatalf("read(%q, %d, %d, %d) (-model +tails):\n%s", stream, from, limit, dir, cmp.Diff(want, got))
				}
			},
			"head": func(r *rapid.T) {
				stream := streams.Draw(r, "stream")
				if got, ok := tails.head(stream); ok {
					if want, _, _ := model.HeadOf(t.Context(), stream); got != want {
						r.Fatalf("head(%q) = %d, want %d", stream, got, want)
					}
				}
			},
		})
	})
	if hits == 0 {
		t.Error("no read was ever answered from memory")
	}
}

func bytesHeld(t *tails) int {
	held := 0
	for _, generation := range []map[string]*tail{t.young, t.old} {
		for _, tail := range generation {
			for _, event := range tail.events {
				held += size(event)
			}
		}
	}
	return held
}

// A stream that was just written is read without a connection; older events,
// and a stream whose append is being committed, are not.
func TestTailsSpareConnections(t *testing.T) {
	path := journalPath(t)
	synctest.Test(t, func(t *testing.T) {
		store := openAt(t, path, Config{Readers: 1})
		defer store.Close()
		if err := store.Append(t.Context(), fact("s", 0)); err != nil {
			t.Fatal(err)
		}
		r, err := store.readers.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		events, err := store.ReadRange(t.Context(), "s", 0, 10, journal.Forward)
		if err != nil || len(events) != 1 {
			t.Errorf("ReadRange without a connection: %d events, %v, want 1", len(events), err)
		}
		wantHead(t, store, "s", 1)

		g := hold(store)
		go store.Append(t.Context(), fact("s", 1))
		synctest.Wait()
		answered := false
		go func() {
			store.HeadOf(t.Context(), "s")
			answered = true
		}()
		synctest.Wait()
		if answered {
			t.Error("a stream was read from memory while its append was being committed")
		}
		store.readers.give(r)
		close(g.open)
		synctest.Wait()
	})
}
