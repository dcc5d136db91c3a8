package lease

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

var (
	noon   = instant{time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), time.Hour}
	holder = Caller{Conversation: "conv-a", Identity: identity.Identity{Actor: "ann"}, Seat: Seat{Service, "turn"}}
	key    = digest{1}
	shown  = fence{"conv-a", key}
)

// situation makes a state of a resource out of commands that must be accepted.
func situation(t *testing.T, resource Resource, commands ...command) state {
	t.Helper()
	s := state{resource: resource}
	for _, cmd := range commands {
		s = must(t, s, cmd, noon)
	}
	return s
}

func must(t *testing.T, s state, cmd command, now instant) state {
	t.Helper()
	events, err := decide(s, cmd, now)
	if err != nil {
		t.Fatalf("%T%+v = %v", cmd, cmd, err)
	}
	after, err := s.after(events, now.wall)
	if err != nil {
		t.Fatalf("%T%+v: %v", cmd, cmd, err)
	}
	return after
}

var (
	claimed   = acquire{caller: holder, granted: true, token: key, length: DefaultLength}
	operate   = reserve{fence: shown, granted: true, action: "touch"}
	lost      = complete{of: "browser.0", number: 1, outcome: unknown}
	proved    = body.Evidence{Incarnation: "browser.0", Proof: body.ProofGone}
	recovered = recovery{of: "browser.0", by: holder, may: true, nonce: "n"}
	striking  = strike{nonce: "n", may: true}
	proving   = confirm{nonce: "n", may: true, evidence: proved}
)

