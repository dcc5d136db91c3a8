package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/sim"
	"github.com/parley-run/parley/lease"
)

// call is one step of a history: what was asked of the browser or the voice, and
// whether it was granted. A stop or a recovery has three steps, an effect has two.
type call struct {
	kind     string
	resource lease.Resource
	who      string           // conversation
	of       body.Incarnation // that the token or the request names
	attempt  string
}

type answer struct {
	ok    bool
	of    body.Incarnation // acquired, or in the way
	owner string           // in the way
}

// sequential is the state of one resource in the specification.
type sequential struct {
	owner, attempt     string
	of                 body.Incarnation
	blocked, struck    bool
	operations, claims int
}

// step is the table, once more, for one call after another.
func (s sequential) step(c call, a answer) (bool, sequential) {
	holds := s.owner == c.who && s.of == c.of && s.owner != "" && !s.blocked
	switch c.kind {
	case "acquire":
		if s.owner != "" {
			return !a.ok && a.owner == s.owner && a.of == s.of, s
		}
		return a.ok, sequential{owner: c.who, of: a.of, claims: s.claims + 1}
	case "renew":
		return a.ok == holds, s
	case "reserve":
		if holds = holds && s.attempt == ""; holds {
			s.operations++
		}
		return a.ok == holds, s
	case "done", "lost":
		s.operations--
		s.blocked = s.blocked || c.kind == "lost"
		return a.ok, s
	case "stop":
		if holds = holds && s.operations == 0 && s.attempt == ""; holds {
			s.attempt = c.attempt
		}
		return a.ok == holds, s
	case "recover":
		may := s.owner != "" && s.of == c.of && s.blocked && s.operations == 0 && !s.struck
		if may {
			s.attempt = c.attempt
		}
		return a.ok == may, s
	case "strike":
		may := s.owner != "" && s.attempt == c.attempt
		s.struck = s.struck || may
		return a.ok == may, s
	case "confirm":
		return a.ok && s.attempt == c.attempt && s.struck && s.operations == 0, sequential{claims: s.claims}
	}
	return false, s
}

var specification = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[lease.Resource][]porcupine.Operation{}
		for _, op := range history {
			r := op.Input.(call).resource
			by[r] = append(by[r], op)
		}
		return [][]porcupine.Operation{by[lease.Browser], by[lease.Voice]}
	},
	Init: func() any { return sequential{} },
	Step: func(s, c, a any) (bool, any) { return s.(sequential).step(c.(call), a.(answer)) },
	DescribeOperation: func(c, a any) string {
		return fmt.Sprintf("%+v -> %+v", c, a)
	},
}

// LC-10: what concurrent callers see, two of each conversation with a pool of all
// tokens, is what some order of single calls would show (L-6.1).
func TestLC10Linearizable(t *testing.T) {
	histories := 200
	if testing.Short() || raceEnabled {
		histories = 12
	}
	for seed := range histories {
		h := newHouse(t)
		r := &recorder{h: h, began: time.Now()}
		r.hook()
		var all sync.WaitGroup
		for client := range 4 {
			all.Go(func() { r.run(t, client, rand.New(rand.NewPCG(uint64(seed), uint64(client)))) })
		}
		all.Wait()
		result, info := porcupine.CheckOperationsVerbose(specification, r.history, 20*time.Second)
		if result != porcupine.Ok {
			path := t.ArtifactDir() + "/history.html"
			t.Fatalf("history %d is %v, see %s (%v)", seed, result, path, porcupine.VisualizePath(specification, info, path))
		}
		h.r.Close()
	}
}

// recorder keeps a history.
type recorder struct {
	h     *house
	began time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	claims  []lease.Claim
}

// at marks the moments at which a call passed some points of the adapter.
type at map[sim.Point]int64

type atKey struct{}

func (r *recorder) hook() {
	for _, resource := range []lease.Resource{lease.Browser, lease.Voice} {
		for point := sim.BeforeBegin; point <= sim.AtCheck; point++ {
			r.h.bodies[resource].On(point, func(ctx context.Context, _ body.Incarnation) error {
				moments, ok := ctx.Value(atKey{}).(at)
				if !ok {
					return nil
				}
				if _, lost := moments[-1]; lost && point == sim.AfterAct {
					moments[point] = r.now()
					return errors.New("connection reset")
				}
				moments[point] = r.now()
				return nil
			})
		}
	}
}

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

