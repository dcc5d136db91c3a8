package conversation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/journal/sqlite"
	"github.com/parley-run/parley/kernel"
)

var equalRecords = cmp.Options{cmp.AllowUnexported(identity.Field{}), cmpopts.EquateEmpty()}

// all pages through a history, checking each page against its bounds.
func (w *readerWorld) all(id string, o HistoryOptions) []Record {
	w.t.Helper()
	var all []Record
	for range 100_000 {
		page, err := w.client.History(context.Background(), ann, id, o)
		if err != nil {
			w.t.Fatalf("History(%+v): %v", o, err)
		}
		if len(page.Entries) > min(orDefault(o.Limit, DefaultPage), MaxPage) {
			w.t.Fatalf("History(%+v): %d entries", o, len(page.Entries))
		}
		all = append(all, page.Entries...)
		if page.Done {
			return all
		}
		if o.Cursor != nil && *o.Cursor == page.Next {
			w.t.Fatalf("History(%+v): no progress at %v", o, page.Next)
		}
		o.Cursor = &page.Next
	}
	w.t.Fatal("History does not come to an end")
	return nil
}

// C-17.15, C-17.12, C-17.11: whatever the log, the page sizes and the place,
// paging forward and backward give the same entries in opposite orders, and
// going on from an entry's own cursor neither repeats nor skips.
func TestHistoryPagesProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newReaderWorld(t, memory.New())
		l := w.lay("c")
		for range rapid.IntRange(0, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"said", "refused", "noise", "rotate", "forged"}).Draw(rt, "step") {
			case "said":
				l.said("x")
			case "refused":
				l.refused()
			case "noise":
				l.noise(rapid.IntRange(0, 600).Draw(rt, "noise"))
			case "rotate":
				l.rotate()
			case "forged":
				l.forged()
			}
		}
		l.flush()
		if rapid.Bool().Draw(rt, "closed") {
			l.close()
		}
		o := HistoryOptions{
			Limit:   rapid.IntRange(1, 7).Draw(rt, "limit"),
			MaxScan: rapid.SampledFrom([]int{1, 2, 3, 255, 256, 257, 2000}).Draw(rt, "maxScan"),
		}
		forward := w.all("c", o)
		if diff := cmp.Diff(l.want, forward, equalRecords); diff != "" {
			rt.Fatalf("forward %+v (-want +got):\n%s", o, diff)
		}
		o.Direction = journal.Backward
		backward := w.all("c", o)
		slices.Reverse(backward)
		if diff := cmp.Diff(l.want, backward, equalRecords); diff != "" {
			rt.Fatalf("backward %+v (-want +got):\n%s", o, diff)
		}
		if len(l.want) == 0 {
			return
		}
		at := rapid.IntRange(0, len(l.want)-1).Draw(rt, "at")
		o.Cursor = &l.want[at].Cursor
		before := w.all("c", o)
		slices.Reverse(before)
		o.Direction = journal.Forward
		after := w.all("c", o)
		if diff := cmp.Diff(slices.Concat(l.want[:at], l.want[at+1:]), slices.Concat(before, after), equalRecords); diff != "" {
			rt.Fatalf("around %v (-want +got):\n%s", *o.Cursor, diff)
		}
	})
}

// forged lays decisions that look like records and are none (C-15.13, C-15.14).
func (l *laid) forged() *laid {
	good := Record{Turn: 9, Ord: 9, Role: RoleUser, Status: StatusAccepted, Text: "forged", Time: testTime}
	value := encoded(l.w.t, good)
	l.event(kernel.KindDecided, idUser(900), kernel.Decided{Source: "tool", Value: value})
	l.event(kernel.KindDecided, "conv#o1#x:user", kernel.Decided{Source: SourceRecord, Value: value})
	l.event(kernel.KindDecided, "conv#o01:user", kernel.Decided{Source: SourceRecord, Value: value})
	l.event(kernel.KindDecided, idReply(901), kernel.Decided{Source: SourceRecord, Value: value}) // a user's record
	l.event(kernel.KindDecided, idUser(902), kernel.Decided{Source: SourceRecord, Fault: "PANIC"})
	l.event(kernel.KindDecided, idUser(903), kernel.Decided{Source: SourceRecord, Value: encoded(l.w.t, []int{1})})
	return l.event(kernel.KindSettled, idUser(904), kernel.Settled{Value: value})
}

