package lease

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/journal/journaltest"
	"github.com/parley-run/parley/journal/memory"
)

func everybody(context.Context, Use) bool { return true }

func openOn(t *testing.T, store journal.Store) *Registry {
	t.Helper()
	r, err := Open(t.Context(), Config{
		Store: store, Granted: everybody, Log: slog.New(slog.DiscardHandler),
		Bodies: map[Resource]body.Adapter{Browser: sim.New(sim.NewWorld())},
	})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(r.Close)
	return r
}

// L-7.5: whatever is damaged in the stream, the resource is blocked and nobody can
// free it; the registry opens all the same.
func TestDamaged(t *testing.T) {
	granted := `{"holder":{"conversation":"c","identity":{"actor":"a"}},"token":"` + fmt.Sprintf("%064x", 1) + `","deadline":"2026-12-01T12:00:00Z"}`
	for name, stream := range map[string][]journal.Event{
		"an unknown kind":          {{Kind: "GRANTED", Data: jsontext.Value(granted)}, {Kind: "BLESSED"}},
		"no JSON":                  {{Kind: "GRANTED", Data: jsontext.Value(`{"holder":`)}},
		"no data":                  {{Kind: "GRANTED"}},
		"an unknown field":         {{Kind: "GRANTED", Data: jsontext.Value(`{"more":1,` + granted[1:])}},
		"no token":                 {{Kind: "GRANTED", Data: jsontext.Value(`{"holder":{},"token":"","deadline":"2026-12-01T12:00:00Z"}`)}},
		"an event of another life": {{Kind: "GRANTED", Data: jsontext.Value(granted)}, {Kind: "RENEWED", Data: jsontext.Value(`{"incarnation":"browser.9","deadline":"2026-12-01T12:00:00Z"}`)}},
		"a torn release":           {{Kind: "GRANTED", Data: jsontext.Value(granted)}, {Kind: "RELEASED", Data: jsontext.Value(`{"incarnation":"brow`)}},
		"twice granted":            {{Kind: "GRANTED", Data: jsontext.Value(granted)}, {Kind: "GRANTED", Data: jsontext.Value(granted)}},
	} {
		store := memory.New()
		if err := store.Append(t.Context(), journal.Append{Stream: StreamOf(Browser), Events: stream}); err != nil {
			t.Fatal(err)
		}
		r := openOn(t, store)
		s := r.Status()[0]
		if s.State != RecoveryRequired || s.Reason != Damaged {
			t.Errorf("%s: status %+v, want recovery_required, damaged", name, s)
		}
		if _, err := r.Acquire(t.Context(), holder, Browser, 0); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: Acquire = %v, want busy", name, err)
		}
		for _, of := range []body.Incarnation{"", "browser.0", "browser.1"} {
			if err := r.Recover(t.Context(), holder, Browser, of); err == nil {
				t.Errorf("%s: Recover(%q) freed it", name, of)
			}
			if err := (host{r, r.slots[Browser]}).Ended(t.Context(), body.Evidence{Incarnation: of, Proof: body.ProofGone}, 9); err == nil {
				t.Errorf("%s: a report of %q freed it", name, of)
			}
		}
		if next, _, _ := store.HeadOf(t.Context(), StreamOf(Browser)); next != journal.Seq(len(stream)) {
			t.Errorf("%s: the damaged stream was written to", name)
		}
	}
}

