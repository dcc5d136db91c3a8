package conversation

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// TurnEffect is the effect by which a shared conversation runs a turn (C-34.7).
// It, and the summarizer's, are all that Shared.Service has to be granted
// (C-34.6).
const TurnEffect kernel.EffectID = "conversation.turn"

// Unclassified is the class of a tool that the host says nothing of (C-36.2).
const Unclassified = "unclassified"

// DefaultMaxQueuedPerAsker is how many messages of one asker wait at most
// (C-39.4).
const DefaultMaxQueuedPerAsker = 8

// Shared lets several people talk in one conversation, each with their own
// rights, and each shown what they may see (C-33 to C-39). Give the same one to
// [Config] and [ClientConfig]; conversations of one owner are made as without it.
// Service, Participants and Cleared are required.
//
// The hooks are asked with a context that ends after 5 s. What one of them cannot
// answer, because of an error, a panic or its time, is answered as no.
type Shared struct {
	// Service starts and owns the executions that coordinate shared conversations
	// (C-34.1). No caller may ever have its tenant and actor: such a one is refused
	// everything (C-34.2).
	Service identity.Identity

	Participants Directory

	// Cleared says whether somebody may see what bears all of the classes, of
	// which there is at least one (C-37.1). It is asked for viewers, and for the
	// asker of a turn whose context is put together.
	Cleared func(ctx context.Context, viewer identity.Identity, classes []string) (bool, error)

	// ClassOf says which classes an answer has because a tool was called in its
	// turn; none of them is no restriction. A tool that is not known, and any tool
	// where there is no ClassOf, has the class [Unclassified]. Labels have 1 to
	// 128 bytes.
	ClassOf func(tool string) (classes []string, known bool)

	// MemoryScope is the scope of an asker's memory, for recall and write-back
	// (C-35.8). It is required with a memory, and its answers have the class
	// "memory:" with the scope (C-35.10). Empty, a turn goes without a memory.
	MemoryScope func(asker identity.Identity) string

	// PrincipalFor makes of an asker's identity the principal that their turn runs
	// as, which has that same identity. Without it who presents a credential cannot
	// speak (C-35.7).
	PrincipalFor func(ctx context.Context, asker identity.Identity) (identity.Principal, error)

	// Manages says whether a participant may add and remove others, close the
	// conversation and stop any turn of it, as its owner may (C-33.4). Nil: only
	// the owner may.
	Manages func(ctx context.Context, who identity.Identity, conversationID string) (bool, error)

	// MayStart says who may start a shared conversation; nil: everybody (C-33.10).
	MayStart func(ctx context.Context, who identity.Identity) (bool, error)

	MaxQueuedPerAsker int // DefaultMaxQueuedPerAsker if 0
}

// check refuses what cannot keep what it promises.
func (s *Shared) check() error {
	switch {
	case s.Service.Validate() != nil:
		return fmt.Errorf("shared conversations need a service identity: %w", s.Service.Validate())
	case s.Participants == nil:
		return errors.New("shared conversations need a directory of their participants")
	case s.Cleared == nil:
		return errors.New("shared conversations need a rule of who is cleared for what")
	case s.MaxQueuedPerAsker < 0:
		return errors.New("the number of messages that may wait for each asker is negative")
	}
	return nil
}

// isService reports whether somebody is the service, as far as the kernel's owner
// scope compares (C-34.2).
func (s *Shared) isService(who identity.Identity) bool {
	return who.Tenant == s.Service.Tenant && who.Actor == s.Service.Actor
}

// consent asks a hook. Only a yes is one (C-37.2).
func consent(ctx context.Context, ask func(context.Context) (bool, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	yes := false
	err := survive(func() (err error) {
		yes, err = ask(ctx)
		return err
	})
	return yes && err == nil && ctx.Err() == nil
}

// manages reports whether a participant may do in the conversation what its owner
// may.
func (s *Shared) manages(ctx context.Context, who identity.Identity, owner *identity.Identity, conversation string) bool {
	if owner != nil && who == *owner {
		return true
	}
	return s.Manages != nil && consent(ctx, func(ctx context.Context) (bool, error) {
		return s.Manages(ctx, who, conversation)
	})
}

// principal is whom an asker's turn runs as (C-35.7).
func (s *Shared) principal(ctx context.Context, asker identity.Identity) (identity.Principal, error) {
	if s.PrincipalFor == nil {
		return identity.Principal{Identity: asker}, nil
	}
	var mapped identity.Principal
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	err := survive(func() (err error) {
		mapped, err = s.PrincipalFor(ctx, asker)
		return err
	})
	if err != nil {
		return identity.Principal{}, err
	}
	if mapped.Identity != asker {
		return identity.Principal{}, errors.New("the principal that stands for an asker is somebody else's")
	}
	return mapped, nil
}
