package conversation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/kernel"
)

// listener takes live words as they come.
type listener struct {
	live *Live
	done chan struct{}

	mu    sync.Mutex
	lines []string          // kind, turn and text of each piece
	texts map[int]string    // what a person has before them, by turn
	kinds map[WordsKind]int // how many pieces of each kind
}

func listen(t *testing.T, hub *Hub, id string) *listener {
	t.Helper()
	live, err := hub.follow(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &listener{live: live, done: make(chan struct{}), texts: map[int]string{}, kinds: map[WordsKind]int{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-live.Hint():
				f.take()
			case <-f.done:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(f.done)
		ended.Wait()
		live.Close()
	})
	return f
}

// take applies what there is.
func (f *listener) take() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		p := f.live.Next()
		if p == nil {
			return
		}
		f.kinds[p.Kind]++
		f.lines = append(f.lines, strings.TrimSpace(fmt.Sprintf("%s %d %s", p.Kind, p.Turn, p.Text)))
		if p.Kind != WordsDelta {
			f.texts[p.Turn] = ""
		}
		f.texts[p.Turn] += p.Text
	}
}

// so is what the listener was told so far, when nothing moves any more.
func (f *listener) so() []string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines
}

func (f *listener) text(turn int) string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts[turn]
}

func (h *Hub) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.channels)
}

// C-28.5, C-9.3, C-9.4: the words of each turn come while it lasts and are, one
// after another, the text of its record, over tools and rotations; a replay says
// nothing, and nothing is left in the hub (C-28.12).
func TestLiveWords(t *testing.T) {
	stages(t, `
when has "look"
  words "I look." 10ms
  call clock {}
then
  words "It is late." 10ms
otherwise
  reply 10ms`, func(t *testing.T, s *stage) {
		hub := NewHub(HubConfig{})
		s.config.Hub = hub
		s.say("look, please")
		f := listen(t, hub, "talk")
		s.hear(2)
		f.so() // before the next turn begins
		s.say("one two three")
		s.hear(4)
		for _, r := range s.records() {
			if r.Role == RoleAssistant && f.text(r.Turn) != r.Text {
				t.Errorf("the words of turn %d were %q, its record is %q", r.Turn, f.text(r.Turn), r.Text)
			}
		}
		want := []string{
			"delta 1 I", "delta 1 look.", "delta 1 It", "delta 1 is", "delta 1 late.",
			"delta 2 one", "delta 2 two", "delta 2 three",
		}
		got := f.so()
		if diff := cmp.Diff(want, trimmed(got)); diff != "" {
			t.Errorf("pieces (-want +got):\n%s", diff)
		}
		s.reboot()
		s.quiet()
		if more := f.so(); len(more) != len(got) {
			t.Errorf("a replay says %q", more[len(got):])
		}
		f.live.Close()
		if n := hub.size(); n != 0 {
			t.Errorf("the hub holds %d conversations after the end", n)
		}
	})
}

// trimmed takes the white space around texts away.
func trimmed(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return out
}

// C-28.3, C-28.11, T36: two conversations in mid-stream with one effect get
// their own words and nothing else, though one has a reader who never reads.
func TestLiveConversationsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "when has \"apples\"\n  repeat 50 \"apple \" 10ms\notherwise\n  repeat 50 \"pear \" 10ms")
		hub := NewHub(HubConfig{})
		s.config.Hub = hub
		s.boot()
		caller := kernel.By(*ann)
		_, _, err := s.rt.Start(t.Context(), caller, kernel.StartRequest{Flow: DefaultFlowName, ID: "other", Input: Stamp(&ann.Identity)})
		if err != nil {
			t.Fatal(err)
		}
		stalled, err := hub.follow("talk", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stalled.Close()
		apples, pears := listen(t, hub, "talk"), listen(t, hub, "other")
		begun := time.Now()
		s.say("apples")
		payload := s.keys.signUser("other", asker(ann), "m", "pears", time.Now())
		if err := s.rt.Send(t.Context(), s.rt.System(), "other", Topic, payload, "m"); err != nil {
			t.Fatal(err)
		}
		s.hear(2)
		if took := time.Since(begun); took != 500*time.Millisecond {
			t.Errorf("the model took %v beside a reader who does not read, want 500ms", took)
		}
		for f, word := range map[*listener]string{apples: "apple ", pears: "pear "} {
			if got := f.text(1); got != strings.Repeat(word, 50) || f.kinds[WordsDelta] != 50 {
				t.Errorf("of %q came %q in %d pieces", word, got, f.kinds[WordsDelta])
			}
		}
		if p := stalled.Next(); p == nil || p.Kind != WordsDelta || p.Text != strings.Repeat("apple ", 50) || stalled.Next() != nil {
			t.Errorf("who reads late gets %+v, want all of it in one piece", p)
		}
	})
}

