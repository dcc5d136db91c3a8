package kernel

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
)

// Limits of the kernel.
const (
	MaxPayloadBytes   = 1 << 20 // of a message, a fact or an effect's input, encoded
	MaxCarryBytes     = 1 << 20 // C-6.11
	MaxDepth          = 1000    // of the JSON of each of these: what stands around it in an event adds to it
	MaxIDBytes        = 512     // of an execution id
	MaxMessageIDBytes = 512
	DedupeWindow      = 1024 // keys per topic (C-5.5)
	DefaultHot        = 4096
	maxLoading        = 64 // logs that are read at once, after a start-up say
)

// Config is what a runtime is made of. Store is required.
type Config struct {
	Store    journal.Store
	Flows    []Flow // of one name the last is the newest version
	Effects  []Effect
	Features []Feature

	Policy           Policy // the zero Policy stands for ReferencePolicy
	RequirePrincipal bool   // refuse callers that are nobody (C-4.13)

	// Granted says whether a principal, nil for nobody, may run an effect
	// (C-4.17). Nil grants everything.
	Granted func(principal *identity.Identity, effect EffectID) bool

	Reserved []string // prefixes that no execution id may have, beside the kernel's own

	// Hot is how many executions are kept hot: DefaultHot if 0, none if
	// negative. More are hot while they have something to do.
	Hot int

	Log *slog.Logger // slog.Default if nil
}

// Runtime runs executions. Make one with [New]; all its methods may be called
// from any number of goroutines.
type Runtime struct {
	config  Config
	flows   flows
	effects map[EffectID]Effect
	owners  *cache[Started]

	mu      sync.Mutex
	hot     map[string]*activation
	idle    idleList
	stuck   map[string]error // by chain, as of the last try; bounded
	closing bool
	failure error
	failed  chan struct{} // closed when the store has failed

	loading chan struct{}  // holds a value for each log that is being read
	running sync.WaitGroup // activations, and the sweeper
	close   sync.Once
	closed  chan struct{} // the sweeper ends
}

// New makes a runtime and refuses what does not fit together. It starts
// nothing that was there before; call [Runtime.Recover] for that.
func New(config Config) (*Runtime, error) {
	if config.Store == nil {
		return nil, errors.New("a runtime needs a store")
	}
	if config.Policy.scopes == nil && !config.Policy.unguarded {
		config.Policy = ReferencePolicy()
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Hot == 0 {
		config.Hot = DefaultHot
	}
	flows, err := newFlows(config.Flows, config.Features)
	if err != nil {
		return nil, err
	}
	effects, err := newEffects(config.Effects)
	if err != nil {
		return nil, err
	}
	rt := &Runtime{
		config: config, flows: flows, effects: effects, owners: newCache[Started](4 * DefaultHot),
		hot: map[string]*activation{}, stuck: map[string]error{},
		failed: make(chan struct{}), closed: make(chan struct{}), loading: make(chan struct{}, maxLoading),
	}
	rt.running.Go(rt.sweep)
	return rt, nil
}

// Policy returns the access policy in force.
func (rt *Runtime) Policy() Policy { return rt.config.Policy }

// RequiresPrincipal reports whether callers that are nobody are refused (C-4.13).
func (rt *Runtime) RequiresPrincipal() bool { return rt.config.RequirePrincipal }

// Store returns the journal that the runtime stands on.
func (rt *Runtime) Store() journal.Store { return rt.config.Store }

// System is the system grant: an in-process capability of the host, which
// passes the access policy (C-4.16). No request can obtain it, so hand it to
// nobody who takes requests.
func (rt *Runtime) System() Caller { return Caller{system: true} }

// StartRequest says what to start.
type StartRequest struct {
	Flow    string
	ID      string // a random one if empty; a child's is then made of its parent's and the step's
	Input   any    // encoded as JSON
	ChildOf Step   // from StepFrom in an effect: cancelling its execution cancels this one (C-4.10)

	Rows []journal.Row // written beside the start, such as a [ListRow]
}

// Start starts an execution under the caller's principal and returns its id.
// It is start-once: where the id is taken nothing changes, and created is
// false (C-4.2). The start is durable when Start returns.
//
// Errors: [ErrInvalid], [ErrForbidden], [ErrTooLarge], [ErrEnded] if the
// parent is over, [ErrClosed].
func (rt *Runtime) Start(ctx context.Context, caller Caller, req StartRequest) (id string, created bool, err error) {
	flow, ok := rt.flows.newest(req.Flow)
	if !ok {
		return "", false, fmt.Errorf("%w: flow %q is not registered", ErrInvalid, req.Flow)
	}
	if err := rt.check(caller); err != nil {
		return "", false, err
	}
	if !rt.config.Policy.admits(OpStart, caller, caller.principal) {
		return "", false, ErrForbidden
	}
	id, parent, err := rt.startID(req)
	if err != nil {
		return "", false, err
	}
	input, err := encode(req.Input)
	if err != nil {
		return "", false, fmt.Errorf("start %s: %w", req.Flow, err)
	}
	started := Started{Flow: flow.Name, Version: flow.Version, Principal: caller.principal, Input: input, Parent: parent}
	at := now()
	err = rt.append(ctx, journal.Append{
		Stream: id,
		Events: []journal.Event{{Kind: KindStarted, Time: at, Data: mustEncode(started)}},
		Rows:   append(startRows(started, id, at), req.Rows...),
	})
	switch {
	case errors.Is(err, journal.ErrConflict):
		return id, false, nil
	case err != nil:
		return "", false, fmt.Errorf("start execution: %w", err)
	}
	rt.wake(id)
	return id, true, nil
}

// startID settles the id and the parent of a start.
func (rt *Runtime) startID(req StartRequest) (id, parent string, err error) {
	if a := req.ChildOf.activation; a != nil {
		parent = a.chain
		if a.ctx.Err() != nil {
			return "", "", fmt.Errorf("%w: the parent was stopped", ErrEnded)
		}
		if req.ID == "" {
			if id = parent + "::" + req.ChildOf.ID; len(id) > MaxIDBytes || strings.Contains(id, "~") {
				return "", "", fmt.Errorf("%w: the id of a child has at most %d bytes, and no ~", ErrInvalid, MaxIDBytes)
			}
			return id, parent, nil
		}
	}
	if req.ID == "" {
		return NewID(), parent, nil
	}
	return req.ID, parent, rt.checkID(req.ID)
}

// NewID returns 128 random bits as 26 lowercase base32 characters.
func NewID() string {
	var raw [16]byte
	rand.Read(raw[:])
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:]))
}

