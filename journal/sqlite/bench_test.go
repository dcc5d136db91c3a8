package sqlite_test

import (
	"encoding/json/jsontext"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/sqlite"
)

// payload is as large as a fact of a conversation usually is.
var payload = jsontext.Value(`{"source":"model","value":{"text":"` + strings.Repeat("abcdefgh", 20) + `"}}`)

// BenchmarkAppend is the bare group commit: every producer appends one event
// at a time to streams of its own and waits for it. The target is 33,000 events
// a second from 64 producers on two cores.
func BenchmarkAppend(b *testing.B) {
	for _, producers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			store := openBench(b, sqlite.Config{})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for p := range producers {
				wg.Go(func() {
					for i := p; i < b.N; i += producers {
						stream := fmt.Sprintf("abcdefghijklmnopqrst%03d%03d", p, i/producers%16)
						appendOne(b, store, stream)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkRead is what the kernel asks of a store for each message: what was
// just written, from memory, and anything else, from the file.
func BenchmarkRead(b *testing.B) {
	for name, config := range map[string]sqlite.Config{"memory": {}, "file": {Tails: -1}} {
		store := openBench(b, config)
		for i := range 2000 {
			appendOne(b, store, fmt.Sprintf("stream-%d", i%20))
		}
		for _, limit := range []int{1, 10, 30} {
			b.Run(fmt.Sprintf("%s/range=%d", name, limit), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					events, err := store.ReadRange(b.Context(), fmt.Sprintf("stream-%d", i%20), journal.Seq(100-limit), limit, journal.Forward)
					if err != nil || len(events) != limit {
						b.Fatalf("ReadRange: %d events, %v", len(events), err)
					}
				}
			})
		}
		b.Run(name+"/head", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, _, err := store.HeadOf(b.Context(), fmt.Sprintf("stream-%d", i%20)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func openBench(b *testing.B, config sqlite.Config) journal.Store {
	b.Helper()
	store := open(b, filepath.Join(b.TempDir(), "journal.db"), config)
	b.Cleanup(func() { store.Close() })
	return store
}

func appendOne(tb testing.TB, store journal.Store, stream string) {
	err := store.Append(tb.Context(), journal.Append{
		Stream: stream, Expect: journal.AtEnd,
		Events: []journal.Event{{Kind: "DECIDED", ID: "conv#o12:admit", Time: time.UnixMilli(1900000000000), Data: payload}},
	})
	if err != nil {
		tb.Error(err)
	}
}

// A new conversation that has not been spoken in takes at most 2.5 KiB of the
// file: a stream of two events, and two rows.
func TestDiskSize(t *testing.T) {
	const conversations, most = 500, 2560
	path := filepath.Join(t.TempDir(), "journal.db")
	store := open(t, path, sqlite.Config{})
	var wg sync.WaitGroup
	for producer := range 25 {
		wg.Go(func() {
			for i := producer; i < conversations; i += 25 {
				newConversation(t, store, i)
			}
		})
	}
	wg.Wait()
	if err := store.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	each := info.Size() / conversations
	t.Logf("%d bytes a conversation", each)
	if each > most {
		t.Errorf("%d conversations take %d bytes, that is %d each, want at most %d", conversations, info.Size(), each, most)
	}
}

func newConversation(t *testing.T, store journal.Store, i int) {
	id := fmt.Sprintf("%08x%018d", uint32(i)*2654435761, i)
	at := time.UnixMilli(1900000000000)
	started := jsontext.Value(`{"flow":"conversation","version":"1","principal":{"tenant":"acme","actor":"someone@example.com"},` +
		`"input":{"` + strings.Repeat("x", 200) + `":1}}`)
	err := store.Append(t.Context(), journal.Append{
		Stream: id, Expect: 0,
		Events: []journal.Event{
			{Kind: "STARTED", Time: at, Data: started},
			{Kind: "DECIDED", ID: "conv#settings", Time: at, Data: payload},
		},
		Rows: []journal.Row{
			{Space: `owner:["acme","someone@example.com",null]`, Key: id, Sort: "conversation:2030-01-02T03:04:05.678Z", Data: jsontext.Value(`{"state":"open"}`)},
			{Space: "work", Key: id, Sort: "conversation:2030-01-02T03:04:05.678Z"},
		},
	})
	if err != nil {
		t.Error(err)
	}
}