// C-28.4: what is said outside of a turn reaches nobody: without a scope, after
// the end of the turn, in the scope of another hub.
func TestDeltaWithoutScope(t *testing.T) {
	hub, other := NewHub(HubConfig{}), NewHub(HubConfig{})
	live, err := hub.follow("talk", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	hub.delta(t.Context(), agent.Delta{Text: "nobody's"})
	ended := hub.begin("talk", 1, nil)
	ended.end()
	hub.delta(ended.within(t.Context()), agent.Delta{Text: "too late"})
	foreign := other.begin("talk", 1, nil)
	defer foreign.end()
	hub.delta(foreign.within(t.Context()), agent.Delta{Text: "another's"})
	if p := live.Next(); p != nil {
		t.Errorf("a reader is given %+v", p.Words)
	}
}

// C-28.7, C-30.5, T100: who comes in mid-reply is given the reply so far, and
// then what follows; who comes behind the end is given nothing (T37).
func TestPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "otherwise\n  words \"a b c d\" 1s")
		hub := NewHub(HubConfig{})
		s.config.Hub = hub
		s.say("go")
		early := listen(t, hub, "talk")
		s.pass(2500 * time.Millisecond)
		late := listen(t, hub, "talk")
		s.hear(2)
		after := listen(t, hub, "talk")
		if diff := cmp.Diff([]string{"partial 1 a b", "delta 1 c", "delta 1 d"}, trimmed(late.so())); diff != "" {
			t.Errorf("from the middle (-want +got):\n%s", diff)
		}
		if early.text(1) != "a b c d" || late.text(1) != "a b c d" || len(after.so()) != 0 {
			t.Errorf("early %q, late %q, after the end %q", early.text(1), late.text(1), after.so())
		}
	})
}

// C-28.6, T40, T42: a reply that was cut by a crash begins again, with a reset
// before its first word, for who stayed (the same hub) and for who came back to
// another process; and it is whole, also where a part of it is on record and is
// not said again.
func TestResetAfterCrash(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration
		want  []string // of a reader in the new process
	}{
		{"in the first call", 2500 * time.Millisecond, []string{"reset 1", "delta 1 a", "delta 1 b", "delta 1 c", "delta 1 d", "delta 1 e"}},
		{"in the second call", 4500 * time.Millisecond, []string{"reset 1", "delta 1 a b c d", "delta 1 e"}},
		{"between the requests and the first word", 500 * time.Millisecond, []string{"reset 1", "delta 1 a", "delta 1 b", "delta 1 c", "delta 1 d", "delta 1 e"}},
	} {
		for _, stays := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, same hub %t", test.name, stays), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t, "otherwise\n  words \"a b c\" 1s\n  call clock {}\nthen\n  words \"d e\" 1s")
					hub := NewHub(HubConfig{})
					s.config.Hub = hub
					s.say("go")
					f := listen(t, hub, "talk")
					s.pass(test.after)
					said := len(f.so())
					s.stop()
					if !stays {
						hub = NewHub(HubConfig{})
						s.config.Hub = hub
						f, said = listen(t, hub, "talk"), 0
					}
					s.boot()
					s.hear(2)
					if diff := cmp.Diff(test.want, trimmed(f.so()[said:])); diff != "" {
						t.Errorf("after the crash (-want +got):\n%s", diff)
					}
					if record := s.records()[1].Text; f.text(1) != record {
						t.Errorf("the reader has %q, the record is %q", f.text(1), record)
					}
				})
			})
		}
	}
}