// Send puts a message into the inbox of the chain (C-5.1). It is durable when
// Send returns. messageID, of up to [MaxMessageIDBytes], makes a repeat by the
// same sender a duplicate, which is delivered once within the dedupe window;
// without one the message is never a duplicate. rows are written beside it, such
// as a [ListRow].
//
// Errors: [ErrNotFound], [ErrForbidden], [ErrEnded], [ErrInvalid],
// [ErrTooLarge], [ErrClosed].
func (rt *Runtime) Send(ctx context.Context, caller Caller, id, topic string, payload jsontext.Value, messageID string, rows ...journal.Row) error {
	if len(payload) > MaxPayloadBytes {
		return fmt.Errorf("%w: a message has at most %d bytes", ErrTooLarge, MaxPayloadBytes)
	}
	if !payload.IsValid() || isDeep(payload) {
		return fmt.Errorf("%w: the payload of a message is one JSON value, at most %d deep", ErrInvalid, MaxDepth)
	}
	if topic == "" || len(messageID) > MaxMessageIDBytes || strings.HasPrefix(messageID, "\x00") || !utf8.ValidString(topic+messageID) {
		return fmt.Errorf("%w: topic or message id of a message", ErrInvalid)
	}
	chain := ChainOf(id)
	started, err := rt.admit(ctx, OpSend, caller, chain)
	if err != nil {
		return err
	}
	if over, err := rt.isOver(ctx, chain); err != nil {
		return err
	} else if over {
		return ErrEnded
	}
	at := now()
	message := Message{Topic: topic, From: caller.principal, Host: caller.system, Payload: payload}
	err = rt.append(ctx, journal.Append{
		Stream: InboxStream(chain), Expect: journal.AtEnd,
		Events: []journal.Event{{Kind: KindMessage, ID: messageID, Time: at, Data: mustEncode(message)}},
		Rows:   slices.Concat(ownerRow(started.Principal, chain, started.Parent, started.Flow, Running, at), []journal.Row{workRow(chain)}, rows),
	})
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	rt.wake(chain)
	return nil
}

// admit finds the chain's recorded principal and applies the policy.
func (rt *Runtime) admit(ctx context.Context, op Operation, caller Caller, chain string) (Started, error) {
	if err := rt.check(caller); err != nil {
		return Started{}, err
	}
	started, ok := rt.owners.find(chain)
	if !ok {
		var err error
		if started, _, err = readStarted(ctx, rt.config.Store, chain, 0); err != nil {
			return Started{}, err
		}
		started.Input = nil // what is kept is who, not what
		rt.owners.add(chain, started)
	}
	if !rt.config.Policy.admits(op, caller, started.Principal) {
		return Started{}, ErrForbidden
	}
	return started, nil
}

// granted applies the grants of effects.
func (rt *Runtime) granted(principal *identity.Identity, effect EffectID) bool {
	return rt.config.Granted == nil || rt.config.Granted(principal, effect)
}

// append writes for a caller of the runtime; a store that has failed takes the
// runtime with it.
func (rt *Runtime) append(ctx context.Context, batch ...journal.Append) error {
	rt.mu.Lock()
	closing, failure := rt.closing, rt.failure
	rt.mu.Unlock()
	if failure != nil {
		return failure
	}
	if closing {
		return ErrClosed
	}
	err := rt.config.Store.Append(ctx, batch...)
	if errors.Is(err, journal.ErrPoisoned) {
		rt.fail(err)
	}
	return err
}

// fail remembers that the store has failed. Nothing is activated from then on:
// what a failing store says of itself is no ground to act on.
func (rt *Runtime) fail(err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.failure == nil {
		rt.failure, rt.closing = err, true
		close(rt.failed)
	}
}

// Failed is closed when the store has failed and the runtime runs nothing any
// more; Err then says why.
func (rt *Runtime) Failed() <-chan struct{} { return rt.failed }

// Err returns the failure of the store, nil while there is none.
func (rt *Runtime) Err() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.failure
}

// Recover wakes every execution that may have work waiting (K10), and cancels
// the children of cancelled ones. It returns when all were woken, not when
// they are done.
func (rt *Runtime) Recover(ctx context.Context) error {
	return rt.eachRow(ctx, spaceWork, func(chain string) error {
		rt.wake(chain)
		return ctx.Err()
	})
}

// Close stops everything: what is parked goes cold, what runs is cut, and its
// next run is served what is on record. Effects get 5 s after their context
// ended. Close returns when all goroutines are gone. It does not close the
// store.
func (rt *Runtime) Close() {
	rt.close.Do(func() { close(rt.closed) })
	rt.mu.Lock()
	rt.closing = true
	for _, a := range rt.hot {
		rt.stopLocked(a)
	}
	rt.mu.Unlock()
	rt.running.Wait()
}
