package conversation

import (
	"context"
	"strconv"
	"strings"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// TurnPrefix begins the ids of the turns of shared conversations, and no other id.
const TurnPrefix = "turn:"

// TurnOf says for which conversation a step runs, and in which of its turns: an id
// that no other turn of the conversation has. It is false for a step of no turn.
func TurnOf(step kernel.Step) (conversation, turn string, ok bool) {
	if rest, isTurn := strings.CutPrefix(step.Execution, TurnPrefix); isTurn {
		conversation, _, ok = strings.Cut(rest, ":")
		return conversation, step.Execution, ok
	}
	n, ok := loopOrdinal(step.ID)
	return step.Execution, loopID(n), ok
}

// loopOrdinal is the ordinal of the message that a decision or a step belongs to.
func loopOrdinal(id string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(id, loopPrefix)
	if !ok {
		return 0, false
	}
	if end := strings.IndexAny(rest, ":#"); end >= 0 {
		rest = rest[:end]
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil && n > 0
}

// turnBlock is how many of the newest events are looked through for a turn. Behind
// them all is the work of one turn, if nothing of another is among them.
const turnBlock = 64

// TurnOver reports whether a turn that [TurnOf] named is known to have ended: its
// reply is on record, or something of a later turn. A turn that a restart cut off
// has not ended, because it goes on.
func TurnOver(ctx context.Context, store journal.Store, conversation, turn string) (bool, error) {
	execution, generation := conversation, 0
	n, ours := loopOrdinal(turn)
	if !ours { // an execution of its own, which never rotates
		execution = turn
	} else {
		head, ok, err := kernel.HeadGeneration(ctx, store, conversation)
		if err != nil || !ok {
			return false, err
		}
		generation = head
	}
	stream := kernel.StreamOf(execution, generation)
	for from := endOfGeneration; ; {
		events, err := store.ReadRange(ctx, stream, from, turnBlock, journal.Backward)
		if err != nil {
			return false, err
		}
		for _, event := range events {
			if event.Kind == kernel.KindEnded {
				return true, nil
			}
			if m, ok := loopOrdinal(event.ID); ours && ok {
				return m > n || m == n && (event.ID == idReply(n) || event.ID == idDropped(n)), nil
			}
			from = event.Seq - 1
		}
		if len(events) < turnBlock || !ours {
			return generation > 0, nil // a generation begins between two turns
		}
	}
}
