package server

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/browser"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/lease"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// hands are the agent's tools for its body. A conversation claims a part with its
// first call, and holds it until it gives it back or its deadline passes. The model
// never meets a token.
type hands struct {
	browser  *browser.Browser
	registry *lease.Registry
	offered  map[string][]tool.Offer // by set

	mu     sync.Mutex
	claims map[lease.Resource]holding // the newest of each
}

// holding is a claim that may still be good, and whose it is.
type holding struct {
	conversation string
	claim        lease.Claim
}

// claimLength is how long a claim lasts after the newest call. It is longer than an
// unused part stays open, so that the end of a part that somebody has forgotten is
// seen, and frees it, before the claim runs out and has to be recovered.
const claimLength = lease.MaxLength

// leaseTools is the set of the tools about leases themselves.
const leaseTools = "lease"

// ownSets are the sets of tools that the agent has whatever the configuration says.
func ownSets() []string { return []string{string(lease.Browser), leaseTools} }

// resourceInput names a part of the body.
type resourceInput struct {
	Resource lease.Resource `json:"resource" jsonschema:"the part of the body, such as browser"`
}

// queueInput names what is waited for.
type queueInput struct {
	Resource    lease.Resource   `json:"resource" jsonschema:"the part of the body, such as browser"`
	Incarnation body.Incarnation `json:"incarnation" jsonschema:"the one that the busy answer names"`
}

// newHands makes the tools. They work once they are opened.
func newHands() (*hands, error) {
	h := &hands{claims: map[lease.Resource]holding{}}
	var failures []error
	add := func(offer tool.Offer, err error) tool.Offer {
		failures = append(failures, err)
		return offer
	}
	h.offered = map[string][]tool.Offer{
		string(lease.Browser): {
			add(offer[browser.OpenInput](browser.Open, "Opens an address of the web in the agent's own browser, which it shares with its other conversations: the first call claims it, and browser_close or lease_release gives it back. Tells address, title and status of the page; browser_read tells what stands on it.")),
			add(offer[struct{}](browser.Read, "Tells the page in the browser as a screen reader would read it, one element a line. The number in brackets before an element is the ref that browser_click and browser_type take.")),
			add(offer[browser.ClickInput](browser.Click, "Clicks an element of the page in the browser.")),
			add(offer[browser.TypeInput](browser.Type, "Replaces the text of a field of the page in the browser, or chooses from a list.")),
			add(offer[browser.PressInput](browser.Press, "Presses a key in the browser.")),
			add(offer[browser.WaitInput](browser.Wait, "Waits until a text appears on the page in the browser, or for some seconds.")),
			add(offer[browser.EvaluateInput](browser.Evaluate, "Runs JavaScript in the page in the browser, and tells the value.")),
			add(offer[struct{}](browser.RecordStart, "Begins to record what the browser shows, as pictures in a folder of the server's.")),
			add(offer[struct{}](browser.RecordStop, "Ends the recording, and tells its folder.")),
			add(offer[struct{}](browser.Close, "Closes the browser, and gives it back to the other conversations.")),
		},
		leaseTools: {
			add(offer[struct{}]("status", "Tells which parts of the agent's body are taken, and by which conversation.")),
			add(offer[queueInput]("queue", "Asks to be told when a part of the agent's body that is busy was given back. The word comes as a notice in this conversation, within ten minutes or not at all, and keeps nothing reserved.")),
			add(offer[resourceInput]("release", "Gives back a part of the agent's body that this conversation holds, and ends what runs on it.")),
		},
	}
	return h, errors.Join(failures...)
}

// offer makes the offer of a tool whose arguments are a T.
func offer[T any](name, description string) (tool.Offer, error) {
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return tool.Offer{}, fmt.Errorf("arguments of %s: %w", name, err)
	}
	return tool.Offer{Name: name, Description: taint.Plain(description), Schema: schema}, nil
}

// sets are the tools as the agent takes them.
func (h *hands) sets() []tool.Set {
	var sets []tool.Set
	for _, name := range ownSets() {
		sets = append(sets, handSet{h, name})
	}
	return sets
}

// handSet is one set of the tools.
type handSet struct {
	hands *hands
	name  string
}

// Name implements [tool.Set].
func (s handSet) Name() string { return s.name }

// Mode implements [tool.Set]: what a page does at a click is not done again.
func (s handSet) Mode() kernel.Mode { return kernel.Once }

// Offers implements [tool.Set].
func (s handSet) Offers() []tool.Offer { return s.hands.offered[s.name] }

// Call implements [tool.Set]. The conversation is that of the step, whatever the
// arguments say (L-3.2).
func (s handSet) Call(ctx context.Context, name string, args jsontext.Value) (tool.Result, error) {
	if !slices.ContainsFunc(s.Offers(), func(o tool.Offer) bool { return o.Name == name }) {
		return tool.Result{}, tool.ErrAbsent
	}
	step, _ := kernel.StepFrom(ctx)
	who, known := step.Principal()
	in, turn, inTurn := conversation.TurnOf(step)
	if !known || !inTurn {
		return tool.Result{}, fmt.Errorf("%w: no turn of a conversation asks", lease.ErrDenied)
	}
	caller := lease.Caller{Conversation: in, Identity: who, Seat: lease.Seat{Kind: lease.Service, ID: turn}}
	var told any
	var err error
	switch {
	case s.name == string(lease.Browser):
		told, err = s.hands.act(ctx, caller, lease.Browser, name, args)
	case name == "release":
		told, err = s.hands.release(ctx, caller, args)
	case name == "queue":
		told, err = s.hands.queue(ctx, caller, args)
	default:
		told = struct {
			Resources []lease.Status `json:"resources"`
		}{s.hands.registry.Status()}
	}
	return toResult(told, err)
}

