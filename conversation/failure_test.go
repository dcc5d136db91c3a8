package conversation

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// A model that fails with a secret in its error: the secret is nowhere in the
// store; the host gets the real error once, under the id of the record (C-25.1
// to C-25.4, C-25.7).
func TestSecretOfAFailure(t *testing.T) {
	stages(t, `
when has "break"
  fail unavailable after 31s "key sk-secret at secret.host"
otherwise
  reply`, func(t *testing.T, s *stage) {
		type call struct {
			id    string
			err   error
			where Where
		}
		var calls []call
		s.config.OnError = func(id string, err error, where Where) { calls = append(calls, call{id, err, where}) }
		s.say("break")
		s.hear(2)
		s.reboot()
		s.say("go on")
		got := s.hear(4)
		want := []string{
			"1/1 user accepted break", "1/2 assistant failed model-error ",
			"2/3 user accepted go on", "2/4 assistant complete go on",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		if strings.Contains(s.bytes(), "secret") {
			t.Error("the error's text is in the store")
		}
		if len(calls) != 1 {
			t.Fatalf("the error hook was called %d times, want once", len(calls))
		}
		id := s.records()[1].ErrorID
		if calls[0].id != id || len(id) != 26 || calls[0].where != (Where{ConversationID: "talk", Turn: 1}) {
			t.Errorf("the hook got %+v, the record has the error id %q", calls[0], id)
		}
		if !errors.Is(calls[0].err, model.ErrUnavailable) || !strings.Contains(calls[0].err.Error(), "secret.host") {
			t.Errorf("the hook got %v, want the real error", calls[0].err)
		}
	})
}

// A failed turn is told once: to the hook, or to the log where there is none,
// which then has its code and no text of it (C-25.3, C-25.4).
func TestFailureIsToldOnce(t *testing.T) {
	for _, hooked := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, "otherwise\n  fail refused \"secret.host\"")
			var log bytes.Buffer
			s.config.Log = slog.New(slog.NewTextHandler(&log, nil))
			calls, want := 0, 1
			if hooked {
				s.config.OnError, want = func(string, error, Where) { calls++ }, 0
			}
			s.say("hello")
			s.hear(2)
			if got := strings.Count(log.String(), "\n"); got != want || calls != 1-want {
				t.Errorf("with a hook %v: %d lines are logged, the hook is called %d times; want %d, %d:\n%s",
					hooked, got, calls, want, 1-want, log.String())
			}
			if told := log.String(); !hooked && !strings.Contains(told, "code="+model.ErrRefused.Code) || strings.Contains(told, "secret") {
				t.Errorf("the log has %q; want the code of the failure alone", told)
			}
		})
	}
}

// An error hook that panics or blocks stops nothing; it has 5 s (C-25.5).
func TestBadErrorHooks(t *testing.T) {
	for _, test := range []struct {
		name  string
		hook  func(leave chan struct{})
		after time.Duration
	}{
		{"panics", func(chan struct{}) { panic("hook") }, 0},
		{"blocks", func(leave chan struct{}) { <-leave }, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leave := make(chan struct{})
				defer close(leave)
				s := newStage(t, "otherwise\n  fail refused")
				s.config.OnError = func(string, error, Where) { test.hook(leave) }
				start := time.Now()
				s.say("hello")
				if got := s.hear(2); got[1] != "1/2 assistant failed model-error " {
					t.Errorf("reply %q", got[1])
				}
				if after := time.Since(start); after != test.after {
					t.Errorf("the reply came after %v, want %v", after, test.after)
				}
			})
		})
	}
}

// What is not granted fails as denied: the tool, and the model itself (C-25.2).
func TestDeniedTurn(t *testing.T) {
	for _, effect := range []kernel.EffectID{"model", "tool.clock"} {
		t.Run(string(effect), func(t *testing.T) {
			stages(t, "otherwise\n  call clock {}\nthen\n  say \"late\"", func(t *testing.T, s *stage) {
				s.grant = func(id kernel.EffectID) bool { return id != effect }
				s.say("hello")
				if got := s.hear(2); got[1] != "1/2 assistant failed denied " {
					t.Errorf("reply %q", got[1])
				}
			})
		})
	}
}

// A model that panics fails the turn, and the next one is answered.
func TestPanickingModel(t *testing.T) {
	stages(t, "otherwise\n  reply", func(t *testing.T, s *stage) {
		var once sync.Once
		s.config.Agent.Model = panicking{s.model, func() { once.Do(func() { panic("secret") }) }}
		s.say("one")
		s.say("two")
		got := s.hear(4)
		if !strings.HasPrefix(got[1], "1/2 assistant failed") || got[3] != "2/4 assistant complete two" {
			t.Errorf("transcript %q", got)
		}
	})
}

// Close while idle, during a turn, twice, and raced with a send (C-26).
func TestClose(t *testing.T) {
	closes := func(s *stage, id string) {
		s.send(s.keys.signClose("talk", &ann.Identity, id, time.Now()), id)
	}
	for _, test := range []struct {
		name string
		play func(s *stage)
		want []string
	}{
		{"idle", func(s *stage) { closes(s, "c1") }, []string{}},
		{
			"after a turn, twice", func(s *stage) { s.say("one"); closes(s, "c1"); closes(s, "c2") },
			[]string{"1/1 user accepted one", "1/2 assistant complete one"},
		},
		{
			"before a send", func(s *stage) { s.say("one"); closes(s, "c1"); s.say("never run") },
			[]string{"1/1 user accepted one", "1/2 assistant complete one"},
		},
		{
			"during a turn", func(s *stage) { s.say("one"); s.pass(5 * time.Second); closes(s, "c1") },
			[]string{"1/1 user accepted one", "1/2 assistant complete one"},
		},
		{"unsigned", func(s *stage) {
			s.send(encoded(s.t, map[string]string{"kind": "close"}), "")
			closes(s, "c1")
		}, []string{"0/1 user rejected unauthenticated "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			stages(t, "otherwise\n  wait 10s\n  reply", func(t *testing.T, s *stage) {
				test.play(s)
				s.pass(time.Minute)
				if diff := cmp.Diff(test.want, s.quiet()); diff != "" {
					t.Errorf("transcript (-want +got):\n%s", diff)
				}
				if info := s.state(); info.State != kernel.Completed {
					t.Errorf("the execution is %s", info.State)
				}
				var closed []Closed
				for _, e := range s.events() {
					if c, ok := ClosedOf(e); ok {
						closed = append(closed, c)
					}
				}
				if len(closed) != 1 || closed[0].Asker == nil || *closed[0].Asker != ann.Identity || closed[0].Time.IsZero() {
					t.Errorf("closes on record: %+v", closed)
				}
			})
		})
	}
}
