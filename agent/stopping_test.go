package agent

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/parley-run/parley/journal/memory"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// C-6.6: what is cut because the process stops is made anew by the next one, and
// is no failure: an operator who restarts a busy server is warned of nothing.
func TestStoppingIsNoFailure(t *testing.T) {
	for _, test := range []struct {
		name   string
		effect func(*slog.Logger) (kernel.Effect, error)
		ask    func(*kernel.Context) error
	}{
		{
			"a summary",
			func(log *slog.Logger) (kernel.Effect, error) {
				return NewSummarizer(SummarizerConfig{ID: "slow", Model: plays(t, "otherwise\n  forever \"x\" 1s"), Log: log})
			},
			func(c *kernel.Context) error {
				_, err := Summarize(c, "s", "slow", []Message{NewMessage(model.User, taint.Plain("hi"))})
				return err
			},
		},
		{
			"a tool",
			func(log *slog.Logger) (kernel.Effect, error) {
				wait := func(ctx context.Context) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }
				return kernel.Effect{ID: "slow", Run: func(ctx context.Context, _ jsontext.Value) (any, error) {
					return Definition{Log: log}.perform(ctx, "slow", kernel.Once, "", wait), nil
				}}, nil
			},
			func(c *kernel.Context) error { _, err := c.Execute[Did]("t", "slow", nil); return err },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				effect, err := test.effect(slog.New(slog.NewTextHandler(&logged, nil)))
				if err != nil {
					t.Fatal(err)
				}
				rt, err := kernel.New(kernel.Config{
					Store: memory.New(), Effects: []kernel.Effect{effect}, Log: quiet(), Policy: kernel.Unguarded(),
					Flows: []kernel.Flow{{Name: "f", Version: "1", Run: func(c *kernel.Context, _ jsontext.Value) (any, error) {
						return nil, test.ask(c)
					}}},
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := rt.Start(t.Context(), rt.System(), kernel.StartRequest{Flow: "f", ID: "f"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // until the effect runs
				rt.Close()
				synctest.Wait()
				if logged.Len() > 0 {
					t.Errorf("the stop is logged as a failure: %s", &logged)
				}
			})
		})
	}
}
