package lease_test

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/lease"
)

// parked hooks into the browser's calls at a point and keeps them there until the
// returned function is called, with what the hook returns then.
func (h *house) parked(at sim.Point) (let func(error)) {
	c := make(chan error)
	h.bodies[lease.Browser].On(at, func(ctx context.Context, _ body.Incarnation) error {
		select {
		case err := <-c:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return func(err error) { c <- err }
}

// do begins an effect on a goroutine of its own.
func do(t *testing.T, g lease.Guard, action string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := g.Do(t.Context(), action, nil)
		answer <- err
	}()
	synctest.Wait()
	return answer
}

// The reservation is on record before the effect (L-9.1, I5), and the claim before
// any effect under it (L-6.3, LC-47).
func TestPersistBeforeEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.bodies[lease.Browser].On(sim.AfterBegin, func(context.Context, body.Incarnation) error {
			h.wantStream(lease.Browser, "GRANTED", "RESERVED")
			return nil
		})
		h.hold(ann)
		h.wantStream(lease.Browser, "GRANTED", "RESERVED", "COMPLETED")
	})
}

// A store that fails at each write in turn: no claim, no renewal, no effect, and
// nothing is freed (L-7.3, I7). What did happen is found by the next start.
func TestStoreFailsAtEachWrite(t *testing.T) {
	for k := 1; k <= 5; k++ {
		for name, poison := range map[string]func(*house, int){
			"nothing written": func(h *house, k int) { h.store.PoisonBefore(k) },
			"bytes survive":   func(h *house, k int) { h.store.PoisonAfter(k) },
			"an odd error":    func(h *house, k int) { h.store.FailBefore(k, errors.New("disk full")) },
		} {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				poison(h, k)
				claim, err := h.r.Acquire(t.Context(), ann, lease.Browser, 0)
				g := h.guard(ann, lease.Claim{Resource: lease.Browser, Token: claim.Token})
				if err == nil {
					_, err = g.Do(t.Context(), sim.Touch, nil)
				}
				if err == nil {
					_, err = g.Renew(t.Context(), 0)
				}
				if err == nil {
					err = g.Release(t.Context())
				}
				wantErr(t, name, err, lease.ErrStoreUnavailable)
				if k == 1 && !claim.Token.IsZero() {
					t.Error("a token was given out for a claim that is not on record")
				}
				if acts := len(h.worlds[lease.Browser].Acts()); k <= 2 && acts > 0 {
					t.Errorf("%s at write %d: %d acts before they were on record", name, k, acts)
				}
				_, err = h.r.Acquire(t.Context(), bob, lease.Voice, 0)
				wantErr(t, "Acquire of another resource afterwards", err, lease.ErrStoreUnavailable)
				if k > 1 {
					h.wantState(lease.Browser, lease.Held, "conv-a") // reads go on
				}
				h.reboot()
				synctest.Wait()
				if s := h.status(lease.Browser); s.State == lease.Held || s.State == lease.Free && len(h.worlds[lease.Browser].Alive()) > 0 {
					t.Errorf("%s at write %d: %+v after the restart", name, k, s)
				}
			})
		}
	}
}

// LC-1, LC-13, LC-14: an effect that was admitted in time and waits past the
// deadline, be it ten times as long, does not begin (L-8.8). Not having begun is
// a definite outcome (L-9.9).
func TestLC14EffectPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		let := h.parked(sim.BeforeBegin)
		answer := do(t, g, sim.Touch)
		time.Sleep(10 * lease.DefaultLength)
		if s := h.status(lease.Browser); s.State != lease.RecoveryRequired || s.Operations != 1 {
			t.Errorf("status %+v, want recovery_required with one operation (L-8.2)", s)
		}
		let(nil)
		wantErr(t, "Do past the deadline", <-answer, lease.ErrExpired)
		if got := len(h.worlds[lease.Browser].Acts()); got != 1 {
			t.Errorf("%d acts, want the first alone", got)
		}
		h.wantStream(lease.Browser, "GRANTED", "RESERVED", "COMPLETED", "RESERVED", "BLOCKED", "COMPLETED")
		if s := h.status(lease.Browser); s.Operations != 0 || s.Reason != lease.Expired {
			t.Errorf("status %+v, want no operation left", s)
		}
	})
}

