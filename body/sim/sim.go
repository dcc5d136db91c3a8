package sim

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-run/parley/body"
)

// The actions of a simulated body.
const (
	Touch  = "touch"  // does something, and says "touched"
	Write  = "write"  // leaves its input, a JSON string, on the page
	Read   = "read"   // answers with what is on the page
	Hang   = "hang"   // acts, and does not end before its ctx or the body does
	Refuse = "refuse" // asks to begin, and is refused by the body
)

// Point is a place in a call of the adapter at which [Body.On] hooks in.
type Point int

const (
	BeforeBegin Point = iota // an effect was handed over, and waits in a queue of the adapter
	AfterBegin               // it may begin, and has not
	AfterAct                 // it was carried out, and not answered: an error here is a lost answer
	BeforeGuard              // a stop is about to ask its guard
	AfterGuard               // it was let through, and has touched nothing yet
	AfterStop                // it has ended the body
	AtCheck                  // a check is about to look
)

// Body is the adapter of a simulated body. Make one with [New].
type Body struct {
	world *World

	mu      sync.Mutex
	host    body.Host
	hooks   map[Point]func(context.Context, body.Incarnation) error
	forge   func(body.Evidence) body.Evidence
	last    map[body.Incarnation]int // the newest operation that began
	running map[body.Incarnation]int // operations that run
}

var _ body.Adapter = (*Body)(nil)

// New makes the adapter of a body in a world. It knows nothing of what adapters
// before it did there, as that of a new process.
func New(w *World) *Body {
	return &Body{
		world: w, hooks: map[Point]func(context.Context, body.Incarnation) error{},
		last: map[body.Incarnation]int{}, running: map[body.Incarnation]int{},
	}
}

// On hooks into calls of the adapter; an error of the hook ends the call there.
// The hook may wait, as a remote system would. Nil takes it away.
func (b *Body) On(at Point, hook func(ctx context.Context, of body.Incarnation) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks[at] = hook
}

// Forge changes the evidence that the adapter gives, as one that mixes up
// generations would.
func (b *Body) Forge(forge func(body.Evidence) body.Evidence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forge = forge
}

func (b *Body) at(ctx context.Context, point Point, of body.Incarnation) error {
	b.mu.Lock()
	hook := b.hooks[point]
	b.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(ctx, of)
}

// Attach implements [body.Adapter].
func (b *Body) Attach(host body.Host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.host = host
}

// Perform implements [body.Adapter].
func (b *Body) Perform(ctx context.Context, e body.Effect) (jsontext.Value, error) {
	var text string
	switch e.Action {
	case Touch, Read, Hang, Refuse:
	case Write:
		if err := json.Unmarshal(e.Input, &text); err != nil {
			return nil, fmt.Errorf("%w: what is written is a JSON string", body.ErrRefused)
		}
	default:
		return nil, fmt.Errorf("%w: no such action", body.ErrRefused)
	}
	if err := b.at(ctx, BeforeBegin, e.Incarnation); err != nil {
		return nil, err
	}
	if err := e.Begin(ctx); err != nil {
		return nil, err
	}
	b.count(e, 1)
	defer b.count(e, -1)
	if err := b.at(ctx, AfterBegin, e.Incarnation); err != nil {
		return nil, err
	}
	if e.Action == Refuse {
		return nil, fmt.Errorf("%w: as asked", body.ErrRefused)
	}
	b.world.act(e.Incarnation, e.Operation)
	result := any("touched")
	switch e.Action {
	case Write:
		b.world.write(e.Incarnation, text)
	case Read:
		result = b.world.read(e.Incarnation)
	case Hang:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := b.at(ctx, AfterAct, e.Incarnation); err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// count notes that an operation runs, or has ended.
func (b *Body) count(e body.Effect, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[e.Incarnation] = max(b.last[e.Incarnation], e.Number)
	b.running[e.Incarnation] += by
}

// Stop implements [body.Adapter].
func (b *Body) Stop(ctx context.Context, of body.Life, guard func(context.Context) error) error {
	if err := b.at(ctx, BeforeGuard, of.Incarnation); err != nil {
		return err
	}
	if err := guard(ctx); err != nil {
		return err
	}
	if err := b.at(ctx, AfterGuard, of.Incarnation); err != nil {
		return err
	}
	b.world.end(of.Incarnation)
	return b.at(ctx, AfterStop, of.Incarnation)
}

// Check implements [body.Adapter].
func (b *Body) Check(ctx context.Context, of body.Life) (body.Evidence, error) {
	if err := b.at(ctx, AtCheck, of.Incarnation); err != nil {
		return body.Evidence{}, err
	}
	b.mu.Lock()
	running, forge := b.running[of.Incarnation], b.forge
	b.mu.Unlock()
	if running > 0 || b.world.IsAlive(of.Incarnation) {
		return body.Evidence{}, body.ErrAlive
	}
	evidence := body.Evidence{Incarnation: of.Incarnation, Proof: body.ProofGone}
	if of.Begun == 0 {
		evidence.Proof = body.ProofNeverBegan
	}
	if forge != nil {
		evidence = forge(evidence)
	}
	return evidence, nil
}

// reportPause is how long a refused report waits for the next try.
const reportPause = 100 * time.Millisecond

// Idle closes the body of an incarnation by itself, if nothing runs on it, and
// reports that until it is taken, outdated, or ctx is done (L-13.2).
func (b *Body) Idle(ctx context.Context, of body.Incarnation) error {
	b.mu.Lock()
	if b.running[of] > 0 {
		b.mu.Unlock()
		return body.ErrPinned
	}
	host, last := b.host, b.last[of]
	b.world.end(of)
	b.mu.Unlock()
	for {
		err := host.Ended(ctx, body.Evidence{Incarnation: of, Proof: body.ProofClosed}, last)
		if !errors.Is(err, body.ErrPinned) || b.world.IsAlive(of) {
			return err // taken, over, or the body was needed again
		}
		select {
		case <-ctx.Done():
		case <-time.After(reportPause):
		}
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

// Settle reports what became of an operation whose answer was lost: the late
// event.
func (b *Body) Settle(ctx context.Context, of body.Incarnation, operation string, outcome error) error {
	b.mu.Lock()
	host := b.host
	b.mu.Unlock()
	return host.Settled(ctx, of, operation, outcome)
}