// The rows of L-6.4, one by one, in their order: from, event, to.
func TestRows(t *testing.T) {
	held := []command{claimed}
	busy := []command{claimed, operate}
	uncertain := []command{claimed, operate, lost}
	after := noon.add(DefaultLength)
	for _, row := range []struct {
		name string
		from []command
		cmd  command
		now  instant
		err  error
		to   State
		ops  int // left, uncertain ones included
	}{
		{"free, acquire", nil, claimed, noon, nil, Held, 0},
		{"free, acquire without the grant", nil, acquire{caller: holder, token: key, length: 1}, noon, ErrDenied, Free, 0},
		{"held, acquire by another", held, acquire{caller: Caller{Conversation: "b"}, granted: true, token: digest{2}, length: 1}, noon, ErrBusy, Held, 0},
		{"held, acquire by the holder", held, claimed, noon, ErrBusy, Held, 0},
		{"held, renew", held, renew{shown, true, Seat{}, time.Hour}, noon, nil, Held, 0},
		{"held, renew, token stale", held, renew{fence{"conv-a", digest{9}}, true, Seat{}, time.Hour}, noon, ErrStale, Held, 0},
		{"held, renew, deadline past", held, renew{shown, true, Seat{}, time.Hour}, after, ErrExpired, RecoveryRequired, 0},
		{"held, reserve", held, operate, noon, nil, Held, 1},
		{"held, reserve, another conversation", held, reserve{fence: fence{"b", key}, granted: true}, noon, ErrStale, Held, 0},
		{"held, reserve without the grant", held, reserve{fence: shown}, noon, ErrDenied, Held, 0},
		{"held, reserve, deadline past", held, operate, after, ErrExpired, RecoveryRequired, 0},
		{"held, complete", busy, complete{of: "browser.0", number: 1, outcome: done}, noon, nil, Held, 0},
		{"held, complete, another operation", busy, complete{of: "browser.0", number: 2, outcome: done}, noon, ErrStale, Held, 1},
		{"held, complete, another incarnation", busy, complete{of: "browser.1", number: 1, outcome: done}, noon, ErrStale, Held, 1},
		{"held, not begun", busy, complete{of: "browser.0", number: 1, outcome: notBegun}, noon, nil, Held, 0},
		{"held, outcome uncertain", busy, lost, noon, nil, RecoveryRequired, 1},
		{"held, ordinary stop, confirmed", append(held[:1:1], stop{shown, "n"}, striking), proving, noon, nil, Free, 0},
		{"held, ordinary stop, a pin left", busy, stop{shown, "n"}, noon, ErrProofUnavailable, Held, 1},
		{"held, ordinary stop, not confirmed", append(held[:1:1], stop{shown, "n"}, striking), abandon{"n"}, noon, nil, Held, 0},
		{"held, confirmed end", held, report{proved, 0}, noon, nil, Free, 0},
		{"held, confirmed end, a pin left", busy, report{proved, 9}, noon, body.ErrPinned, Held, 1},
		{"held, confirmed end of another life", held, report{body.Evidence{Incarnation: "browser.1"}, 0}, noon, ErrStale, Held, 0},
		{"held, deadline passes", busy, expire{}, after, nil, RecoveryRequired, 1},
		{"held, service restarts", busy, restart{}, noon, nil, RecoveryRequired, 1},
		{"blocked, renew", uncertain, renew{shown, true, Seat{}, time.Hour}, noon, ErrRecoveryRequired, RecoveryRequired, 1},
		{"blocked, reserve", uncertain, operate, noon, ErrRecoveryRequired, RecoveryRequired, 1},
		{"blocked, acquire", uncertain, claimed, noon, ErrBusy, RecoveryRequired, 1},
		{"blocked, stop", uncertain, stop{shown, "n"}, noon, ErrRecoveryRequired, RecoveryRequired, 1},
		{"blocked, exact completion", uncertain, complete{of: "browser.0", number: 1, outcome: done, observed: true}, noon, nil, RecoveryRequired, 0},
		{"blocked, outcome uncertain", append(busy[:2:2], operate, lost), complete{of: "browser.0", number: 2, outcome: unknown}, noon, nil, RecoveryRequired, 2},
		{"blocked, service restarts", uncertain, restart{}, noon, nil, RecoveryRequired, 1},
		{"blocked, confirmed", append(uncertain[:3:3], recovered, striking), proving, noon, nil, Free, 0},
		{"blocked, confirmed, a pin left", append(busy[:2:2], operate, lost), recovered, noon, ErrProofUnavailable, RecoveryRequired, 2},
		{"blocked, stop-check refused", append(uncertain[:3:3], recovered, striking), abandon{"n"}, noon, nil, RecoveryRequired, 1},
		{"blocked, evidence of another life", append(uncertain[:3:3], recovered), confirm{"n", true, body.Evidence{Incarnation: "browser.7"}}, noon, ErrProofUnavailable, RecoveryRequired, 1},
		{"blocked, recovery of another life", uncertain, recovery{of: "browser.7", may: true}, noon, ErrStale, RecoveryRequired, 1},
		{"held, recovery", held, recovered, noon, ErrBusy, Held, 0},
		{"blocked, recovery without authority", uncertain, recovery{of: "browser.0"}, noon, ErrDenied, RecoveryRequired, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := situation(t, Browser, row.from...)
			events, err := decide(s, row.cmd, row.now)
			if !errors.Is(err, row.err) {
				t.Errorf("error %v, want %v", err, row.err)
			}
			to, failed := s.after(events, row.now.wall)
			if failed != nil {
				t.Fatal(failed)
			}
			ops := 0
			if to.claim != nil {
				ops = len(to.claim.operations)
				if s.claim != nil && (to.claim.incarnation != s.claim.incarnation || to.claim.holder.Conversation != "conv-a") {
					t.Errorf("holder or incarnation changed: %+v", to.claim)
				}
			}
			if got := to.standing(row.now); got != row.to || ops != row.ops {
				t.Errorf("%s with %d operations, want %s with %d", got, ops, row.to, row.ops)
			}
			if row.err != nil && row.now == noon && len(events) > 0 {
				t.Errorf("a refusal came to %d events", len(events))
			}
		})
	}
}

