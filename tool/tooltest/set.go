// Package tooltest holds what a [tool.Set] is: [Run] is the contract in
// executable form, and [Set] a set in memory that a test fills and empties.
package tooltest

import (
	"context"
	"encoding/json/jsontext"
	"slices"
	"sync"

	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/tool"
)

// Set is a set of tools in memory.
type Set struct {
	name string
	mode kernel.Mode

	mu    sync.Mutex
	tools []entry
}

type entry struct {
	offer tool.Offer
	run   Func
}

// Func is what a tool does.
type Func func(ctx context.Context, args jsontext.Value) (tool.Result, error)

// NewSet makes an empty set.
func NewSet(name string, mode kernel.Mode) *Set { return &Set{name: name, mode: mode} }

// Put adds a tool at the end, or replaces the one of its name.
func (s *Set) Put(offer tool.Offer, run Func) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(offer.Name); i >= 0 {
		s.tools[i] = entry{offer, run}
		return
	}
	s.tools = append(s.tools, entry{offer, run})
}

// Clear takes all tools away.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = nil
}

func (s *Set) find(name string) int {
	return slices.IndexFunc(s.tools, func(e entry) bool { return e.offer.Name == name })
}

// Name is the name of the set.
func (s *Set) Name() string { return s.name }

// Mode is the mode of the set.
func (s *Set) Mode() kernel.Mode { return s.mode }

// Offers lists the tools in the order in which they were put.
func (s *Set) Offers() []tool.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	offers := make([]tool.Offer, len(s.tools))
	for i, e := range s.tools {
		offers[i] = e.offer
	}
	return offers
}

// Call calls a tool.
func (s *Set) Call(ctx context.Context, name string, args jsontext.Value) (tool.Result, error) {
	s.mu.Lock()
	i := s.find(name)
	if i < 0 {
		s.mu.Unlock()
		return tool.Result{}, tool.ErrAbsent
	}
	run := s.tools[i].run
	s.mu.Unlock()
	return run(ctx, args)
}