// Each kind of grant may be revoked between admission and effect (L-4.4); it is
// asked with the caller that was captured, and the action.
func TestSecondGrantCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		h.bodies[lease.Browser].On(sim.BeforeBegin, func(context.Context, body.Incarnation) error {
			h.set(h.deny, "conv-a", true)
			return nil
		})
		_, err := g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do with a grant that was revoked meanwhile", err, lease.ErrDenied)
		_, err = g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do without the grant", err, lease.ErrDenied)
		if got := len(h.worlds[lease.Browser].Acts()); got != 1 {
			t.Errorf("%d acts, want the first alone", got)
		}
		last := h.asked[len(h.asked)-1]
		if last.Caller != ann || last.Resource != lease.Browser || last.Action != sim.Touch {
			t.Errorf("the grant was asked for %+v, want the captured caller, the resource and the action", last)
		}
		h.wantState(lease.Browser, lease.Held, "conv-a") // the lease is none the worse
	})
}

// LC-3, LC-9, L-13.3: a call that waits in a queue of the adapter while its claim is
// blocked does not act under the next one.
func TestLC3QueuedCallOfAFormerHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		let := h.parked(sim.BeforeBegin)
		answer := do(t, g, sim.Touch)
		wantErr(t, "Release with a call in the queue", g.Release(t.Context()), body.ErrPinned) // LC-11
		time.Sleep(lease.DefaultLength)
		err := h.r.Recover(t.Context(), operator, lease.Browser, "browser.0")
		blocked, _ := errors.AsType[*lease.BlockedError](err)
		if blocked == nil || !slices.Equal(blocked.Operations, []string{"browser.0.2"}) {
			t.Errorf("Recover with a call in the queue = %v, want blocked by it", err)
		}
		let(nil)
		<-answer
		if err := h.r.Recover(t.Context(), operator, lease.Browser, "browser.0"); err != nil {
			t.Errorf("Recover = %v", err)
		}
		h.acquire(bob, lease.Browser)
	})
}

// LC-11, LC-46, LC-56: an ordinary stop with an operation active changes nothing
// and says what blocks; the body lives on.
func TestLC11ReleaseWhilePinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		let := h.parked(sim.AfterAct)
		first, second := do(t, g, sim.Touch), do(t, g, sim.Touch)
		err := g.Release(t.Context())
		blocked, _ := errors.AsType[*lease.BlockedError](err)
		if !errors.Is(err, lease.ErrProofUnavailable) || blocked == nil || !slices.Equal(blocked.Operations, []string{"browser.0.2", "browser.0.3"}) {
			t.Fatalf("Release = %v, want blocked by two operations, by name", err)
		}
		let(nil)
		synctest.Wait()
		wantErr(t, "Release with one left", g.Release(t.Context()), body.ErrPinned)
		if !h.worlds[lease.Browser].IsAlive("browser.0") {
			t.Error("a refused stop ended the body")
		}
		let(nil)
		wantErr(t, "the first effect", <-first, nil)
		wantErr(t, "the second effect", <-second, nil)
		if err := g.Release(t.Context()); err != nil {
			t.Errorf("Release with nothing left = %v", err)
		}
	})
}

