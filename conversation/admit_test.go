package conversation

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
)

// One test per reason, each sent raw through the runtime, past the client; none
// runs anything, and the dialogue goes on (C-13.2 to C-13.4, C-13.14, C-13.15,
// C-13.23).
func TestRejections(t *testing.T) {
	stranger := identity.Identity{Tenant: identity.Some("acme"), Actor: "mallory"}
	delegate := ann.Identity
	delegate.OnBehalfOf = identity.Some("ann")
	other, err := NewKeys(bytes.Repeat([]byte("x"), 32))
	if err != nil {
		t.Fatal(err)
	}
	seal := func(s *stage, change func(*body)) jsontext.Value {
		b := newBody(KindUser, "talk", &ann.Identity, "m", time.Now())
		b.Text = "hello"
		change(&b)
		return s.keys.seal(b)
	}
	edit := 999 // there is no such record
	for _, test := range []struct {
		name    string
		payload func(s *stage) jsontext.Value
		want    string // reason and text
		asker   *identity.Identity
	}{
		{"no object", func(*stage) jsontext.Value { return jsontext.Value(`"hello"`) }, "malformed ", nil},
		{"null", func(*stage) jsontext.Value { return jsontext.Value(`null`) }, "malformed ", nil},
		{"no signature", func(*stage) jsontext.Value { return jsontext.Value(`{"text":"hello"}`) }, "unauthenticated ", nil},
		{"a colleague's own key, in the owner's name", func(*stage) jsontext.Value {
			return other.signUser("talk", &ann.Identity, "m", "hello", time.Now())
		}, "unauthenticated ", nil},
		{"empty text", func(s *stage) jsontext.Value { return seal(s, func(b *body) { b.Text = "" }) }, "malformed ", &ann.Identity},
		{"long text", func(s *stage) jsontext.Value {
			return seal(s, func(b *body) { b.Text = strings.Repeat("é", 11) })
		}, "malformed " + strings.Repeat("é", 11), &ann.Identity},
		{"unknown kind", func(s *stage) jsontext.Value { return seal(s, func(b *body) { b.Kind = "shout" }) }, "malformed hello", &ann.Identity},
		{"another conversation", func(s *stage) jsontext.Value {
			return seal(s, func(b *body) { b.ConversationID = "walk" })
		}, "unauthenticated ", nil},
		{"not the owner", func(s *stage) jsontext.Value { return seal(s, func(b *body) { b.Asker = &stranger }) }, "unauthenticated ", &stranger},
		{"the owner's delegate", func(s *stage) jsontext.Value { return seal(s, func(b *body) { b.Asker = &delegate }) }, "unauthenticated ", &delegate},
		{"nobody", func(s *stage) jsontext.Value { return seal(s, func(b *body) { b.Asker = nil }) }, "unauthenticated ", nil},
		{"too old", func(s *stage) jsontext.Value {
			return seal(s, func(b *body) { b.IssuedAt = time.Now().Add(-DefaultMaxEnvelopeAge).UnixMilli() - 1 })
		}, "stale hello", &ann.Identity},
		{"too far ahead", func(s *stage) jsontext.Value {
			return seal(s, func(b *body) { b.IssuedAt = time.Now().Add(time.Minute).UnixMilli() + 1 })
		}, "stale hello", &ann.Identity},
		{"an edit", func(s *stage) jsontext.Value { return seal(s, func(b *body) { b.EditOf = &edit }) }, "edit-invalid hello", &ann.Identity},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "otherwise\n  reply")
				s.config.Settings.MaxTurnChars = 10
				s.send(test.payload(s), "raw")
				s.say("and now?")
				got := s.hear(3)
				want := []string{"0/1 user rejected " + test.want, "1/2 user accepted and now?", "1/3 assistant complete and now?"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("transcript (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.asker, s.records()[0].Asker, cmp.Comparer(func(a, b identity.Identity) bool { return a == b })); diff != "" {
					t.Errorf("asker of the rejection (-want +got):\n%s", diff)
				}
				if n := len(s.model.all()); n != 1 {
					t.Errorf("%d model calls, want that of the good turn", n)
				}
			})
		})
	}
}

// The bounds of freshness themselves are fresh (C-13.6).
func TestFreshAtTheBounds(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		for i, issued := range []time.Time{time.Now().Add(-DefaultMaxEnvelopeAge), time.Now().Add(maxClockSkew)} {
			id := fmt.Sprint("m", i)
			s.send(s.keys.signUser("talk", &ann.Identity, id, "hello", issued), id)
		}
		if got := s.hear(4); !strings.HasSuffix(got[3], "complete hello") {
			t.Errorf("transcript %q", got)
		}
	})
}

