package conversation

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// flowVersion is recorded in event 0 of every generation.
const flowVersion = "1"

// Config is what the flow of a conversation is made of. Keys and the agent's
// model are required.
//
// There is no switch that lets a tool call wait for somebody's consent (C-40.1).
// Whoever builds one keeps to this: an approval is a gate which the approver
// must be entitled to, bound to a digest of what they saw; among several people
// only one with clearance for the call's class may approve, the gate stands in
// the asker's own turn, and nobody answers another's (C-40.2).
type Config struct {
	Keys  Keys // to verify with; the client's own
	Agent agent.Definition

	// Hub is given the words of replies as they come (C-28), beside the agent's
	// own OnDelta. Nil keeps them to the record.
	Hub *Hub

	// BargeIn lets a message cut the turn that runs (C-14), and a stop end it
	// (C-46). With StopOnly only a stop does, and messages wait for the end of the
	// turn. Nil: they wait, and a stop does nothing.
	BargeIn  BargeInSource
	StopOnly bool

	// Shared makes shared conversations possible too (C-33.1).
	Shared *Shared

	Name           string // of the flow; DefaultFlowName if empty
	Settings       Settings
	MaxEnvelopeAge time.Duration // DefaultMaxEnvelopeAge if 0

	// Counter measures texts for Settings.Budget; HeuristicTokenCounter if nil.
	Counter TokenCounter

	// Summarizer is the effect that folds evicted turns into a summary, see
	// agent.NewSummarizer. It is registered with the flow, and used where
	// Settings.Budget names it.
	Summarizer kernel.Effect

	// OnError is the host's only view of why a turn failed (C-11.11). It is called
	// once for a failed turn, twice at most if the process dies meanwhile, and has
	// 5 s; then it is left behind (C-25.4, C-25.5). If it is nil the code of the
	// failure is logged.
	OnError func(errorID string, err error, where Where)

	// OnTurn is told of each turn when its reply is made, and OnRejected of each
	// message when it is judged: never on a replay (C-13.20), twice at most if the
	// process dies before the fact is durable. They are to return soon; a panic
	// stops nothing.
	OnTurn     func(TurnReport)
	OnRejected func(Reason)

	Log *slog.Logger // slog.Default if nil
}

// Flow is the conversation as the kernel runs it. Make one with [NewFlow] and
// register [Flow.Kernels] and [Flow.Effects] with the runtime, whose features
// inbox and continue-as-new must be on.
type Flow struct {
	config       Config
	effects      []kernel.Effect
	instructions func() []string // what each request has beside its messages; for deciders
	meter        *meter
	handed       handed // contexts of turns of shared conversations that run
}

// NewFlow makes the flow. It refuses a configuration without keys, an agent
// that cannot work, and settings that could break the kernel's limits.
func NewFlow(config Config) (*Flow, error) {
	if config.Keys.IsZero() {
		return nil, errors.New("a conversation needs a signing key")
	}
	if config.Name == "" {
		config.Name = DefaultFlowName
	}
	if config.MaxEnvelopeAge == 0 {
		config.MaxEnvelopeAge = DefaultMaxEnvelopeAge
	}
	if config.MaxEnvelopeAge < 0 {
		return nil, errors.New("the maximum age of an envelope is negative")
	}
	if config.Agent.Log == nil {
		config.Agent.Log = config.Log
	}
	if own := config.Settings.Agent; own != (agent.Limits{}) && own != config.Agent.Limits {
		return nil, errors.New("the limits of the agent belong into Agent.Limits, not into Settings.Agent")
	}
	config.Settings.Agent = config.Agent.Limits
	config.Settings = config.Settings.withDefaults()
	if err := config.Settings.check(); err != nil {
		return nil, err
	}
	if config.Shared != nil {
		if err := config.checkShared(); err != nil {
			return nil, err
		}
	}
	config.Agent.OnDelta = config.Hub.beside(config.Agent.OnDelta)
	if config.OnTurn != nil {
		config.Agent.OnDelta = timed(config.Agent.OnDelta)
	}
	flow := &Flow{config: config, meter: new(meter), handed: handed{byID: map[string]*given{}}}
	if err := flow.equip(); err != nil {
		return nil, err
	}
	return flow, nil
}