// C-28.6 [ours]: an attempt that is made after another has spoken resets; one
// that is made after a silent one does not; a given-up attempt is not heard.
func TestResetOfAnotherAttempt(t *testing.T) {
	hub := NewHub(HubConfig{})
	live, err := hub.follow("talk", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	v := hub.begin("talk", 1, nil)
	defer v.end()
	var got []string
	say := func(step string, attempt int, before, text string) {
		v.say(kernel.Step{ID: step, Attempt: attempt}, agent.Delta{Text: text, Before: before})
		for p := live.Next(); p != nil; p = live.Next() {
			got = append(got, fmt.Sprint(p.Kind, " ", p.Text))
		}
	}
	say("m1", 2, "", "one") // the first attempt said nothing
	say("m2", 1, "one", " two")
	say("m2", 2, "one", " 2")
	say("m2", 1, "one", " late")
	say("m2", 2, "one", " 3")
	want := []string{"delta one", "delta  two", "reset ", "delta one 2", "delta  3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
}

// C-28.7: of a reply of 200,000 characters the newest 65,536 are kept, and it is
// said so; a reader who keeps up gets all of it, and the record has all of it.
func TestLongReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unit := strings.Repeat("1234567ü9 ", 100)
		s := newStage(t, fmt.Sprintf("otherwise\n  repeat 200 %q 100ms\n  repeat 1 \"end\" 1s", unit))
		hub := NewHub(HubConfig{})
		s.config.Hub = hub
		s.say("go")
		early := listen(t, hub, "talk")
		stalled, err := hub.follow("talk", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stalled.Close()
		s.pass(20500 * time.Millisecond)
		late, err := hub.follow("talk", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		whole := strings.Repeat(unit, 200)
		kept := []rune(whole)[200_000-maxPartial:]
		for name, live := range map[string]*Live{"late": late, "stalled": stalled} {
			p := live.Next()
			if p == nil || p.Kind != WordsPartial || !p.Truncated || p.Text != string(kept) || live.Next() != nil {
				t.Errorf("the %s reader is not given the newest 65,536 characters", name)
			}
		}
		s.hear(2)
		if early.text(1) != whole+"end" || s.records()[1].Text != whole+"end" {
			t.Error("the reader who kept up, or the record, has not all of it")
		}
		if p := late.Next(); p == nil || p.Kind != WordsDelta || p.Text != "end" {
			t.Errorf("after the partial comes %+v", p)
		}
	})
}

// C-28.8: after the record of a turn nothing of it is told, whatever the reader
// had not taken; the next turn is.
func TestSupersede(t *testing.T) {
	hub := NewHub(HubConfig{})
	live, _ := hub.follow("talk", nil)
	behind, _ := hub.follow("talk", nil)
	defer live.Close()
	defer behind.Close()
	v := hub.begin("talk", 1, nil)
	v.say(kernel.Step{ID: "m", Attempt: 1}, agent.Delta{Text: "one"})
	live.Supersede(1)
	v.end()
	if p := live.Next(); p != nil {
		t.Errorf("after the record comes %+v", p.Words)
	}
	if p := behind.Next(); p == nil || p.Text != "one" {
		t.Errorf("another reader, who has no record yet, gets %+v", p)
	}
	live.Supersede(1)
	if text := live.channel.reply.text; text != nil {
		t.Errorf("the hub still holds %q", text)
	}
	v = hub.begin("talk", 2, nil)
	defer v.end()
	v.say(kernel.Step{ID: "n", Attempt: 1}, agent.Delta{Text: "two"})
	for _, l := range []*Live{live, behind} {
		if p := l.Next(); p == nil || p.Kind != WordsDelta || p.Turn != 2 || p.Text != "two" {
			t.Errorf("of the next turn comes %+v", p)
		}
	}
}

// C-28.9: there is room for 64 readers of a conversation, and for the next one
// when one leaves; others are not concerned. Client.Live judges first.
func TestMaxReaders(t *testing.T) {
	w := newMemoryWorld(t)
	hub := NewHub(HubConfig{})
	w.client.hub = hub
	for _, id := range []string{"a", "b"} {
		if _, err := w.client.Start(t.Context(), ann, id); err != nil {
			t.Fatal(err)
		}
	}
	var readers []*Live
	for range DefaultMaxReaders {
		live, err := w.client.Live(t.Context(), ann, "a")
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, live)
	}
	if _, err := w.client.Live(t.Context(), ann, "a"); !errors.Is(err, ErrTooManyReaders) {
		t.Errorf("one reader more: %v", err)
	}
	if _, err := w.client.Live(t.Context(), person("acme", "eve"), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a stranger: %v", err)
	}
	b, err := w.client.Live(t.Context(), ann, "b")
	if err != nil {
		t.Errorf("of another conversation: %v", err)
	}
	readers[0].Close()
	readers[0].Close()
	again, err := w.client.Live(t.Context(), ann, "a")
	if err != nil {
		t.Errorf("after one left: %v", err)
	}
	for _, live := range append(readers, again, b) {
		live.Close()
	}
	if hub.size() != 0 {
		t.Errorf("the hub holds %d conversations", hub.size())
	}
}