// LC-32, LC-33, L-13.4: between two calls of the holder nobody else navigates,
// types or reads.
func TestLC32OneBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, g := h.hold(ann)
		if _, err := g.Do(t.Context(), sim.Write, jsontext.Value(`"ann's page"`)); err != nil {
			t.Fatal(err)
		}
		for _, action := range []string{sim.Read, sim.Write, sim.Touch} {
			_, err := h.guard(bob, claim).Do(t.Context(), action, jsontext.Value(`"x"`))
			wantErr(t, action+" by another, with the holder's token", err, lease.ErrStale)
		}
		if page, err := g.Do(t.Context(), sim.Read, nil); err != nil || string(page) != `"ann's page"` {
			t.Errorf("the holder reads %s, %v", page, err)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, next := h.hold(bob)
		if page, err := next.Do(t.Context(), sim.Read, nil); err != nil || string(page) != `""` { // LC-48, L-13.5
			t.Errorf("the next holder reads %s, %v; want nothing", page, err)
		}
	})
}

// LC-43: a start that fails definitely leaves nothing, and the claim can be given
// back.
func TestLC43StartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim := h.acquire(ann, lease.Browser)
		g := h.guard(ann, claim)
		for _, action := range []string{sim.Refuse, "fly"} {
			_, err := g.Do(t.Context(), action, nil)
			wantErr(t, "Do("+action+")", err, body.ErrRefused)
		}
		_, err := g.Do(t.Context(), "Fly Away!", nil)
		wantErr(t, "Do of no word", err, lease.ErrLimit)
		_, err = g.Do(t.Context(), sim.Touch, make(jsontext.Value, lease.MaxInputBytes+1))
		wantErr(t, "Do of a flood", err, lease.ErrLimit)
		if err := g.Release(t.Context()); err != nil {
			t.Errorf("Release = %v", err)
		}
	})
}

// LC-42: a lost answer is no end: the claim is blocked at once, and a late event
// of that exact operation settles it without freeing (L-9.2, L-9.3).
func TestLC42LostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		claim, g := h.hold(ann)
		b := h.bodies[lease.Browser]
		b.On(sim.AfterAct, func(context.Context, body.Incarnation) error { return errors.New("socket closed") })
		_, err := g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do with a lost answer", err, body.ErrUnknown)
		b.On(sim.AfterAct, nil)
		if s := h.status(lease.Browser); s.State != lease.RecoveryRequired || s.Reason != lease.Uncertain || s.Operations != 0 {
			t.Errorf("status %+v, want recovery_required, uncertain", s)
		}
		_, err = g.Do(t.Context(), sim.Touch, nil)
		wantErr(t, "Do after it", err, lease.ErrRecoveryRequired)
		for _, id := range []string{"browser.0.1", "browser.0.3", "browser.0.x", "browser.1.2", ""} {
			wantErr(t, "Settled of "+id, b.Settle(t.Context(), claim.Incarnation, id, nil), lease.ErrStale)
		}
		wantErr(t, "Settled of another life", b.Settle(t.Context(), "browser.7", "browser.7.2", nil), lease.ErrStale)
		if err := b.Settle(t.Context(), claim.Incarnation, "browser.0.2", body.ErrRefused); err != nil {
			t.Errorf("Settled = %v", err)
		}
		wantErr(t, "Settled twice", b.Settle(t.Context(), claim.Incarnation, "browser.0.2", nil), lease.ErrStale)
		h.wantState(lease.Browser, lease.RecoveryRequired, "conv-a")
		if got := len(h.worlds[lease.Browser].Acts()); got != 2 {
			t.Errorf("%d acts, want 2: nothing is repeated (L-9.6)", got)
		}
	})
}

// A call that hangs ends with its ctx, and its outcome is not known.
func TestHangingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, g := h.hold(ann)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := g.Do(ctx, sim.Hang, nil)
		wantErr(t, "Do that hangs", err, body.ErrUnknown)
		if s := h.status(lease.Browser); s.Reason != lease.Uncertain {
			t.Errorf("status %+v, want uncertain", s)
		}
	})
}