// C-17.9: the store operations of one call are bounded for every cursor, over
// 1,000 generations.
func TestHistoryBoundOverGenerations(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").said("first").flush()
	for range 999 {
		l.rotate()
	}
	l.said("last").flush()
	for _, text := range []string{
		"", "0.0", "999999999.0", "999999999999999.999999999999999", "0.999999999999999", "500.3", "999.0", "1000.0", "998.999999999999999",
	} {
		for _, dir := range []journal.Direction{journal.Forward, journal.Backward} {
			for _, maxScan := range []int{1, 10, 100, 2000} {
				var from *Cursor
				if text != "" {
					c, err := ParseCursor(text)
					if err != nil {
						t.Fatal(err)
					}
					from = &c
				}
				before := w.store.Counts()
				_, err := w.client.History(t.Context(), ann, "c", HistoryOptions{Cursor: from, Direction: dir, MaxScan: maxScan})
				did := w.store.Counts().Since(before)
				// 2·log2(1000)+3 to find the head, and a few reads of single events around it.
				if err != nil || did.Reads+did.Heads > 2*maxScan+23+5 || did.EventsRead > maxScan+4 {
					t.Errorf("History from %q, direction %d, maxScan %d: %+v, %v", text, dir, maxScan, did, err)
				}
			}
		}
	}
}

// C-17.10: the head is found by at most 2·log2(G)+3 point reads.
func TestHeadProbe(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").flush()
	for range 999 {
		l.rotate()
	}
	before := w.store.Counts()
	head, ok, err := kernel.HeadGeneration(t.Context(), w.store, "c")
	if n := w.store.Counts().Since(before).Heads; head != 999 || !ok || err != nil || n > 22 {
		t.Errorf("HeadGeneration = %d, %v, %v with %d reads; want 999 with at most 22", head, ok, err, n)
	}
}

// C-17.2, C-17.3: 10,000 events of tool traffic between two messages are
// crossed in short pages, each within its bound.
func TestHistoryAcrossToolTraffic(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").said("one").noise(10_000).said("two").flush()
	for _, dir := range []journal.Direction{journal.Forward, journal.Backward} {
		o := HistoryOptions{Direction: dir}
		pages, got := 0, 0
		for done := false; !done; pages++ {
			before := w.store.Counts()
			page, err := w.client.History(t.Context(), ann, "c", o)
			did := w.store.Counts().Since(before)
			if err != nil || did.EventsRead > DefaultMaxScan+4 {
				t.Fatalf("History: %+v, %v; want at most %d events read", did, err, DefaultMaxScan)
			}
			got += len(page.Entries)
			o.Cursor, done = &page.Next, page.Done
		}
		if got != len(l.want) || pages != 6 {
			t.Errorf("direction %d: %d entries in %d pages; want %d in 6", dir, got, pages, len(l.want))
		}
	}
}

// C-17.8: what lies beyond the end is taken back to it, and reading on from
// there shows what comes later; backward the tip is included.
func TestHistoryBeyondTheEnd(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").said("one").rotate().said("two").flush() // the tip is a record
	at := func(g int, seq journal.Seq) *Cursor { return &Cursor{Generation: g, Seq: seq} }
	tip := l.want[3].Cursor
	for _, from := range []*Cursor{at(1, 999), at(7, 0), at(99, 99), &tip} {
		page, err := w.client.History(t.Context(), ann, "c", HistoryOptions{Cursor: from})
		if err != nil || len(page.Entries) != 0 || !page.Done || page.Next != tip {
			t.Errorf("forward from %v: %+v, %v; want nothing, done at %v", from, page, err, tip)
		}
	}
	for _, from := range []*Cursor{at(1, 999), at(7, 0), nil} {
		page, err := w.client.History(t.Context(), ann, "c", HistoryOptions{Cursor: from, Direction: journal.Backward, Limit: 1})
		if diff := cmp.Diff(l.want[3:], page.Entries, equalRecords); err != nil || diff != "" {
			t.Errorf("backward from %v: %v (-want +got):\n%s", from, err, diff)
		}
	}
	// The tip of an older generation is not the end.
	got := w.all("c", HistoryOptions{Cursor: at(0, 999)})
	if diff := cmp.Diff(l.want[2:], got, equalRecords); diff != "" {
		t.Errorf("forward from beyond the tip of generation 0 (-want +got):\n%s", diff)
	}
	page, err := w.client.History(t.Context(), ann, "c", HistoryOptions{Cursor: at(1, 999)})
	if err != nil {
		t.Fatal(err)
	}
	l.said("three").flush()
	if got := w.all("c", HistoryOptions{Cursor: &page.Next}); len(got) != 2 {
		t.Errorf("after the clamp: %v; want what came later", texts(got))
	}
}