// A stream of years opens as fast as one of a day: what is read ends at the newest
// release.
func TestOpenReadsTheEnd(t *testing.T) {
	store := memory.New()
	r := openOn(t, store)
	for range 1000 {
		claim, err := r.Acquire(t.Context(), holder, Browser, 0)
		if err != nil {
			t.Fatal(err)
		}
		g, _ := r.Guard(holder, Browser, claim.Token)
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	counting := journaltest.Wrap(store)
	r = openOn(t, counting)
	if got := counting.Counts().EventsRead; got > loadBlock {
		t.Errorf("%d events of 2,000 were read, want at most one block", got)
	}
	claim, err := r.Acquire(t.Context(), holder, Browser, 0)
	if err != nil || claim.Incarnation != "browser.2000" {
		t.Errorf("Acquire = %q, %v; want browser.2000", claim.Incarnation, err)
	}
}

// A long life is read through, block by block, and so is one that fills a block
// exactly.
func TestOpenLongLife(t *testing.T) {
	for _, renewals := range []int{loadBlock - 2, loadBlock - 1, loadBlock, 3 * loadBlock} {
		store := memory.New()
		r := openOn(t, store)
		claim, err := r.Acquire(t.Context(), holder, Browser, 0)
		if err != nil {
			t.Fatal(err)
		}
		g, _ := r.Guard(holder, Browser, claim.Token)
		for range renewals {
			if _, err := g.Renew(t.Context(), MaxLength); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
		r = openOn(t, store)
		if s := r.Status()[0]; s.State != RecoveryRequired || s.Incarnation != "browser.0" || s.Reason != Restarted {
			t.Errorf("%d renewals: status %+v, want the claim, blocked", renewals, s)
		}
	}
}

// What cannot be opened is refused with a reason.
func TestOpenRefuses(t *testing.T) {
	store := memory.New()
	failing := journaltest.Wrap(store)
	failing.OnRead(func(string) error { return errors.New("disk on fire") })
	for name, config := range map[string]Config{
		"no store":     {Granted: everybody},
		"no grants":    {Store: store},
		"a wrong key":  {Store: store, Granted: everybody, Bodies: map[Resource]body.Adapter{"Browser:1": sim.New(sim.NewWorld())}},
		"no adapter":   {Store: store, Granted: everybody, Bodies: map[Resource]body.Adapter{Browser: nil}},
		"a dead store": {Store: failing, Granted: everybody, Bodies: map[Resource]body.Adapter{Browser: sim.New(sim.NewWorld())}},
	} {
		if r, err := Open(t.Context(), config); err == nil {
			r.Close()
			t.Errorf("Open with %s = nil", name)
		}
	}
}

// Stored events may be anything: decoding and folding them never panics, and what
// is not whole leaves the resource occupied.
func FuzzRebuild(f *testing.F) {
	f.Add("GRANTED", []byte(`{"holder":{"conversation":"c"},"token":"`+fmt.Sprintf("%064x", 1)+`","deadline":"2026-12-01T12:00:00Z"}`), "RELEASED", []byte(`{"incarnation":"browser.0","cause":"stop","claimant":{}}`))
	f.Add("QUEUED", []byte(`{"request":{"id":"","requester":{},"resource":"browser","incarnation":"browser.0","deadline":"2026-12-01T12:00:00Z","state":"waiting"}}`), "SPENT", []byte(`{"id":"browser.q1","state":"woken"}`))
	f.Add("RESERVED", []byte(`{"incarnation":"browser.0","number":1,"action":"x"}`), "COMPLETED", []byte(`{"incarnation":"browser.0","number":1,"outcome":"unknown"}`))
	f.Add("NOTED", []byte(`{"incarnation":"browser.0","number":1,"reference":{}}`), "BLOCKED", []byte(`{"incarnation":"browser.0","reason":"expired"}`))
	f.Fuzz(func(t *testing.T, kind1 string, data1 []byte, kind2 string, data2 []byte) {
		first, _ := encode(granted{Holder: holder, Token: key, Deadline: noon.wall}, noon.wall)
		s := rebuild(Browser, []journal.Event{first, {Seq: 1, Kind: kind1, Data: data1}, {Seq: 2, Kind: kind2, Data: data2}})
		if s.next != 3 {
			t.Errorf("the stream ends at %d, want 3", s.next)
		}
		if s.claim == nil && kind1 != "RELEASED" && kind2 != "RELEASED" {
			t.Errorf("free without a release: %s %s", kind1, kind2)
		}
		if _, err := decide(s, restart{}, instant{noon.wall.Add(time.Hour), time.Hour}); err != nil {
			t.Errorf("restart = %v", err)
		}
	})
}
