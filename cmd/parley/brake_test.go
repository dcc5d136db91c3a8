package main

import (
	"context"
	"io"
	"syscall"
	"testing"

	"github.com/parley-run/parley/conversation"
)

// The first Ctrl-C while an answer is awaited stops it, and ends nothing; the next
// one ends the command, though the stop may not have got through.
func TestBrake(t *testing.T) {
	b := newBrake()
	ctx, stop := untilSignal(t.Context(), b)
	defer stop()
	person := &talk{interactive: true, brake: b, terminal: console{out: io.Discard, err: io.Discard}}
	person.await(&ask{text: "hello", sent: true})
	interrupt(t)
	<-b.stops()
	if ctx.Err() != nil {
		t.Error("the first Ctrl-C ends the command")
	}
	interrupt(t)
	select {
	case <-ctx.Done():
	case <-b.stops():
		t.Error("the second Ctrl-C stops the answer once more")
	}
}

// Where nothing is awaited, where nobody types, and in other commands, the first
// Ctrl-C ends the command.
func TestBrakeIsOff(t *testing.T) {
	answered := &talk{interactive: true, brake: newBrake(), terminal: console{out: io.Discard, err: io.Discard}}
	a := &ask{turn: 1}
	answered.await(a)
	answered.hear(conversation.Record{Turn: 1, Role: conversation.RoleAssistant, Status: conversation.StatusComplete})
	piped := &talk{brake: newBrake()}
	piped.await(a)
	for name, b := range map[string]*brake{"answered": answered.brake, "a pipe": piped.brake, "another command": nil} {
		ctx, stop := untilSignal(context.Background(), b)
		interrupt(t)
		select {
		case <-ctx.Done():
		case <-b.stops():
			t.Errorf("%s: an answer is stopped", name)
		}
		stop()
	}
}

func interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}
