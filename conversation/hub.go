package conversation

import (
	"cmp"
	"context"
	"sync"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// DefaultMaxReaders is how many follow the live words of a conversation at most
// (C-28.9).
const DefaultMaxReaders = 64

// HubConfig bounds a hub. Zero fields mean the defaults.
type HubConfig struct {
	MaxReaders int // of one conversation; DefaultMaxReaders
}

// Hub is the live channel of this process (C-28.1): it carries the words of
// replies from the models to those who follow the conversations, and nothing
// that has to be known later. Give the same one to [Config] and [ClientConfig];
// [Client.Live] reads from it. Its cost for the model is that of keeping the
// words; whoever reads them reads at their own pace (C-28.11).
//
// It holds what is in progress and nothing else: a conversation whose turn has
// ended and whom nobody follows is not in it (C-28.12).
type Hub struct {
	maxReaders int

	mu       sync.Mutex
	channels map[string]*channel // by conversation
}

// NewHub makes a hub.
func NewHub(config HubConfig) *Hub {
	return &Hub{maxReaders: cmp.Or(config.MaxReaders, DefaultMaxReaders), channels: map[string]*channel{}}
}

// channel is what the hub holds of a conversation.
type channel struct {
	hub   *Hub
	id    string
	users int // turns and readers; under the hub's lock

	mu      sync.Mutex
	voice   *voice // of the turn in progress, nil between turns
	reply   reply  // the turn's, or the last one's
	readers map[*Live]struct{}
}

// voice is the scope of a turn (C-28.3): what is said under it is said in its
// conversation and turn, as long as the turn lasts.
type voice struct {
	channel *channel
	call    call // that spoke last
}

// call is one attempt at a model call.
type call struct {
	step    string
	attempt int
}

type voiceKey struct{}

// use enters the channel of a conversation, which is there until it is left as
// often.
func (h *Hub) use(id string) *channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[id]
	if c == nil {
		c = &channel{hub: h, id: id, readers: map[*Live]struct{}{}}
		h.channels[id] = c
	}
	c.users++
	return c
}

func (c *channel) leave() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.users--; c.users == 0 {
		delete(c.hub.channels, c.id)
	}
}

// begin opens a turn, whose words are for the listener alone, for all readers if
// that is nil (C-37.9). What a run of the same turn has said before stays until the
// new one speaks.
func (h *Hub) begin(id string, turn int, listener *identity.Identity) *voice {
	c := h.use(id)
	v := &voice{channel: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voice = v
	if c.reply.turn != turn || c.reply.over {
		c.reply = reply{turn: turn, listener: listener}
	}
	return v
}

// end closes the turn: what its model says from now on is dropped.
func (v *voice) end() {
	c := v.channel
	c.mu.Lock()
	if c.voice == v {
		c.voice = nil
	}
	c.mu.Unlock()
	c.leave()
}

// within puts the scope into a context.
func (v *voice) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, voiceKey{}, v)
}

// delta is the sink of every model call: it gives each piece to the conversation
// and turn in whose scope the call is made, and drops one without a scope
// (C-28.3, C-28.4).
func (h *Hub) delta(ctx context.Context, d agent.Delta) {
	if v, ok := ctx.Value(voiceKey{}).(*voice); ok && v.channel.hub == h {
		step, _ := kernel.StepFrom(ctx)
		v.say(step, d)
	}
}

// beside returns a sink that gives each piece to the hub, if there is one, and
// to another sink, if there is one.
func (h *Hub) beside(other func(context.Context, agent.Delta)) func(context.Context, agent.Delta) {
	switch {
	case h == nil:
		return other
	case other == nil:
		return h.delta
	}
	return func(ctx context.Context, d agent.Delta) {
		h.delta(ctx, d)
		other(ctx, d)
	}
}

// say adds a piece to the reply. Where a call begins to speak, what was shown
// must be what was said before it. It is not if a run or an attempt before this
// one was cut in mid-sentence, and it may not be if that happened in another
// process: then the reply begins again (C-28.6).
func (v *voice) say(step kernel.Step, d agent.Delta) {
	c := v.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.voice != v {
		return
	}
	if now := (call{step.ID, step.Attempt}); now != v.call {
		if now.step == v.call.step && now.attempt < v.call.attempt {
			return // an attempt that was given up
		}
		v.call = now
		if step.Again || !c.reply.is(d.Before) {
			c.reply.restart(d.Before)
		}
	}
	c.reply.add(d.Text)
	for reader := range c.readers {
		if c.reply.isFor(reader.who) {
			reader.wake()
		}
	}
}
