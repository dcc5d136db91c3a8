package metrics

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
)

// chatty is a model that says so many words.
type chatty int

// Stream says them.
func (n chatty) Stream(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for range n {
			if !yield(model.Chunk{Text: "word "}, nil) {
				return
			}
		}
		yield(model.Chunk{Finish: &model.Finish{Reason: model.FinishStop}}, nil)
	}
}

// discard is a connection that takes everything.
type discard struct{ header http.Header }

func (d discard) Header() http.Header            { return d.header }
func (discard) WriteHeader(int)                  {}
func (discard) Write(p []byte) (int, error)      { return len(p), nil }
func (discard) FlushError() error                { return nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }

// benchmarkTurns measures turns of so many words, each heard by a stream, with
// the metrics and without. The journal is in memory, so that no disk hides them.
func benchmarkTurns(b *testing.B, words int, counted bool) {
	keys, err := conversation.NewKeys([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		b.Fatal(err)
	}
	hub, log := conversation.NewHub(conversation.HubConfig{}), slog.New(slog.NewTextHandler(io.Discard, nil))
	config := conversation.Config{Keys: keys, Hub: hub, Log: log, Agent: agent.Definition{ID: "bench", Model: chatty(words), Log: log}}
	around := func(next http.Handler) http.Handler { return next }
	if counted {
		m := New("bench")
		config.OnTurn, config.OnRejected, config.Agent.OnModelCall, around = m.Turn, m.Rejected, m.ModelCall, m.Around
	}
	flow, err := conversation.NewFlow(config)
	if err != nil {
		b.Fatal(err)
	}
	rt, err := kernel.New(kernel.Config{
		Store: memory.New(), Flows: flow.Kernels(), Effects: flow.Effects(), Log: log,
		Features: []kernel.Feature{kernel.Inbox, kernel.Continuations}, Policy: kernel.Unguarded(),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	client, err := conversation.NewClient(conversation.ClientConfig{Runtime: rt, Keys: keys, Hub: hub, RuntimePolicyIsOwnerScoped: true})
	if err != nil {
		b.Fatal(err)
	}
	ann := identity.Principal{Identity: identity.Identity{Actor: "ann"}}
	door, err := gateway.New(gateway.Config{
		Client: client, Log: log, AllowNoRuntimeAuthz: true,
		Authenticate: func(*http.Request) (identity.Principal, error) { return ann, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	id, err := client.Start(ctx, &ann, "")
	if err != nil {
		b.Fatal(err)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		around(door).ServeHTTP(discard{http.Header{}}, httptest.NewRequest("GET", "/v1/conversations/"+id+"/events", nil).WithContext(ctx))
	}()
	defer func() { cancel(); <-heard }()
	next, stop := iter.Pull2(client.Follow(ctx, &ann, id, nil))
	defer stop()
	for b.Loop() {
		if _, err := client.SendTurn(ctx, &ann, id, conversation.Message{Text: "hello"}); err != nil {
			b.Fatal(err)
		}
		for role := conversation.RoleUser; role != conversation.RoleAssistant; {
			record, err, ok := next()
			if err != nil || !ok {
				b.Fatal(err)
			}
			role = record.Role
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkTurns(b, 1, false) })
	b.Run("counted", func(b *testing.B) { benchmarkTurns(b, 1, true) })
}

func BenchmarkThousandDeltas(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkTurns(b, 1000, false) })
	b.Run("counted", func(b *testing.B) { benchmarkTurns(b, 1000, true) })
}

// A request is what the middleware alone costs.
func BenchmarkRequest(b *testing.B) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) })
	for name, handler := range map[string]http.Handler{"plain": answer, "counted": New("bench").Around(answer)} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("POST", "/v1/conversations/abc/turns", nil)
			for b.Loop() {
				handler.ServeHTTP(discard{}, r)
			}
		})
	}
}