// The lease of a mouth covers one operation, through its receipt (L-10.1 to
// L-10.3).
func TestMouth(t *testing.T) {
	said := func(out outcome) complete {
		return complete{of: "discord_mouth.0", number: 1, outcome: out}
	}
	s := situation(t, DiscordMouth, claimed, operate)
	if _, err := decide(s, operate, noon); !errors.Is(err, ErrLimit) {
		t.Errorf("a second operation = %v, want refused", err)
	}
	for out, want := range map[outcome]State{done: Free, refused: Free, notBegun: Held, unknown: RecoveryRequired} {
		if got := must(t, s, said(out), noon).standing(noon); got != want {
			t.Errorf("%s leads to %s, want %s", out, got, want)
		}
	}
	late := said(done)
	late.observed = true
	if got := must(t, must(t, s, said(unknown), noon), late, noon).standing(noon); got != Free {
		t.Errorf("a late receipt leads to %s, want free", got)
	}
}

// L-8.7: a deadline has passed as soon as one of the two clocks says so; a wall
// clock set back, or a machine that slept, revives nothing.
func TestTwoClocks(t *testing.T) {
	s := situation(t, Browser, claimed)
	for name, now := range map[string]instant{
		"the wall clock was set back": {noon.wall.Add(-time.Hour), noon.mono + DefaultLength},
		"the machine slept":           {noon.wall.Add(DefaultLength), noon.mono},
		"both":                        noon.add(DefaultLength),
	} {
		if _, err := decide(s, operate, now); !errors.Is(err, ErrExpired) {
			t.Errorf("%s: reserve = %v, want expired", name, err)
		}
		if got := s.standing(now); got != RecoveryRequired {
			t.Errorf("%s: %s, want recovery_required", name, got)
		}
	}
	if _, err := decide(s, operate, noon.add(DefaultLength-1)); err != nil {
		t.Errorf("reserve a nanosecond before = %v", err)
	}
}

// Folding from the log gives what was there, without what only the process knew.
func TestRebuild(t *testing.T) {
	s := state{resource: Browser}
	var all []journal.Event
	for _, cmd := range []command{
		claimed, operate,
		note{"browser.0", 1, []byte(`{"pid":7}`)},
		complete{of: "browser.0", number: 1, outcome: done},
		renew{shown, true, Seat{Native, "d"}, time.Minute},
		enqueue{holder, true, "browser.0", time.Minute},
		operate,
		complete{of: "browser.0", number: 2, outcome: notBegun},
		operate, lost3, recovered, striking,
	} {
		events, err := decide(s, cmd, noon)
		if err != nil {
			t.Fatalf("%T = %v", cmd, err)
		}
		for _, e := range events {
			if e.kind() == "" {
				continue
			}
			encoded, err := encode(e, noon.wall)
			if err != nil {
				t.Fatal(err)
			}
			encoded.Seq = journal.Seq(len(all))
			all = append(all, encoded)
		}
		if s, err = s.after(events, noon.wall); err != nil {
			t.Fatal(err)
		}
	}
	got := rebuild(Browser, all)
	s.claim.attempt = nil
	got.claim.deadline.mono = s.claim.deadline.mono
	if diff := cmp.Diff(fmt.Sprintf("%+v %+v", s.claim, s.requests), fmt.Sprintf("%+v %+v", got.claim, got.requests)); diff != "" || got.next != s.next {
		t.Errorf("rebuilt (-was +is):\n%s", diff)
	}
	if s.claim.begun != 2 || s.claim.newest != 3 {
		t.Errorf("begun %d, newest %d; want 2 and 3: one of three never began", s.claim.begun, s.claim.newest)
	}
	if got := pause(math.MaxInt16); got != maxPause {
		t.Errorf("pause = %v", got)
	}
}

var lost3 = complete{of: "browser.0", number: 3, outcome: unknown}
