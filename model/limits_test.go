package model_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/modeltest"
	"github.com/parley-run/parley/model/script"
)

func TestModelWithLimits(t *testing.T) {
	modeltest.Run(t, func(t *testing.T) model.Model {
		return model.WithLimits(parse(t, "otherwise\n words \"a b c\" 59s"), model.Limits{})
	}, modeltest.Config{Deterministic: true})
}

func TestLimitsCutAReply(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string
		limits model.Limits
		want   error
		text   string
		took   time.Duration
	}{
		{"within the defaults", `words "a b c" 59s`, model.Limits{}, nil, "a b c", 177 * time.Second},
		{"nothing before the first chunk", `wait 2h`, model.Limits{}, model.ErrTimeout, "", 60 * time.Second},
		{"nothing in mid-stream", "say \"a\"\nwait 2h", model.Limits{}, model.ErrTimeout, "a", 60 * time.Second},
		{"too long in all", `forever "a" 49s`, model.Limits{}, model.ErrTimeout, "aaaaaaaaaaaa", 10 * time.Minute},
		{"own limits", `forever "a" 2s`, model.Limits{Idle: 3 * time.Second, Total: 5 * time.Second}, model.ErrTimeout, "aa", 5 * time.Second},
		{"no limits", `words "a b" 24h`, model.Limits{Idle: -1, Total: -1}, nil, "a b", 48 * time.Hour},
		{"a model that does not notice", "deaf\nforever \"a\" 9m", model.Limits{Idle: -1}, model.ErrTimeout, "a", 18 * time.Minute},
		{"the model's own failure", "fail refused", model.Limits{}, model.ErrRefused, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := model.WithLimits(parse(t, "otherwise\n"+tt.script), tt.limits)
				start := time.Now()
				reply, err := model.Collect(m.Stream(t.Context(), said("x")), nil)
				if !errors.Is(err, tt.want) || reply.Text != tt.text || time.Since(start) != tt.took {
					t.Errorf("reply %q, %v after %v; want %q, %v after %v", reply.Text, err, time.Since(start), tt.text, tt.want, tt.took)
				}
			})
		})
	}
}

// TestCallersDeadlineIsNoTimeoutOfTheModel: what the caller set ends the reply
// with the caller's own error.
func TestCallersDeadlineIsNoTimeoutOfTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m := model.WithLimits(parse(t, "otherwise\n wait 1h"), model.Limits{})
		_, err := model.Collect(m.Stream(ctx, said("x")), nil)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, model.ErrTimeout) {
			t.Errorf("error = %v, want the deadline's", err)
		}
	})
}

// TestSlowReaderIsNotIdle: the time between two chunks counts for the model,
// not for who reads them.
func TestSlowReaderIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.WithLimits(parse(t, "otherwise\n repeat 3 \"a\" 1s"), model.Limits{})
		_, err := model.Collect(m.Stream(t.Context(), said("x")), func(string) { <-time.After(2 * time.Minute) })
		if err != nil {
			t.Errorf("a reader that takes two minutes a chunk got %v", err)
		}
	})
}

func parse(t *testing.T, text string) model.Model {
	t.Helper()
	m, err := script.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func said(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Text: text}}}
}