// A peer copies the owner's signed envelope under a kernel message id of its
// own: replayed (C-13.7).
func TestCopiedEnvelope(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		payload := s.keys.signUser("talk", &ann.Identity, "m1", "pay 5", time.Now())
		s.send(payload, "m1")
		s.send(payload, "copied")
		s.send(payload, "")
		want := []string{
			"1/1 user accepted pay 5", "1/2 assistant complete pay 5",
			"0/3 user rejected replayed pay 5", "0/4 user rejected replayed pay 5",
		}
		if diff := cmp.Diff(want, s.hear(4)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
	})
}

// 1,025 ids evict the first, whose envelope is stale from then on: a captured
// envelope stays dead, over a rotation too (C-13.7 to C-13.9). The ids enter by
// edits, which are rejected after that and run nothing.
func TestReplayFloor(t *testing.T) {
	for _, rotate := range []int{0, 100} {
		t.Run(fmt.Sprint("rotate ", rotate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, "otherwise\n  reply")
				s.config.Settings.RotateEveryTurns = rotate
				first := s.keys.signUser("talk", &ann.Identity, "first", "pay 5", time.Now())
				s.send(first, "first")
				s.pass(time.Second)
				edit := 999 // there is no such record
				for i := range maxSeen {
					b := newBody(KindUser, "talk", &ann.Identity, fmt.Sprint(i), time.Now())
					b.Text, b.EditOf = "x", &edit
					if i == maxSeen-1 {
						s.send(first, "while it is remembered")
					}
					s.send(s.keys.seal(b), "")
				}
				s.send(first, "when it is forgotten")
				late := s.keys.signUser("talk", &ann.Identity, "late", "issued below the floor", time.Now().Add(-time.Second))
				s.send(late, "late")
				s.say("go on")
				got := s.quiet()
				var rest []string
				for _, line := range got {
					if !strings.Contains(line, "edit-invalid") {
						rest = append(rest, line[strings.Index(line, " ")+1:])
					}
				}
				want := []string{
					"user accepted pay 5", "assistant complete pay 5",
					"user rejected replayed pay 5",
					"user rejected stale pay 5",
					"user rejected stale issued below the floor",
					"user accepted go on", "assistant complete go on",
				}
				if diff := cmp.Diff(want, rest); diff != "" {
					t.Errorf("transcript without the edits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The floor only rises, whatever order envelopes come in (C-13.8).
func TestFloorOnlyRises(t *testing.T) {
	var r replaySet
	for i := range 3 * maxSeen {
		before := r.Floor
		r.enter(Seen{Key: fmt.Sprint(i), IssuedAt: int64((i * 7919) % 5000)})
		if r.Floor < before {
			t.Fatalf("after %d ids the floor fell from %d to %d", i+1, before, r.Floor)
		}
	}
	if len(r.Seen) != maxSeen || r.has("0") || !r.has(fmt.Sprint(3*maxSeen-1)) {
		t.Errorf("%d ids are remembered, the oldest %v, the newest %v", len(r.Seen), r.has("0"), r.has(fmt.Sprint(3*maxSeen-1)))
	}
}

// 250 invalid envelopes leave 100 records and one counter fact, and the next
// good turn is answered (C-13.12, C-13.13).
func TestFloodOfInvalidEnvelopes(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		for range 250 {
			s.send(jsontext.Value(`{"garbage":true}`), "")
		}
		s.say("hello")
		got := s.hear(102)
		if len(got) != 102 || got[99] != "0/100 user rejected unauthenticated " || got[101] != "1/102 assistant complete hello" {
			t.Errorf("%d records, from the 100th on %q", len(got), got[99:])
		}
		var dropped []string
		for _, e := range s.events() {
			if strings.HasSuffix(e.ID, ":dropped") {
				dropped = append(dropped, e.ID+" "+string(e.Data))
			}
		}
		want := []string{`conv#o200:dropped {"source":"conversation-record","value":{"dropped":100}}`}
		if diff := cmp.Diff(want, dropped); diff != "" {
			t.Errorf("counter facts (-want +got):\n%s", diff)
		}
		if rejected := s.quiet(); len(rejected) != len(got) {
			t.Errorf("the transcript grew by %q", rejected[len(got):])
		}
	})
}

// Four rejected messages and one accepted: five different ordinals, and the
// turns 0, 0, 0, 0, 1 (C-15.6, C-15.7).
func TestOrdinalsOfRejections(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		for range 4 {
			s.send(jsontext.Value(`[]`), "")
		}
		s.say("hello")
		s.hear(6)
		var got []string
		for _, r := range s.records()[:5] {
			got = append(got, fmt.Sprintf("%d:%d", r.Ord, r.Turn))
		}
		if diff := cmp.Diff([]string{"1:0", "2:0", "3:0", "4:0", "5:1"}, got); diff != "" {
			t.Errorf("ord:turn (-want +got):\n%s", diff)
		}
	})
}

// A clock that jumps between the run and the replay changes nothing: the
// verdict is on record (C-13.5).
func TestClockJump(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		s.say("one")
		before := s.hear(2)
		s.stop()
		s.pass(2 * DefaultMaxEnvelopeAge)
		s.boot()
		s.say("two")
		after := s.hear(4)
		if diff := cmp.Diff(before, after[:2]); diff != "" {
			t.Errorf("the transcript changed (-before +after):\n%s", diff)
		}
		if after[3] != "2/4 assistant complete two" {
			t.Errorf("the next turn is %q", after[3])
		}
	})
}

