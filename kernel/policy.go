package kernel

import (
	"fmt"
	"maps"
	"slices"

	"github.com/parley-run/parley/identity"
)

// Operation is one of the things that a caller can do to an execution (C-7.1).
type Operation string

const (
	OpStart      Operation = "start"
	OpQuery      Operation = "query"
	OpSend       Operation = "send"
	OpCancel     Operation = "cancel"
	OpResume     Operation = "resume"     // not built: refused to all
	OpFork       Operation = "fork"       // not built: refused to all
	OpAnnotate   Operation = "annotate"   // not built: refused to all
	OpActAsOwner Operation = "actAsOwner" // not built: refused to all
)

// Operations are all operations that a policy has a scope for.
func Operations() []Operation {
	return []Operation{OpStart, OpQuery, OpSend, OpCancel, OpResume, OpFork, OpAnnotate, OpActAsOwner}
}

// Scope says whom an operation is open to.
type Scope string

const (
	// ScopeOwner admits a principal whose tenant and actor equal those of the
	// recorded one; onBehalfOf is not compared (C-7.2).
	ScopeOwner Scope = "owner"
	// ScopeTenant admits a principal of the recorded one's tenant.
	ScopeTenant Scope = "tenant"
	// ScopeAny admits any principal.
	ScopeAny Scope = "any"
	// ScopeDeny admits nobody but the system grant.
	ScopeDeny Scope = "deny"
)

// Policy decides who may do what to an execution. It fails closed: what it
// cannot judge it refuses (C-7.8). The zero Policy stands for the reference
// policy in a [Config] and refuses everything by itself.
type Policy struct {
	scopes    map[Operation]Scope
	unguarded bool
}

// ReferencePolicy is the default of a runtime: start is open to any principal,
// query, send, cancel and resume to the tenant, the rest to the owner (C-7.4,
// C-7.5).
func ReferencePolicy() Policy {
	return Policy{scopes: map[Operation]Scope{
		OpStart: ScopeAny,
		OpQuery: ScopeTenant, OpSend: ScopeTenant, OpCancel: ScopeTenant, OpResume: ScopeTenant,
		OpFork: ScopeOwner, OpAnnotate: ScopeOwner, OpActAsOwner: ScopeOwner,
	}}
}

// ExecutionAccessPolicy is the reference policy with some scopes replaced
// (C-7.7).
func ExecutionAccessPolicy(rules map[Operation]Scope) (Policy, error) {
	policy := ReferencePolicy()
	for op, scope := range rules {
		if _, ok := policy.scopes[op]; !ok {
			return Policy{}, fmt.Errorf("unknown operation %q", op)
		}
		if !slices.Contains([]Scope{ScopeOwner, ScopeTenant, ScopeAny, ScopeDeny}, scope) {
			return Policy{}, fmt.Errorf("unknown scope %q of operation %q", scope, op)
		}
		policy.scopes[op] = scope
	}
	return policy, nil
}

// Unguarded is a policy that admits everybody to everything, for programs that
// judge their callers themselves and for tests.
func Unguarded() Policy { return Policy{unguarded: true} }

// FailClosed reports whether the policy refuses what it cannot judge; only
// [Unguarded] does not (C-4.13).
func (p Policy) FailClosed() bool { return !p.unguarded }

// Scopes shows the resolved scope of each operation; the result is a copy
// (C-7.6).
func (p Policy) Scopes() map[Operation]Scope { return maps.Clone(p.scopes) }

// Caller is on whose authority an operation is asked for. The zero Caller is
// nobody; [By] makes one of a principal; [Runtime.System] is the system grant.
type Caller struct {
	principal *identity.Identity
	system    bool
}

// By is a caller with a principal. The credential is left behind.
func By(p identity.Principal) Caller { return Caller{principal: &p.Identity} }

// Identity returns the caller's identity, and false for nobody and for the
// system grant.
func (c Caller) Identity() (identity.Identity, bool) {
	if c.principal == nil {
		return identity.Identity{}, false
	}
	return *c.principal, true
}

// check validates the caller itself: a principal must be able to act, and a
// runtime may require one.
func (rt *Runtime) check(c Caller) error {
	switch {
	case c.system:
		return nil
	case c.principal != nil:
		if err := c.principal.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrForbidden, err)
		}
		return nil
	case rt.config.RequirePrincipal:
		return fmt.Errorf("%w: this runtime requires a principal", ErrForbidden)
	}
	return nil
}

// admits applies the scope of op. recorded is the principal of the execution,
// nil where nobody started it.
func (p Policy) admits(op Operation, c Caller, recorded *identity.Identity) bool {
	if c.system || p.unguarded {
		return true
	}
	scope := p.scopes[op]
	if scope == ScopeAny {
		return true
	}
	if c.principal == nil || recorded == nil { // nobody matches what nobody started
		return c.principal == nil && recorded == nil && (scope == ScopeTenant || scope == ScopeOwner)
	}
	switch scope {
	case ScopeTenant:
		return c.principal.Tenant == recorded.Tenant
	case ScopeOwner:
		return c.principal.Tenant == recorded.Tenant && c.principal.Actor == recorded.Actor
	}
	return false
}