// act carries out one effect on a part of the body. A claim that was made for it is
// given back where nothing came of it.
func (h *hands) act(ctx context.Context, caller lease.Caller, part lease.Resource, action string, args jsontext.Value) (any, error) {
	guard, fresh, err := h.hold(ctx, caller, part)
	if err != nil {
		return nil, err
	}
	told, err := guard.Do(ctx, action, args)
	if fresh && errors.Is(err, body.ErrRefused) {
		_ = guard.Release(ctx) // otherwise it runs out
	}
	if err != nil {
		return nil, err
	}
	return told, nil
}

// hold returns a guard of the claim that the conversation holds, renewed, and makes
// a claim where it holds none.
func (h *hands) hold(ctx context.Context, caller lease.Caller, part lease.Resource) (guard lease.Guard, fresh bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.claims[part]; held.conversation == caller.Conversation {
		if guard, err = h.registry.Guard(caller, part, held.claim.Token); err == nil {
			_, err = guard.Renew(ctx, claimLength)
		}
		if !over(err) {
			return guard, false, err
		}
		delete(h.claims, part)
	}
	claim, err := h.registry.Acquire(ctx, caller, part, claimLength)
	if err != nil {
		return lease.Guard{}, false, err
	}
	h.claims[part] = holding{caller.Conversation, claim}
	guard, err = h.registry.Guard(caller, part, claim.Token)
	return guard, true, err
}

// over reports whether an error says that a claim is good for nothing any more.
func over(err error) bool {
	return errors.Is(err, lease.ErrStale) || errors.Is(err, lease.ErrExpired) || errors.Is(err, lease.ErrRecoveryRequired)
}

// release gives a part back.
func (h *hands) release(ctx context.Context, caller lease.Caller, args jsontext.Value) (any, error) {
	var in resourceInput
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	h.mu.Lock()
	held := h.claims[in.Resource]
	h.mu.Unlock()
	if held.conversation != caller.Conversation {
		held = holding{} // a token of nobody
	}
	guard, err := h.registry.Guard(caller, in.Resource, held.claim.Token)
	if err == nil {
		err = guard.Release(ctx)
	}
	if err != nil {
		return nil, err
	}
	return struct {
		Released bool `json:"released"`
	}{true}, nil
}

// queue asks for a notice at the end of the incarnation that somebody else holds.
func (h *hands) queue(ctx context.Context, caller lease.Caller, args jsontext.Value) (any, error) {
	var in queueInput
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	request, err := h.registry.Queue(ctx, caller, in.Resource, in.Incarnation, lease.MaxLength)
	if err != nil {
		return nil, err
	}
	return struct {
		State    lease.RequestState `json:"state"`
		Deadline time.Time          `json:"deadline"`
	}{request.State, request.Deadline.UTC().Truncate(time.Second)}, nil
}

// problem is a refusal as a model is told it: JSON with the code, and what it may do.
type problem struct {
	Error string           `json:"error"`
	Busy  *lease.BusyError `json:"busy,omitzero"`
	Why   string           `json:"why"`
}

// toResult makes what the model is told. What nobody knows is an error, and so is
// what the model can do nothing about.
func toResult(told any, err error) (tool.Result, error) {
	failed := func(code, why string, busy *lease.BusyError) (tool.Result, error) {
		text, err := json.Marshal(problem{code, busy, why})
		return tool.Result{Text: string(text), Failed: true}, err
	}
	busy, taken := errors.AsType[*lease.BusyError](err)
	switch {
	case err == nil:
		text, err := json.Marshal(told)
		return tool.Result{Text: string(text)}, err
	case taken:
		return failed(lease.ErrBusy.Code, "It is taken, or was not given back yet. Go on without it, or call lease_queue, where actions has queue, to be told when it was given back.", busy)
	case errors.Is(err, body.ErrUnknown):
		return tool.Result{}, fmt.Errorf("%w: %w", kernel.ErrOutcomeUnknown, err)
	case errors.Is(err, body.ErrRefused):
		return failed(body.ErrRefused.Code, strings.TrimPrefix(err.Error(), body.ErrRefused.Error()+": "), nil)
	case errors.Is(err, lease.ErrDenied):
		return failed(lease.ErrDenied.Code, "Whoever this turn runs for may not use this part of the body.", nil)
	case errors.Is(err, lease.ErrUnknownResource):
		return failed(lease.ErrUnknownResource.Code, "The agent's body has no such part.", nil)
	case errors.Is(err, lease.ErrStale):
		return failed(lease.ErrStale.Code, "It is not held, or not any more: by this conversation, or under this incarnation.", nil)
	case errors.Is(err, lease.ErrLimit):
		return failed(lease.ErrLimit.Code, "This conversation waits for it already, or too many do.", nil)
	case errors.Is(err, lease.ErrExpired), errors.Is(err, lease.ErrRecoveryRequired):
		return failed(lease.ErrRecoveryRequired.Code, "It was held for too long, or was cut off, and becomes free when what ran on it is seen to have ended.", nil)
	case errors.Is(err, lease.ErrProofUnavailable):
		return failed(lease.ErrProofUnavailable.Code, "It could not be seen to end, so this conversation still holds it.", nil)
	}
	return tool.Result{}, err
}
