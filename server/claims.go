package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/issuer"
)

const (
	// maxClaimants bounds of how many people it is remembered what their JWT says
	// (C-32.12). Of who comes beyond it nothing is known.
	maxClaimants = 1 << 16
	// claimsSweep is how often those are looked for whose JWT is over.
	claimsSweep = time.Minute
)

// claim is something that a JWT may say.
type claim struct{ name, value string }

// claims remembers of each identity what the newest JWT that was taken for it says,
// until that JWT's end, and of that only what a rule asks for. A restart forgets it.
type claims struct {
	asked []claim // by rules

	mu    sync.Mutex
	known map[identity.Identity]said
	swept time.Time
}

// said is what a JWT says of what is asked.
type said struct {
	claims        []claim
	issued, until time.Time
}

// newClaims remembers what rules ask for; nil where they ask for nothing.
func newClaims(rules []SharingRule) *claims {
	c := &claims{known: map[identity.Identity]said{}}
	for _, rule := range rules {
		for name, value := range rule.Claim {
			if one := (claim{name, value}); !slices.Contains(c.asked, one) {
				c.asked = append(c.asked, one)
			}
		}
	}
	if c.asked == nil {
		return nil
	}
	return c
}

// keep remembers what a JWT says that was taken, unless a newer one is known: who
// keeps an old one gains nothing by it.
func (c *claims) keep(b issuer.Bearer) {
	if c == nil {
		return
	}
	news := said{issued: b.Issued, until: b.Until}
	for _, one := range c.asked {
		if b.Says(one.name, one.value) {
			news.claims = append(news.claims, one)
		}
	}
	c.learn(b.Identity, news)
}

func (c *claims) learn(who identity.Identity, news said) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.swept) >= claimsSweep {
		c.swept = now
		maps.DeleteFunc(c.known, func(_ identity.Identity, s said) bool { return !now.Before(s.until) })
	}
	old, known := c.known[who]
	if known && now.Before(old.until) && news.issued.Before(old.issued) || !known && len(c.known) >= maxClaimants {
		return
	}
	c.known[who] = news
}

// all reports whether somebody is known to have all of the claims of a rule.
func (c *claims) all(who identity.Identity, wanted map[string]string) bool {
	if len(wanted) == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.known[who]
	if !ok || !time.Now().Before(known.until) {
		return false
	}
	for name, value := range wanted {
		if !slices.Contains(known.claims, claim{name, value}) {
			return false
		}
	}
	return true
}
