package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
)

// cuts is how often the readers of TestManyDisconnects are cut off in all.
func cuts() int64 {
	if underRace {
		return 1_000
	}
	return 10_000
}

// C-30.4, C-18.4, T37, SSE-21, SSE-22, SSE-23, SSE-27, SSE-34: readers over HTTP/1.1
// and HTTP/2 are cut off at any byte and come back behind the last entry that they
// have, while four writers write into conversations that rotate. Each gets each
// entry once, in order.
func TestManyDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := conversation.NewHub(conversation.HubConfig{})
		w := newWorldOn(t, journaltest.Wrap(memory.New()), "otherwise\n  reply 1ms", hub)
		p := w.peers(t, func(conn net.Conn) net.Conn { return &brittle{Conn: conn, left: 50_000 + rand.IntN(500_000)} })
		var ids []string
		for range 4 {
			ids = append(ids, w.start())
		}
		for i := range 30 { // ten rotations
			w.say(ids[0], fmt.Sprint("before ", i))
		}
		var cut atomic.Int64
		var reading, writing sync.WaitGroup
		seen := make([][]string, 16)
		for i := range seen {
			reading.Go(func() { seen[i] = readCut(t, p, i%2 == 1, ids[i/2%len(ids)], &cut) })
		}
		for range 4 {
			writing.Go(func() { writeUntil(t, w, ids, func() bool { return cut.Load() >= cuts() }) })
		}
		writing.Wait()
		for _, id := range ids {
			w.end(id)
		}
		reading.Wait()
		for i, got := range seen {
			want := w.ids(ids[i/2%len(ids)])
			if !slices.Equal(got, want) {
				t.Errorf("reader %d got %d entries of %d, or not each once in order", i, len(got), len(want))
			}
		}
		time.Sleep(writeWithin + time.Second)
		synctest.Wait()
		if open, subscribed := w.open(), w.store.Counts().Subscriptions; open != 0 || subscribed != 0 {
			t.Errorf("%d streams and %d subscriptions are left", open, subscribed)
		}
		t.Logf("%d cuts, %d entries", cut.Load(), len(w.ids(ids[0])))
	})
}

// readCut reads a conversation to its close over streams that are cut, until
// there were enough cuts, and returns the ids of its entries as they came.
func readCut(t *testing.T, p *peers, two bool, id string, cut *atomic.Int64) (seen []string) {
	last := ""
	for over := false; !over; {
		most := int64(1) << 40
		if cut.Load() < cuts() {
			most = 1 + rand.Int64N(1<<(6+rand.IntN(8)))
		}
		err := p.read(two, id, last, most, func(e sse) {
			switch event(e.name) {
			case eventMessage:
				seen, last = append(seen, e.id), e.id
			case eventClosed:
				over = true
			case eventError:
				t.Errorf("error %s", e.data)
			}
			if e.id != "" && event(e.name) != eventMessage { // SSE-21
				t.Errorf("%s has the id %s", e.name, e.id)
			}
		})
		if errors.Is(err, errCut) {
			cut.Add(1)
		}
		over = over || errors.Is(err, errOver)
	}
	return seen
}

// writeUntil sends turns of ann's to conversations, sometimes many at once and
// sometimes after a pause in which every reader has caught up.
func writeUntil(t *testing.T, w *world, ids []string, enough func() bool) {
	for !enough() {
		message := conversation.Message{Text: "so " + strings.Repeat("wörd", rand.IntN(1<<rand.IntN(7)))}
		_, err := w.client.SendTurn(context.Background(), ann, ids[rand.IntN(len(ids))], message)
		if err != nil && !errors.Is(err, conversation.ErrQueueFull) {
			t.Error(err)
			return
		}
		if err != nil || rand.IntN(3) > 0 {
			time.Sleep(rand.N(50 * time.Millisecond))
		}
	}
}
