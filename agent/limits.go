package agent

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits bound one run of the loop and what it may know. They steer it, so
// within an execution they have to be facts: a caller that takes them from a
// configuration records them first. Zero fields mean the defaults.
type Limits struct {
	Rounds int `json:"rounds"` // model calls; 16
	Calls  int `json:"calls"`  // tool calls; 32

	Compaction Compaction `json:"compaction,omitzero"`

	MemoryScope    string `json:"memoryScope,omitzero"`    // from which facts are recalled; none are where it is empty
	WriteBackScope string `json:"writeBackScope,omitzero"` // in which is kept what a run came to; nothing is where it is empty
}

// Compaction says how large the transcript of a run may grow before its older
// part is summarised (C-10.12, C-11.10); the zero Compaction never does that. A
// transcript is the history, the prompt, and the calls and results of the run,
// and its bytes are those of its JSON.
//
// It is checked before every model call of the run, between tool calls too: what
// is larger is cut to half of it, but the prompt and the newest round stay as they
// are (T74). Definition.Compactor is given {"messages": …} and answers {"summary":
// …}; the messages are for taint.SummarizerText to read. The summary stands in
// their place, fenced, in a user position. Where the compactor fails, is not
// granted or is not configured any more, the run goes on uncompacted; after two
// failures it is not tried again in that run.
type Compaction struct {
	Messages int `json:"messages,omitzero"` // at least 8; 0: any number
	Bytes    int `json:"bytes,omitzero"`    // at least 4 KiB; 0: as many as a model call can be given
}

// The least that a compaction can work with.
const (
	minCompactMessages = 8
	minCompactBytes    = 4 << 10
)

// maxScope bounds the name of a scope.
const maxScope = 256

// WithDefaults returns the limits with the defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	l.Rounds, l.Calls = cmp.Or(l.Rounds, 16), cmp.Or(l.Calls, 32)
	return l
}

// checkLimits refuses limits that cannot hold, and those for which there is
// nobody.
func (d Definition) checkLimits() error {
	l := d.Limits
	switch {
	case l.Rounds < 0 || l.Calls < 0 || d.ToolTimeout < 0 || l.Compaction.Messages < 0 || l.Compaction.Bytes < 0:
		return errors.New("a limit of an agent is negative")
	case l.Compaction.Messages > 0 && l.Compaction.Messages < minCompactMessages:
		return fmt.Errorf("a compaction of more than %d messages, want %d or more", l.Compaction.Messages, minCompactMessages)
	case l.Compaction.Bytes > 0 && (l.Compaction.Bytes < minCompactBytes || l.Compaction.Bytes > maxTranscriptBytes):
		return fmt.Errorf("a compaction of more than %d bytes, want %d to %d", l.Compaction.Bytes, minCompactBytes, maxTranscriptBytes)
	case (l.Compaction == Compaction{}) != (d.Compactor == ""):
		return errors.New("a compaction needs both a limit and a compactor")
	case (l.MemoryScope == "") != (d.Memory == nil):
		return errors.New("a memory needs a scope, and a memory scope a memory")
	case (l.WriteBackScope == "") != (d.WriteBack == ""):
		return errors.New("a write-back needs both a scope and an effect")
	case len(l.MemoryScope) > maxScope || len(l.WriteBackScope) > maxScope:
		return fmt.Errorf("a scope of a memory is longer than %d bytes", maxScope)
	}
	return nil
}
