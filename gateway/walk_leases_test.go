package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/lease"
)

// leases: each state of a part of the body, and each reason. Without a body the list is
// empty, and there is none (L-28.8).
func (c *walk) leases(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	all := []lease.Status{
		{Resource: lease.Browser, State: lease.Free},
		{Resource: lease.Voice, State: lease.Held, Owner: "abc", Incarnation: "voice.1", Since: now, Deadline: now.Add(time.Minute), Operations: 2},
	}
	for _, reason := range []lease.Reason{lease.Expired, lease.Restarted, lease.Uncertain, lease.Damaged} {
		all = append(all, lease.Status{
			Resource: lease.Play, State: lease.RecoveryRequired, Owner: "abc", Incarnation: "play.1", Since: now, Deadline: now,
			Reason: reason, Tries: 3, NextTry: now.Add(time.Second),
		})
	}
	for want, list := range map[string]func() []lease.Status{
		`{"resources":[]}`: nil, `{"resources":[{"resource":"browser","state":"free","operations":0},{"resource":"voice","state":"held"`: func() []lease.Status { return all },
	} {
		w := c.in(newWorld(t, func(_ *kernel.Config, c *Config) { c.Leases = list }))
		got := &tape{}
		w.handler.ServeHTTP(got, request("GET", "/v1/leases", "bob@acme", ""))
		if got.code != 200 || !strings.HasPrefix(got.text(), want) {
			t.Errorf("GET /v1/leases: %d %s; want %s", got.code, got.text(), want)
		}
	}
}
