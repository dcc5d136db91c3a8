package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/lease"
	"github.com/parley-run/parley/server/datadir"
)

// service coordinates shared conversations. Neither a token nor an issuer can stand
// for it (C-34.2).
var service = identity.Identity{Actor: datadir.ServicePrefix + "service"}

// toolEffects begins the names of the effects of tools and of sets of them.
const toolEffects = "tool."

// ownTools are the tools that the agent has whatever the configuration says.
var ownTools = []string{agent.Clock().Name}

// rights is what the configuration says of who may see and do what. What it says
// nothing of nobody may see, and everybody may do (C-36.2, C-33.10).
type rights struct {
	sharing Sharing
	sets    []string // of tools
	claims  *claims

	grants bool // some rule says which tools people's turns may call
	starts bool // some rule says who starts shared conversations
	uses   bool // some rule says who uses which part of the agent's body
}

// newRights reads them, and refuses what cannot mean what it says.
func newRights(s Settings) (*rights, error) {
	r := &rights{sharing: s.Sharing, sets: append(ownSets(), slices.Sorted(maps.Keys(s.MCP))...), claims: newClaims(s.Sharing.People)}
	if err := s.Sharing.check(ownTools, r.sets, s.OIDC != nil, s.OIDC != nil && s.OIDC.TenantClaim != ""); err != nil {
		return nil, err
	}
	for _, rule := range s.Sharing.People {
		r.grants = r.grants || rule.Tools != nil
		r.starts = r.starts || rule.Starts != nil
		r.uses = r.uses || rule.Uses != nil
	}
	return r, nil
}

// shared is how conversations are shared by them.
func (r *rights) shared(store journal.Store) *conversation.Shared {
	return &conversation.Shared{
		Service: service, Participants: conversation.LogParticipants(store),
		Cleared: r.cleared, ClassOf: r.classOf, Manages: r.manages, MayStart: r.mayStart,
	}
}

// of are the rules that fit somebody.
func (r *rights) of(who identity.Identity) (rules []SharingRule) {
	for _, rule := range r.sharing.People {
		if rule.fits(who) && r.claims.all(who, rule.Claim) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// fits reports whether somebody is among those whom a rule names, its claims aside.
func (r SharingRule) fits(who identity.Identity) bool {
	if r.Everybody {
		return true
	}
	actor := r.Actor == "" && len(r.Actors) == 0 || who.Actor == r.Actor || slices.Contains(r.Actors, who.Actor)
	return actor && who.Tenant == fieldOf(r.Tenant) && who.OnBehalfOf == fieldOf(r.OnBehalfOf)
}

// cleared reports whether somebody may see all of the classes (C-37.1).
func (r *rights) cleared(_ context.Context, who identity.Identity, classes []string) (bool, error) {
	rules := r.of(who)
	for _, class := range classes {
		if !slices.ContainsFunc(rules, func(rule SharingRule) bool { return slices.Contains(rule.Clears, class) }) {
			return false, nil
		}
	}
	return true, nil
}

// classOf is the classes of a tool: those of all names that fit it.
func (r *rights) classOf(tool string) (classes []string, known bool) {
	known = slices.Contains(ownTools, tool)
	for name, more := range r.sharing.Tools {
		if toolPattern(name).fits(tool) {
			classes, known = append(classes, more...), true
		}
	}
	return classes, known
}

// manages reports whether somebody manages the conversations that they take part in.
func (r *rights) manages(_ context.Context, who identity.Identity, _ string) (bool, error) {
	return slices.ContainsFunc(r.of(who), func(rule SharingRule) bool { return rule.Manages != nil }), nil
}

// mayStart reports whether somebody may start a shared conversation.
func (r *rights) mayStart(_ context.Context, who identity.Identity) (bool, error) {
	return !r.starts || slices.ContainsFunc(r.of(who), func(rule SharingRule) bool { return rule.Starts != nil }), nil
}

// mayUse reports whether somebody's turns may use a part of the agent's body now
// (L-4.1). The grant of the tools stands apart from it (L-4.3).
func (r *rights) mayUse(_ context.Context, use lease.Use) bool {
	who := use.Caller.Identity
	set := kernel.EffectID(toolEffects + string(use.Resource))
	if !r.granted(&who, set) {
		return false
	}
	if !r.uses {
		return who == Owner
	}
	return slices.ContainsFunc(r.of(who), func(rule SharingRule) bool {
		return rule.Uses != nil && slices.Contains(*rule.Uses, use.Resource)
	})
}

// granted is the runtime's Granted (C-4.17): the service runs turns and the
// summarizer, and nothing else (C-34.6); people everything but turns, and those tools
// that their rules say. The tools of a set are one effect, so that they are granted
// together.
func (r *rights) granted(principal *identity.Identity, effect kernel.EffectID) bool {
	coordinates := effect == conversation.TurnEffect || effect == agent.DefaultSummarizer
	name, isTool := strings.CutPrefix(string(effect), toolEffects)
	switch {
	case principal == nil:
		return false
	case principal.Tenant == service.Tenant && principal.Actor == service.Actor:
		return coordinates
	case effect == conversation.TurnEffect:
		return false
	case !isTool || !r.grants:
		return true
	}
	return slices.ContainsFunc(r.of(*principal), func(rule SharingRule) bool {
		return rule.Tools != nil && slices.ContainsFunc(*rule.Tools, func(pattern string) bool {
			if slices.Contains(r.sets, name) {
				return toolPattern(pattern).all(name)
			}
			return toolPattern(pattern).fits(name)
		})
	})
}