// C-17.5: a cursor of one conversation, used on another, shows the other's
// entries alone.
func TestHistoryForeignCursor(t *testing.T) {
	w := newMemoryWorld(t)
	a := w.lay("a").said("a1").said("a2").rotate().said("a3").flush()
	b := w.lay("b").said("b1").flush()
	for _, r := range a.want {
		for _, dir := range []journal.Direction{journal.Forward, journal.Backward} {
			for _, got := range w.all("b", HistoryOptions{Cursor: &r.Cursor, Direction: dir}) {
				if !strings.Contains(got.Text, "b1") {
					t.Errorf("cursor %v of a on b shows %q", r.Cursor, got.Text)
				}
			}
		}
	}
	_ = b
}

// reclaimed is a store whose retention has taken the events of some streams.
type reclaimed struct {
	journal.Store
	gone map[string]bool
}

func (s reclaimed) ReadRange(ctx context.Context, stream string, from journal.Seq, limit int, dir journal.Direction) ([]journal.Event, error) {
	if s.gone[stream] {
		return nil, nil
	}
	return s.Store.ReadRange(ctx, stream, from, limit, dir)
}

// C-17.16: reclaimed generations are skipped, count as hops, and are no error.
func TestHistorySkipsReclaimed(t *testing.T) {
	gone := map[string]bool{}
	w := newReaderWorld(t, reclaimed{memory.New(), gone})
	l := w.lay("c").said("0").rotate()
	for g := 1; g < 6; g++ {
		gone[kernel.StreamOf("c", g)] = true
		l.said(fmt.Sprint(g)).rotate()
	}
	l.said("6").flush()
	want := slices.Concat(l.want[:2], l.want[12:])
	for _, maxScan := range []int{1, 2, 2000} {
		got := w.all("c", HistoryOptions{MaxScan: maxScan})
		if diff := cmp.Diff(want, got, equalRecords); diff != "" {
			t.Errorf("forward, maxScan %d (-want +got):\n%s", maxScan, diff)
		}
		got = w.all("c", HistoryOptions{MaxScan: maxScan, Direction: journal.Backward})
		slices.Reverse(got)
		if diff := cmp.Diff(want, got, equalRecords); diff != "" {
			t.Errorf("backward, maxScan %d (-want +got):\n%s", maxScan, diff)
		}
	}
}

// C-17.13: a read stops soon after its context ends.
func TestHistoryStopsWithItsContext(t *testing.T) {
	w := newMemoryWorld(t)
	w.lay("c").noise(20_000).flush()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reads := 0
	w.store.OnRead(func(string) error {
		if reads++; reads == 10 {
			cancel()
		}
		return nil
	})
	_, err := w.client.History(ctx, ann, "c", HistoryOptions{MaxScan: 20_000})
	if !errors.Is(err, context.Canceled) || reads > 11 {
		t.Errorf("History: %v after %d reads; want it cut at the 10th", err, reads)
	}
}

