package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

const (
	// DefaultFlowName is the name of the flow where none is given.
	DefaultFlowName = "conversation"
	// DefaultMaxTurnChars is the longest text of a turn, in code points (C-11.5).
	DefaultMaxTurnChars = 32000
)

// ClientConfig is what a client is made of. Runtime and Keys are required, and
// so is one of Policy and RuntimePolicyIsOwnerScoped.
type ClientConfig struct {
	Runtime *kernel.Runtime
	Keys    Keys   // to sign with; the flow's own
	Flow    string // the name of the flow; DefaultFlowName if empty

	Hub *Hub // the flow's own; nil for no live words

	// MaxTurnChars bounds a text, as the flow's setting does:
	// DefaultMaxTurnChars if 0.
	MaxTurnChars int

	// Policy is the runtime's access policy, which must close the other doors to
	// a conversation (C-24.1). RuntimePolicyIsOwnerScoped is the host's word for
	// one that cannot be inspected. What can be inspected decides, the policy in
	// force included (C-24.2).
	Policy                     *kernel.Policy
	RuntimePolicyIsOwnerScoped bool
}

// Client is the way in for everybody: it starts conversations, writes to them
// and reads them, and judges who may. Make one with [NewClient]. Its methods
// may be called from any number of goroutines; each takes the caller on whose
// authority it acts, nil for nobody.
//
// Every refusal is [ErrNotFound], the same as for a conversation that does not
// exist, and comes before anything else in a request is looked at (C-22.5,
// C-23.7).
type Client struct {
	runtime      *kernel.Runtime
	keys         Keys
	hub          *Hub
	flow         string
	maxTurnChars int
	owners       owners
}

// NewClient makes a client and refuses a runtime whose policy would let others
// in behind it (C-24).
func NewClient(config ClientConfig) (*Client, error) {
	if config.Runtime == nil {
		return nil, errors.New("a conversation client needs a runtime")
	}
	if config.Keys.IsZero() {
		return nil, errors.New("a conversation client needs keys to sign with")
	}
	if config.MaxTurnChars < 0 {
		return nil, errors.New("a conversation client's MaxTurnChars is negative")
	}
	if err := checkPolicy(config); err != nil {
		return nil, err
	}
	c := &Client{runtime: config.Runtime, keys: config.Keys, hub: config.Hub, flow: config.Flow, maxTurnChars: config.MaxTurnChars}
	if c.flow == "" {
		c.flow = DefaultFlowName
	}
	if c.maxTurnChars == 0 {
		c.maxTurnChars = DefaultMaxTurnChars
	}
	return c, nil
}

// checkPolicy holds each policy that can be inspected against C-24.1.
func checkPolicy(config ClientConfig) error {
	inForce := config.Runtime.Policy()
	policies := []kernel.Policy{}
	switch {
	case config.Policy != nil:
		policies = append(policies, *config.Policy)
	case !config.RuntimePolicyIsOwnerScoped:
		return errors.New("a conversation client needs the runtime's policy, or the word that it is owner-scoped")
	}
	if inForce.FailClosed() {
		policies = append(policies, inForce)
	}
	for _, policy := range policies {
		scopes := policy.Scopes()
		for _, op := range kernel.Operations() {
			if scope := scopes[op]; op != kernel.OpStart && scope != kernel.ScopeOwner && scope != kernel.ScopeDeny {
				return fmt.Errorf("the runtime's policy must keep %q to the owner, or deny it; its scope is %q", op, scope)
			}
		}
	}
	return nil
}

// Runtime returns the runtime that the client stands on.
func (c *Client) Runtime() *kernel.Runtime { return c.runtime }

// Start starts a conversation that belongs to the caller and returns its id: a
// random one if id is empty. It is start-once: where the caller has started a
// conversation of that id before, Start changes nothing and succeeds (C-22.3).
//
// Errors: [ErrNotFound] if the id is somebody else's, or if the caller may not
// start; [ErrInvalidID].
func (c *Client) Start(ctx context.Context, caller *identity.Principal, id string) (string, error) {
	if !c.able(caller) {
		return "", ErrNotFound
	}
	if id == "" {
		id = kernel.NewID()
	}
	if !idPattern.MatchString(id) {
		return "", ErrInvalidID
	}
	_, created, err := c.runtime.Start(ctx, by(caller), kernel.StartRequest{
		Flow: c.flow, ID: id, Input: Stamp(asker(caller)),
	})
	if err == nil && !created {
		_, err = c.authorize(ctx, caller, id)
	}
	if err != nil {
		return "", uniform(err)
	}
	return id, nil
}

// SendTurn says something in the caller's name and returns the message's id,
// which is messageID or, if that is empty, a random one (C-12.10). It is
// durable when SendTurn returns. A retry with the same id is delivered once
// (C-12.9).
//
// Errors: [ErrNotFound], [ErrInvalidTurn], [ErrClosed], [ErrQueueFull].
func (c *Client) SendTurn(ctx context.Context, caller *identity.Principal, id, text, messageID string) (string, error) {
	k, err := c.authorize(ctx, caller, id)
	if err != nil {
		return "", err
	}
	if err := c.checkTurn(text, messageID); err != nil {
		return "", err
	}
	if messageID == "" {
		messageID = kernel.NewID()
	}
	if err := c.checkQueue(ctx, caller, id, k, maxWaiting); err != nil {
		return "", err
	}
	payload := c.keys.signUser(id, asker(caller), messageID, text, time.Now())
	err = c.runtime.Send(ctx, by(caller), id, Topic, payload, messageID)
	if errors.Is(err, kernel.ErrEnded) {
		return "", ErrClosed
	}
	if err != nil {
		return "", uniform(err)
	}
	return messageID, nil
}

// Close asks the conversation to end (C-26). Closing one that is over changes
// nothing and is no error.
//
// Errors: [ErrNotFound], [ErrQueueFull].
func (c *Client) Close(ctx context.Context, caller *identity.Principal, id string) error {
	k, err := c.authorize(ctx, caller, id)
	if err != nil {
		return err
	}
	err = c.checkQueue(ctx, caller, id, k, maxWaiting+closeReserve)
	if err == nil {
		messageID := kernel.NewID()
		payload := c.keys.signClose(id, asker(caller), messageID, time.Now())
		err = c.runtime.Send(ctx, by(caller), id, Topic, payload, messageID)
	}
	if errors.Is(err, kernel.ErrEnded) || errors.Is(err, ErrClosed) {
		return nil
	}
	return uniform(err)
}
