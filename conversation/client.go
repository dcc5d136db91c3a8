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

// Message is something that is said.
type Message struct {
	Text   string
	ID     string // makes a repeat a duplicate; a random one if empty (C-12.10)
	EditOf int    // the ord of the user record that the message edits (C-27); 0 for none
}

// SendTurn says something in the caller's name and returns the message's id. It
// is durable when SendTurn returns. A retry with the same id is delivered once
// (C-12.9). Where the conversation lets messages cut in, it ends the turn that
// runs (C-14.21).
//
// Errors: [ErrNotFound], [ErrInvalidTurn], [ErrClosed], [ErrQueueFull].
func (c *Client) SendTurn(ctx context.Context, caller *identity.Principal, id string, m Message) (messageID string, err error) {
	k, err := c.authorize(ctx, caller, id)
	if err != nil {
		return "", err
	}
	if err := c.checkTurn(m); err != nil {
		return "", err
	}
	if m.ID == "" {
		m.ID = kernel.NewID()
	}
	if err := c.checkQueue(ctx, caller, id, k, maxWaiting); err != nil {
		return "", err
	}
	b := newBody(KindUser, id, asker(caller), m.ID, time.Now())
	b.Text = m.Text
	if m.EditOf > 0 {
		b.EditOf = &m.EditOf
	}
	return m.ID, c.send(ctx, caller, b, m.ID)
}

// send signs an envelope and puts it into the inbox.
func (c *Client) send(ctx context.Context, caller *identity.Principal, b body, messageID string) error {
	err := c.runtime.Send(ctx, by(caller), b.ConversationID, Topic, c.keys.seal(b), messageID)
	if errors.Is(err, kernel.ErrEnded) {
		return ErrClosed
	}
	return uniform(err)
}

// Stop ends a turn without saying anything, if it runs (C-46). To stop one that
// is over, or not begun, does nothing and is no error.
//
// Errors: [ErrNotFound], [ErrInvalidTurn], [ErrQueueFull].
func (c *Client) Stop(ctx context.Context, caller *identity.Principal, id string, turn int) error {
	k, err := c.authorize(ctx, caller, id)
	if err != nil {
		return err
	}
	if turn <= 0 || turn > maxInteger {
		return &TurnError{TurnBad}
	}
	return c.order(ctx, caller, id, k, maxWaiting+stopReserve, func(messageID string) body {
		b := newBody(KindStop, id, asker(caller), messageID, time.Now())
		b.Turn = &turn
		return b
	})
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
	return c.order(ctx, caller, id, k, maxWaiting+closeReserve, func(messageID string) body {
		return newBody(KindClose, id, asker(caller), messageID, time.Now())
	})
}

// order sends an envelope that says nothing. A conversation that is over needs
// none.
func (c *Client) order(ctx context.Context, caller *identity.Principal, id string, k *known, room int, make func(messageID string) body) error {
	err := c.checkQueue(ctx, caller, id, k, room)
	if err == nil {
		messageID := kernel.NewID()
		err = c.send(ctx, caller, make(messageID), messageID)
	}
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}