// equip makes the effects, and holds what each request will have against the
// budget.
func (f *Flow) equip() (err error) {
	definition := f.config.Agent
	if f.config.Shared != nil { // which has a scope for each asker
		definition.Limits.MemoryScope = scopeIf(definition.Memory != nil)
		definition.Limits.WriteBackScope = scopeIf(definition.WriteBack != "")
	}
	if f.effects, err = definition.Effects(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if f.config.Shared != nil {
		f.effects = append(f.effects, kernel.Effect{ID: TurnEffect, Mode: kernel.Repeatable, Run: f.turnEffect})
	}
	if f.instructions, err = f.config.Agent.Instructions(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if f.config.Summarizer.ID != "" {
		f.effects = append(f.effects, f.config.Summarizer)
	}
	if named := f.config.Settings.Budget.Summarizer; named != "" && named != f.config.Summarizer.ID {
		return fmt.Errorf("the budget names the summarizer %q, which Config.Summarizer is not", named)
	}
	return f.checkInstructions()
}

// scopeIf stands for the scopes of askers while a definition is checked.
func scopeIf(used bool) string {
	if used {
		return "asker"
	}
	return ""
}

// Kernels are the flows to register: that of conversations of one owner, and
// with Config.Shared that of shared ones and that of their turns.
func (f *Flow) Kernels() []kernel.Flow {
	needs := []kernel.Feature{kernel.Inbox, kernel.Continuations}
	flows := []kernel.Flow{{Name: f.config.Name, Version: flowVersion, Needs: needs, Run: f.run}}
	if f.config.Shared != nil {
		flows = append(flows,
			kernel.Flow{Name: sharedFlow(f.config.Name), Version: flowVersion, Needs: needs, Run: f.coordinate},
			kernel.Flow{Name: turnFlow(f.config.Name), Version: flowVersion, Run: f.runTurn})
	}
	return flows
}

// sharedFlow and turnFlow name the flows of shared conversations and of their
// turns.
func sharedFlow(name string) string { return name + "-shared" }
func turnFlow(name string) string   { return name + "-turn" }

// Effects are the agent's effects and the summarizer, to be registered with the
// flow.
func (f *Flow) Effects() []kernel.Effect { return f.effects }

func (f *Flow) log() *slog.Logger {
	if f.config.Log == nil {
		return slog.Default()
	}
	return f.config.Log
}

// run is the body of a conversation of one owner (C-11.1).
func (f *Flow) run(c *kernel.Context, input jsontext.Value) (any, error) {
	carry, err := f.begin(c, input)
	if err != nil {
		return nil, err
	}
	return nil, f.resume(c, carry).converse(carry.Pending.Value)
}

// converse receives, admits, answers, records, and repeats, until the
// conversation is over or its next generation begins.
func (d *dialogue) converse(pending jsontext.Value) error {
	if d.c.Generation() > 0 && d.consume(d.bounded(pending)) {
		return nil
	}
	for {
		payload := d.bounded(d.c.Receive(Topic))
		if d.consumed >= d.settings.RotateEveryTurns {
			return kernel.ContinueAsNew(d.carry(payload))
		}
		if closed := d.consume(payload); closed {
			return nil
		}
	}
}

// begin reads the generation's input. A start whose stamp is not the principal
// that made it ends here: nobody could speak in it (C-23.4).
func (f *Flow) begin(c *kernel.Context, input jsontext.Value) (Carry, error) {
	carry, err := CarryOf(input, c.Generation())
	if err != nil || c.Generation() > 0 {
		return carry, err
	}
	if stamp, err := ParseStamp(input); err != nil || !stamp.Agrees(owner(c)) {
		return Carry{}, errStart
	}
	return carry, nil
}

// owner is who started the conversation, nil for nobody.
func owner(c *kernel.Context) *identity.Identity {
	if principal, ok := c.Principal(); ok {
		return &principal
	}
	return nil
}

// dialogue is one generation of a conversation being run. All of it follows
// from the generation's input and its facts.
type dialogue struct {
	flow     *Flow
	c        *kernel.Context
	owner    *identity.Identity
	shared   *Shared // nil in a conversation of one owner
	settings Settings

	consumed int // envelopes of this generation (C-19.2)
	seq      int // accepted turns
	ord      int // consumed envelopes: the message ordinal n (C-13.1)
	rec      int // transcript records (C-15.7)
	replay   replaySet
	invalid  int
	dropped  int
	window   window
	summary  Rolling
	scale    int // of the newest fit, in percent
}

// resume takes up a conversation at the start of a generation.
func (f *Flow) resume(c *kernel.Context, carry Carry) *dialogue {
	settings, err := c.Decide(idSettings, SourceSettings, func(context.Context) (Settings, error) {
		settings := f.config.Settings
		settings.Agent = f.config.limitsOf(owner(c))
		return settings, nil
	})
	if err != nil {
		settings = Settings{}.withDefaults()
	}
	return &dialogue{
		flow: f, c: c, owner: owner(c), settings: settings,
		seq: carry.Seq, ord: carry.Ord, rec: carry.Rec,
		replay: carry.replaySet, invalid: carry.Invalid, dropped: carry.Dropped,
		window: newWindow(carry.Turns), summary: carry.Summary, scale: carry.Scale,
	}
}

// carry is what the next generation is given, with the message that it begins
// with.
func (d *dialogue) carry(pending jsontext.Value) Carry {
	var owner *identity.Identity
	if d.shared != nil {
		owner = d.owner
	}
	return Carry{
		V: carryVersion, Owner: owner, Seq: d.seq, Ord: d.ord, Rec: d.rec,
		replaySet: d.replay, Invalid: d.invalid, Dropped: d.dropped, Turns: d.window.turns, Summary: d.summary, Scale: d.scale,
		Pending: taint.Value[jsontext.Value]{Origin: taint.OriginUser, Value: pending},
	}.trim(d.settings.MaxCarryBytes)
}

// oversized stands for a payload that is larger or deeper than any envelope. It
// is no object, so it is rejected as malformed, and it rides along in a carry
// where the payload could not (C-19.13).
const oversized = `"larger than any envelope"`

// bounded returns the payload, or the mark in its place.
func (d *dialogue) bounded(payload jsontext.Value) jsontext.Value {
	if len(payload) > maxEnvelopeBytes(d.settings.MaxTurnChars) || isDeep(payload) {
		return jsontext.Value(oversized)
	}
	return payload
}
