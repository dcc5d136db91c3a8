package main

import "sync/atomic"

// brake is what Ctrl-C means to a talk: while an answer is awaited the first one
// stops it, and the talk goes on. Any other ends the talk, as it ends every
// command. A nil brake stops nothing.
type brake struct {
	armed  atomic.Bool
	pulled chan struct{}
}

func newBrake() *brake { return &brake{pulled: make(chan struct{}, 1)} }

// arm lets the next pull stop an answer; disarm takes that back.
func (b *brake) arm() {
	if b != nil {
		b.armed.Store(true)
	}
}

func (b *brake) disarm() {
	if b != nil {
		b.armed.Store(false)
	}
}

// pull reports whether there was something to stop.
func (b *brake) pull() bool {
	if b == nil || !b.armed.CompareAndSwap(true, false) {
		return false
	}
	select {
	case b.pulled <- struct{}{}:
	default: // one is on its way
	}
	return true
}

// stops receives when an answer is to be stopped.
func (b *brake) stops() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.pulled
}