// Readers at the same place share one encoding.
func TestEncodedOnce(t *testing.T) {
	hub := NewHub(HubConfig{})
	v := hub.begin("talk", 1, nil)
	defer v.end()
	var readers []*Live
	for range 10 {
		live, err := hub.follow("talk", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close()
		readers = append(readers, live)
	}
	encodings := 0
	for round := range 3 {
		v.say(kernel.Step{ID: "m", Attempt: 1}, agent.Delta{Text: "word"})
		for _, live := range readers[round:] { // some fall behind
			live.Next().Encoded(func(w Words) []byte { encodings++; return []byte(w.Text) })
		}
	}
	if encodings != 3 {
		t.Errorf("three pieces for ten readers were encoded %d times", encodings)
	}
}

// Whatever the order of what happens, a reader who has taken all there is has
// the reply before them, or its end (C-28.7).
func TestReadersAgreeWithReply(t *testing.T) {
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 1))
		hub := NewHub(HubConfig{})
		keep := listener{texts: map[int]string{}, kinds: map[WordsKind]int{}}
		keep.live, _ = hub.follow("talk", nil)
		readers := []*listener{&keep}
		turn, said, attempt := 1, "", 1
		v := hub.begin("talk", turn, nil)
		for range 60 {
			switch random.IntN(8) {
			case 0:
				live, err := hub.follow("talk", nil)
				if err == nil {
					readers = append(readers, &listener{live: live, texts: map[int]string{}, kinds: map[WordsKind]int{}})
				}
			case 1:
				attempt++
				said = ""
			case 2:
				v.end()
				turn, said = turn+random.IntN(2), ""
				attempt++
				v = hub.begin("talk", turn, nil)
			case 3:
				readers[random.IntN(len(readers))].take()
			default:
				text := strings.Repeat("😀", 1+random.IntN(3*maxPartial/8))
				v.say(kernel.Step{ID: fmt.Sprint("m", attempt), Attempt: attempt}, agent.Delta{Text: text})
				said += text
			}
		}
		v.say(kernel.Step{ID: fmt.Sprint("m", attempt), Attempt: attempt}, agent.Delta{Text: "."})
		said += "."
		for i, f := range readers {
			f.take()
			got := f.texts[turn]
			if got != said && !(strings.HasSuffix(said, got) && len(got) > 4*(maxPartial-2)) {
				t.Fatalf("seed %d: reader %d has %d bytes of turn %d, which has %d", seed, i, len(got), turn, len(said))
			}
			f.live.Close()
		}
		v.end()
		if hub.size() != 0 {
			t.Fatalf("seed %d: the hub is not empty", seed)
		}
	}
}

// SSE-54: turns, readers and closes at the same time; the race detector looks on.
func TestHubUnderLoad(t *testing.T) {
	hub := NewHub(HubConfig{})
	var all sync.WaitGroup
	for i := range 4 {
		id := fmt.Sprint("talk", i%2)
		all.Go(func() {
			for turn := range 50 {
				v := hub.begin(id, turn+1, nil)
				ctx := v.within(context.Background())
				for range 20 {
					hub.delta(ctx, agent.Delta{Text: "word "})
				}
				v.end()
			}
		})
		for range 8 {
			all.Go(func() {
				for range 50 {
					live, err := hub.follow(id, nil)
					if err != nil {
						t.Error(err)
						return
					}
					for range 5 {
						if p := live.Next(); p != nil {
							p.Encoded(func(w Words) []byte { return []byte(w.Text) })
							live.Supersede(p.Turn - 1)
						}
					}
					live.Close()
				}
			})
		}
	}
	all.Wait()
	if hub.size() != 0 {
		t.Errorf("the hub holds %d conversations", hub.size())
	}
}

// BenchmarkDelta is what a piece costs the model, beside readers who do not read.
func BenchmarkDelta(b *testing.B) {
	for _, readers := range []int{0, DefaultMaxReaders} {
		b.Run(fmt.Sprint(readers, " readers"), func(b *testing.B) {
			hub := NewHub(HubConfig{})
			v := hub.begin("talk", 1, nil)
			defer v.end()
			for range readers {
				live, err := hub.follow("talk", nil)
				if err != nil {
					b.Fatal(err)
				}
				defer live.Close()
			}
			ctx := v.within(context.Background())
			for b.Loop() {
				hub.delta(ctx, agent.Delta{Text: "some words "})
			}
		})
	}
}