func (r *recorder) add(client int, c call, from int64, a answer, to int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: c, Call: from, Output: a, Return: to})
}

// any draws a claim ever made on a resource, mostly the newest.
func (r *recorder) any(random *rand.Rand, resource lease.Resource) (claim lease.Claim, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.claims) - 1; i >= 0; i-- {
		if r.claims[i].Resource == resource {
			claim, ok = r.claims[i], true
			if random.IntN(3) > 0 {
				break
			}
		}
	}
	return claim, ok
}

// run is one client: thirty calls, of one of two conversations.
func (r *recorder) run(t *testing.T, client int, random *rand.Rand) {
	who := []lease.Caller{ann, bob}[client%2]
	for n := range 30 {
		resource := []lease.Resource{lease.Browser, lease.Voice}[random.IntN(2)]
		c := call{resource: resource, who: who.Conversation, attempt: fmt.Sprint(client, ".", n)}
		claim, ok := r.any(random, resource)
		if kind := random.IntN(10); kind < 3 || !ok {
			r.acquire(t, client, who, c)
		} else {
			c.of = claim.Incarnation
			r.use(t, client, kind, who, claim, c)
		}
	}
}

func (r *recorder) acquire(t *testing.T, client int, who lease.Caller, c call) {
	from := r.now()
	claim, err := r.h.r.Acquire(t.Context(), who, c.resource, 0)
	to := r.now()
	a := answer{ok: err == nil, of: claim.Incarnation}
	if busy, ok := errors.AsType[*lease.BusyError](err); ok {
		a.of, a.owner = busy.Incarnation, busy.Owner
	}
	c.kind = "acquire"
	r.add(client, c, from, a, to)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.claims = append(r.claims, claim)
	}
}

func (r *recorder) use(t *testing.T, client, kind int, who lease.Caller, claim lease.Claim, c call) {
	g, err := r.h.r.Guard(who, claim.Resource, claim.Token)
	if err != nil {
		t.Error(err)
		return
	}
	moments := at{}
	ctx := context.WithValue(t.Context(), atKey{}, moments)
	from := r.now()
	switch kind {
	case 3:
		c.kind = "renew"
		_, err := g.Renew(ctx, 0)
		r.add(client, c, from, answer{ok: err == nil}, r.now())
	case 4, 5, 6:
		if kind == 6 {
			moments[-1] = 0
		}
		_, err := g.Do(ctx, sim.Touch, nil)
		r.effect(client, c, from, moments, err)
	case 7:
		err := g.Release(ctx)
		r.ending(client, "stop", c, from, moments, err)
	default:
		err := r.h.r.Recover(ctx, operator, claim.Resource, claim.Incarnation)
		r.ending(client, "recover", c, from, moments, err)
	}
}

// effect adds the two steps of an effect.
func (r *recorder) effect(client int, c call, from int64, moments at, err error) {
	to := r.now()
	reserved, ok := moments[sim.BeforeBegin]
	if c.kind = "reserve"; !ok {
		r.add(client, c, from, answer{}, to)
		return
	}
	r.add(client, c, from, answer{ok: true}, reserved)
	if c.kind = "done"; err != nil {
		c.kind = "lost"
	}
	r.add(client, c, moments[sim.AfterAct], answer{ok: true}, to)
}

// ending adds the steps of a stop or a recovery, as far as it came.
func (r *recorder) ending(client int, kind string, c call, from int64, moments at, err error) {
	to := r.now()
	begun, ok := moments[sim.BeforeGuard]
	if c.kind = kind; !ok {
		r.add(client, c, from, answer{}, to)
		return
	}
	r.add(client, c, from, answer{ok: true}, begun)
	let, ok := moments[sim.AfterGuard]
	if c.kind = "strike"; !ok {
		r.add(client, c, begun, answer{}, to)
		return
	}
	r.add(client, c, begun, answer{ok: true}, let)
	c.kind = "confirm"
	r.add(client, c, moments[sim.AtCheck], answer{ok: err == nil}, to)
}