// An adapter that breaks its promises proves nothing: one that panics, one that
// does not ask, one that asks twice.
func TestFaithlessAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			perform func(context.Context, body.Effect) (jsontext.Value, error)
			want    error
		}{
			"panics":       {func(ctx context.Context, e body.Effect) (jsontext.Value, error) { e.Begin(ctx); panic("oh") }, body.ErrUnknown},
			"does not ask": {func(context.Context, body.Effect) (jsontext.Value, error) { return jsontext.Value("1"), nil }, body.ErrUnknown},
			"asks twice": {func(ctx context.Context, e body.Effect) (jsontext.Value, error) {
				return nil, errors.Join(e.Begin(ctx), e.Begin(ctx))
			}, body.ErrUnknown},
			"acts under no": {func(ctx context.Context, e body.Effect) (jsontext.Value, error) { return nil, nil }, body.ErrUnknown},
			"notes too much": {func(ctx context.Context, e body.Effect) (jsontext.Value, error) {
				return nil, e.Note(ctx, jsontext.Value(`"`+strings.Repeat("x", body.MaxReferenceBytes)+`"`))
			}, lease.ErrLimit},
		} {
			r, err := lease.Open(t.Context(), lease.Config{
				Store: newHouse(t).inner, Granted: func(context.Context, lease.Use) bool { return true },
				Log:    slog.New(slog.DiscardHandler),
				Bodies: map[lease.Resource]body.Adapter{"browser": faithless{sim.New(sim.NewWorld()), tt.perform}},
			})
			if err != nil {
				t.Fatal(err)
			}
			claim, err := r.Acquire(t.Context(), ann, lease.Browser, 0)
			if err != nil {
				t.Fatal(err)
			}
			g, _ := r.Guard(ann, lease.Browser, claim.Token)
			_, err = g.Do(t.Context(), sim.Touch, nil)
			wantErr(t, name, err, tt.want)
			r.Close()
		}
	})
}

type faithless struct {
	*sim.Body
	perform func(context.Context, body.Effect) (jsontext.Value, error)
}

func (f faithless) Perform(ctx context.Context, e body.Effect) (jsontext.Value, error) {
	return f.perform(ctx, e)
}

// What the adapter notes of its body is there after a restart (L-3.6).
func TestReferenceSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.worlds = nil
		noting := &noting{Body: sim.New(sim.NewWorld())}
		open := func(store journal.Store) *lease.Registry {
			r, err := lease.Open(t.Context(), lease.Config{
				Store: store, Granted: func(context.Context, lease.Use) bool { return true },
				Log:    slog.New(slog.DiscardHandler),
				Bodies: map[lease.Resource]body.Adapter{"browser": noting},
			})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := open(h.inner)
		claim, _ := r.Acquire(t.Context(), ann, lease.Browser, 0)
		g, _ := r.Guard(ann, lease.Browser, claim.Token)
		if _, err := g.Do(t.Context(), sim.Touch, nil); err != nil {
			t.Fatal(err)
		}
		r.Close()
		r = open(h.inner)
		defer r.Close()
		if err := r.Recover(t.Context(), ann, lease.Browser, claim.Incarnation); err != nil {
			t.Fatal(err)
		}
		want := body.Life{Incarnation: "browser.0", Begun: 1, Reference: jsontext.Value(`{"pid":7}`)}
		if got := noting.stopped; got.Incarnation != want.Incarnation || got.Begun != 1 || string(got.Reference) != string(want.Reference) {
			t.Errorf("Stop was handed %+v, want %+v", got, want)
		}
	})
}

type noting struct {
	*sim.Body
	stopped body.Life
}

func (n *noting) Perform(ctx context.Context, e body.Effect) (jsontext.Value, error) {
	if err := e.Note(ctx, jsontext.Value(`{"pid":7}`)); err != nil {
		return nil, err
	}
	return n.Body.Perform(ctx, e)
}

func (n *noting) Stop(ctx context.Context, of body.Life, guard func(context.Context) error) error {
	n.stopped = of
	return n.Body.Stop(ctx, of, guard)
}
