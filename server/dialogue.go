package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/server/datadir"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// defaultSystem is the system prompt where the settings have none.
const defaultSystem = "You are a helpful assistant in a long conversation. Answer briefly and plainly. " +
	"Say so where you do not know. You can look at the clock."

// surroundings are what a flow has beside its log: where its words go, what cuts
// its turns, the tools that come and go, and who counts. A rehearsal has none.
type surroundings struct {
	hub     *conversation.Hub
	bargeIn conversation.BargeInSource
	sets    []tool.Set
	shared  *conversation.Shared

	onModelCall func(agent.ModelCall)
	onTurn      func(conversation.TurnReport)
	onRejected  func(conversation.Reason)
}

// newFlow makes the flow of the server's conversations.
func newFlow(settings Settings, keys conversation.Keys, m model.Model, around surroundings, log *slog.Logger) (*conversation.Flow, error) {
	system := settings.System
	if system == "" {
		system = defaultSystem
	}
	// It is registered whether the settings use it or not: a generation that used
	// it goes on (C-11.16).
	summarizer, err := agent.NewSummarizer(agent.SummarizerConfig{Model: m, Log: log, OnModelCall: around.onModelCall})
	if err != nil {
		return nil, err
	}
	var counter conversation.TokenCounter
	if exact, ok := m.(model.Counter); ok { // C-9.5
		counter = conversation.ExactTokenCounter{Model: exact}
	}
	return conversation.NewFlow(conversation.Config{
		Keys: keys, Hub: around.hub,
		BargeIn: around.bargeIn, StopOnly: !settings.interrupts(),
		Counter: counter, Summarizer: summarizer,
		Agent: agent.Definition{
			ID: "parley", System: taint.Plain(system), Model: m, Tools: []agent.Tool{agent.Clock()}, Toolsets: around.sets,
			OnModelCall: around.onModelCall, Log: log,
		},
		Shared: around.shared,
		OnTurn: around.onTurn, OnRejected: around.onRejected,
		Settings: conversation.Settings{
			RotateEveryTurns: settings.RotateEveryTurns,
			MaxTurnChars:     settings.MaxTurnChars,
			MaxWindowTurns:   settings.MaxWindowTurns,
			Budget:           settings.budget(),
		},
		// The operator's view: what went wrong, under the id that the person was
		// given. It holds what a vendor answered, and no text of a conversation.
		OnError: func(errorID string, err error, where conversation.Where) {
			log.Error("a turn failed", "errorId", errorID, "conversation", where.ConversationID, "turn", where.Turn, "error", err)
		},
		Log: log,
	})
}

// check refuses settings that no server could run with, before anything is
// touched.
func (s Settings) check(m model.Model, sets []tool.Set, log *slog.Logger) error {
	if s.ContextWindow == 0 && s.ReserveOutputTokens > 0 {
		return errors.New("configuration: reserve_output_tokens is set, and context_window is not: that of this model is not known, so set it too")
	}
	var key [datadir.KeyBytes]byte
	rand.Read(key[:])
	keys, err := conversation.NewKeys(key[:])
	if err != nil {
		return err
	}
	may, err := newRights(s)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if _, err = newFlow(s, keys, m, surroundings{sets: sets, shared: may.shared(nil)}, log); err != nil {
		return inKeys(err)
	}
	return nil
}

// policy closes every door to a conversation but the client's (C-24, C-7.7).
func policy() (kernel.Policy, error) {
	return kernel.ExecutionAccessPolicy(map[kernel.Operation]kernel.Scope{
		kernel.OpQuery: kernel.ScopeOwner, kernel.OpSend: kernel.ScopeOwner,
		kernel.OpCancel: kernel.ScopeOwner, kernel.OpResume: kernel.ScopeOwner,
		kernel.OpFork: kernel.ScopeDeny, kernel.OpAnnotate: kernel.ScopeDeny, kernel.OpActAsOwner: kernel.ScopeDeny,
	})
}

// newRuntime makes the runtime of the server's conversations. The reserved
// prefixes are streams of other parts, which no execution may own (K13).
func newRuntime(store journal.Store, flow *conversation.Flow, may *rights, log *slog.Logger) (*kernel.Runtime, error) {
	access, err := policy()
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Config{
		Store: store, Flows: flow.Kernels(), Effects: flow.Effects(),
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations},
		Policy:   access, RequirePrincipal: true, Granted: may.granted,
		Reserved: []string{"lease:", conversation.ParticipantsPrefix},
		Log:      log,
	})
}

// newClient makes the way in to the conversations of a runtime.
func newClient(settings Settings, keys conversation.Keys, runtime *kernel.Runtime, hub *conversation.Hub, shared *conversation.Shared) (*conversation.Client, error) {
	access := runtime.Policy()
	return conversation.NewClient(conversation.ClientConfig{
		Runtime: runtime, Keys: keys, Hub: hub, MaxTurnChars: settings.MaxTurnChars, Policy: &access, Shared: shared,
	})
}
