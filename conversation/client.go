package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
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

	Shared *Shared // the flow's own; nil for no shared conversations
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
	shared       *Shared
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
	if config.Shared != nil {
		if err := config.Shared.check(); err != nil {
			return nil, err
		}
	}
	c := &Client{
		runtime: config.Runtime, keys: config.Keys, hub: config.Hub, flow: config.Flow,
		maxTurnChars: config.MaxTurnChars, shared: config.Shared,
	}
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
	return c.start(ctx, caller, id, false)
}

// StartShared starts a conversation of the caller's in which others may take part
// (C-33.1), see [Client.AddParticipant]. It is start-once as Start is.
//
// Errors: those of Start; [ErrForbidden] where the host's rule does not let the
// caller (C-33.10), or has no shared conversations.
func (c *Client) StartShared(ctx context.Context, caller *identity.Principal, id string) (string, error) {
	if !c.able(caller) || caller == nil {
		return "", ErrNotFound
	}
	if c.shared == nil {
		return "", ErrForbidden
	}
	if may := c.shared.MayStart; may != nil && !consent(ctx, func(ctx context.Context) (bool, error) { return may(ctx, caller.Identity) }) {
		return "", ErrForbidden
	}
	return c.start(ctx, caller, id, true)
}

func (c *Client) start(ctx context.Context, caller *identity.Principal, id string, shared bool) (string, error) {
	if !c.able(caller) {
		return "", ErrNotFound
	}
	if id == "" {
		id = kernel.NewID()
	}
	if !idPattern.MatchString(id) {
		return "", ErrInvalidID
	}
	starter, request := by(caller), kernel.StartRequest{Flow: c.flow, ID: id, Input: Stamp(asker(caller))}
	if shared {
		request.Flow = sharedFlow(c.flow)
		request.Rows = []journal.Row{kernel.ListRow(caller.Identity, c.flow, id, time.Now())}
		starter = kernel.By(identity.Principal{Identity: c.shared.Service})
	}
	_, created, err := c.runtime.Start(ctx, starter, request)
	if err == nil && !created {
		err = c.checkStarted(ctx, caller, id, shared)
	}
	if err != nil {
		return "", uniform(err)
	}
	return id, nil
}

// checkStarted refuses an id that is taken, but for a conversation of the caller's
// own and of the kind that was asked for.
func (c *Client) checkStarted(ctx context.Context, caller *identity.Principal, id string, shared bool) error {
	a, err := c.authorize(ctx, caller, id)
	if err == nil && (a.shared != shared || !a.owns(caller)) {
		return ErrNotFound
	}
	return err
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
// runs (C-14.21), in a shared one the caller's own alone (C-39.2).
//
// Errors: [ErrNotFound], [ErrDelegationUnsupported], [ErrInvalidTurn],
// [ErrClosed], [ErrQueueFull].
func (c *Client) SendTurn(ctx context.Context, caller *identity.Principal, id string, m Message) (messageID string, err error) {
	a, err := c.authorize(ctx, caller, id)
	if err != nil {
		return "", err
	}
	if a.shared && !caller.Credential.IsZero() && c.shared.PrincipalFor == nil {
		return "", ErrDelegationUnsupported
	}
	if err := c.checkTurn(m); err != nil {
		return "", err
	}
	if m.ID == "" {
		m.ID = kernel.NewID()
	}
	b := newBody(KindUser, id, asker(caller), m.ID, time.Now())
	b.Text = m.Text
	if m.EditOf > 0 {
		b.EditOf = &m.EditOf
	}
	if err := c.checkRoom(ctx, a, b, maxWaiting); err != nil {
		return "", err
	}
	return m.ID, c.send(ctx, a, b, m.ID)
}

// send signs an envelope and puts it into the inbox. In a shared conversation the
// sender is the host and the message's id the envelope's (C-12.12), and everybody
// who takes part has it at the head of their list.
func (c *Client) send(ctx context.Context, a access, b body, messageID string) error {
	var rows []journal.Row
	if a.shared {
		messageID = b.ID
		rows = c.listRows(a.known, a.roster, b.ConversationID, time.Now())
	}
	err := c.runtime.Send(ctx, a.by(), b.ConversationID, Topic, c.keys.seal(b), messageID, rows...)
	if errors.Is(err, kernel.ErrEnded) {
		return ErrClosed
	}
	return uniform(err)
}

// listRows put a shared conversation into the lists of all who take part in it.
func (c *Client) listRows(k *known, roster []Participant, id string, activity time.Time) []journal.Row {
	rows := []journal.Row{kernel.ListRow(*k.owner, c.flow, id, activity)}
	for _, p := range roster {
		rows = append(rows, kernel.ListRow(p.Identity, c.flow, id, activity))
	}
	return rows
}

// Stop ends a turn without saying anything, if it runs (C-46). To stop one that
// is over, or not begun, does nothing and is no error; nor does it in a shared
// conversation to stop somebody else's without managing the conversation (C-46.5).
//
// Errors: [ErrNotFound], [ErrInvalidTurn], [ErrQueueFull].
func (c *Client) Stop(ctx context.Context, caller *identity.Principal, id string, turn int) error {
	a, err := c.authorize(ctx, caller, id)
	if err != nil {
		return err
	}
	if turn <= 0 || turn > maxInteger {
		return &TurnError{TurnBad}
	}
	return c.order(ctx, a, id, maxWaiting+stopReserve, func(messageID string) body {
		b := newBody(KindStop, id, asker(caller), messageID, time.Now())
		b.Turn = &turn
		return b
	})
}

// Close asks the conversation to end (C-26). Closing one that is over changes
// nothing and is no error. A shared one is closed by who manages it (C-33.9).
//
// Errors: [ErrNotFound], [ErrForbidden] for a participant who may not,
// [ErrQueueFull].
func (c *Client) Close(ctx context.Context, caller *identity.Principal, id string) error {
	a, err := c.authorize(ctx, caller, id)
	if err != nil {
		return err
	}
	if a.shared && !c.shared.manages(ctx, caller.Identity, a.owner, id) {
		return ErrForbidden
	}
	return c.order(ctx, a, id, maxWaiting+closeReserve, func(messageID string) body {
		return newBody(KindClose, id, asker(caller), messageID, time.Now())
	})
}

// order sends an envelope that says nothing. A conversation that is over needs
// none.
func (c *Client) order(ctx context.Context, a access, id string, room int, make func(messageID string) body) error {
	messageID := kernel.NewID()
	b := make(messageID)
	err := c.checkRoom(ctx, a, b, room)
	if err == nil {
		err = c.send(ctx, a, b, messageID)
	}
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}