// The same pages over the durable store.
func TestHistoryOnSQLite(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w := newReaderWorld(t, store)
	l := w.lay("c").said("one").noise(300).refused().rotate().rotate().forged().said("two").flush()
	l.rotate().close()
	for _, maxScan := range []int{1, 7, 2000} {
		for _, from := range []*Cursor{nil, {0, 0}, {0, 999}, {1, 0}, {99, 99}, &l.want[2].Cursor} {
			forward := w.all("c", HistoryOptions{Cursor: from, MaxScan: maxScan, Limit: 2})
			backward := w.all("c", HistoryOptions{Cursor: from, MaxScan: maxScan, Limit: 2, Direction: journal.Backward})
			slices.Reverse(backward)
			wantForward, wantBackward := l.want, l.want
			if from != nil {
				after := func(r Record) bool {
					return r.Cursor.Generation > from.Generation || r.Cursor.Generation == from.Generation && r.Cursor.Seq > from.Seq
				}
				wantForward = slices.DeleteFunc(slices.Clone(l.want), func(r Record) bool { return !after(r) })
				wantBackward = slices.DeleteFunc(slices.Clone(l.want), func(r Record) bool { return after(r) || r.Cursor == *from })
			}
			if diff := cmp.Diff(wantForward, forward, equalRecords); diff != "" {
				t.Errorf("forward from %v, maxScan %d (-want +got):\n%s", from, maxScan, diff)
			}
			if diff := cmp.Diff(wantBackward, backward, equalRecords); diff != "" {
				t.Errorf("backward from %v, maxScan %d (-want +got):\n%s", from, maxScan, diff)
			}
		}
	}
}

// T50, C-15.5: failed and interrupted turns are entries like others, and a
// record from before there were ordinals is one without (C-15.9, C-43.1).
func TestHistoryShowsEveryStatus(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c").said("one")
	l.n++
	l.record(idUser(l.n), Record{Turn: 2, Role: RoleUser, Status: StatusAccepted, Text: "two"})
	l.record(idReply(l.n), Record{Turn: 2, Role: RoleAssistant, Status: StatusFailed, Reason: ReasonModelError, ErrorID: "e"})
	l.n++
	l.record(idUser(l.n), Record{Turn: 3, Role: RoleUser, Status: StatusAccepted, Text: "three"})
	l.record(idReply(l.n), Record{Turn: 3, Role: RoleAssistant, Status: StatusInterrupted, Text: "thr"})
	l.n++
	l.event(kernel.KindDecided, idUser(l.n), kernel.Decided{Source: SourceRecord, Value: encoded(t, Record{Turn: 4, Role: RoleUser, Status: StatusAccepted, Text: "old", Time: testTime})})
	l.want = append(l.want, Record{Turn: 4, Role: RoleUser, Status: StatusAccepted, Text: "old", Time: testTime, Cursor: Cursor{Seq: l.next - 1}})
	l.flush()
	if diff := cmp.Diff(l.want, w.all("c", HistoryOptions{}), equalRecords); diff != "" {
		t.Errorf("History (-want +got):\n%s", diff)
	}
}

// C-17.14, C-17.3: the limits of a page, and its size in bytes.
func TestHistoryPageLimits(t *testing.T) {
	w := newMemoryWorld(t)
	l := w.lay("c")
	for range 150 {
		l.said("x")
	}
	l.flush()
	for limit, want := range map[int]int{0: 50, -1: 50, 1: 1, 200: 200, 201: 200, 1 << 40: 200} {
		page, err := w.client.History(t.Context(), ann, "c", HistoryOptions{Limit: limit})
		if err != nil || len(page.Entries) != want || page.Done {
			t.Errorf("History with limit %d: %d entries, done %v, %v; want %d", limit, len(page.Entries), page.Done, err, want)
		}
	}
	long := w.lay("long")
	for range 8 {
		long.said(strings.Repeat("y", 200<<10)).flush()
	}
	page, err := w.client.History(t.Context(), ann, "long", HistoryOptions{})
	if err != nil || len(page.Entries) != 6 || page.Done {
		t.Errorf("History of 16 texts of 200 KiB: %d entries, %v; want a page that ends past 1 MiB", len(page.Entries), err)
	}
	if got := w.all("long", HistoryOptions{}); len(got) != 16 {
		t.Errorf("all pages have %d entries; want 16", len(got))
	}
}