// A limit or a key that changed between the run and the replay changes nothing
// either; a queued message outlives each step of a rotation of keys (C-41.1).
func TestKeyRotation(t *testing.T) {
	old, young := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("y"), 32)
	keys := func(raw ...[]byte) Keys {
		keys, err := NewKeys(raw[0], raw[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	stages(t, "otherwise\n  wait 10s\n  reply", func(t *testing.T, s *stage) {
		for i, step := range []Keys{keys(old), keys(old, young), keys(young, old), keys(young)} {
			s.stop()
			s.keys, s.config.Keys = step, step
			s.config.Settings.MaxTurnChars = 100 - i
			s.boot()
			if i > 0 {
				s.hear(4 * i) // what was queued under the step before
			}
			if i < 3 { // under the last one nothing signed with the old key waits any more
				s.say(fmt.Sprint("turn ", 2*i))
				s.say(fmt.Sprint("queued ", 2*i+1))
				s.pass(time.Second)
			}
		}
		s.say("the end")
		got := s.hear(14)
		for i, line := range got {
			if strings.Contains(line, "rejected") {
				t.Errorf("record %d: %s", i+1, line)
			}
		}
		if info := s.state(); info.State != "running" {
			t.Errorf("the execution is %s %s", info.State, info.Fault)
		}
	})
}

// The order of C-13.4: of two things that are wrong the earlier one is the
// reason.
func TestOrderOfChecks(t *testing.T) {
	keys := testKeys(t)
	now := time.UnixMilli(1_700_000_000_000)
	key := senderKey(&ann.Identity, "known")
	seen := &replaySet{Seen: []Seen{{Key: key, IssuedAt: 1}}, Floor: now.UnixMilli() - 1000}
	a := admission{keys: keys, conversation: "talk", owner: &ann.Identity, maxTurnChars: 5, maxAge: time.Hour, replay: seen}
	long := newBody(KindUser, "walk", nil, "known", now)
	long.Text = "too long"
	for _, test := range []struct {
		name   string
		change func(*body)
		want   Reason
	}{
		{"shape before conversation", func(*body) {}, ReasonMalformed},
		{"conversation before asker", func(b *body) { b.Text = "x" }, ReasonUnauthenticated},
		{"asker before replay", func(b *body) { b.Text, b.ConversationID, b.ID = "x", "talk", key }, ReasonUnauthenticated},
		{"replay before freshness", func(b *body) {
			b.Text, b.ConversationID, b.ID, b.Asker, b.IssuedAt = "x", "talk", key, &ann.Identity, 1
		}, ReasonReplayed},
		{"freshness", func(b *body) { b.Text, b.ConversationID, b.Asker, b.IssuedAt = "x", "talk", &ann.Identity, seen.Floor }, ReasonStale},
		{"all is well", func(b *body) {
			b.Text, b.ConversationID, b.Asker, b.IssuedAt = "x", "talk", &ann.Identity, seen.Floor+1
		}, ""},
	} {
		b := long
		test.change(&b)
		if got := a.judge(keys.seal(b), now); got.Reason != test.want {
			t.Errorf("%s: reason %q, want %q", test.name, got.Reason, test.want)
		}
	}
}
