package agent

import (
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// extent is how much there is of messages: the one measure of when to compact
// and of what to cut (T75).
type extent struct{ messages, bytes int }

func (d *draft) extent() extent { return extent{len(d.Messages), d.size} }

// of is the extent of some messages of the draft.
func (d *draft) of(from, to int) extent {
	e := extent{messages: to - from}
	for _, encoded := range d.encoded[from:to] {
		e.bytes += len(encoded) + len(",")
	}
	return e
}

func (e extent) plus(other extent) extent {
	return extent{e.messages + other.messages, e.bytes + other.bytes}
}

// over reports whether it is more than a compaction leaves alone.
func (e extent) over(limit Compaction) bool {
	return limit.Messages > 0 && e.messages > limit.Messages || limit.Bytes > 0 && e.bytes > limit.Bytes
}

// boundary returns before which message to cut, 0 where there is nothing to cut.
// What stands behind it is, with the head, at most half of the limit; but the
// newest round is never cut, and neither is the head. A boundary stands before a
// text of the user's or before calls, never between calls and their results (T71).
func (d *draft) boundary(limit Compaction) int {
	newest := len(d.Messages) - 1
	for newest >= d.rounds && len(d.Messages[newest].Calls) == 0 {
		newest--
	}
	if newest < d.rounds { // there is no round yet
		newest = d.head
	}
	head, half := d.of(d.head, d.rounds), Compaction{Messages: limit.Messages / 2, Bytes: limit.Bytes / 2}
	cut, kept := newest, head.plus(d.of(max(newest, d.rounds), len(d.Messages)))
	for i := newest - 1; i >= 0; i-- {
		if i >= d.head && i < d.rounds {
			continue
		}
		if kept = kept.plus(d.of(i, i+1)); kept.over(half) {
			break
		}
		if e := d.Messages[i]; len(e.Calls) > 0 || i < d.head && e.Role == model.User {
			cut = i
		}
	}
	fresh := min(cut, d.head) - d.summarised + max(0, cut-d.rounds)
	if fresh <= 0 || d.summaryBytes(limit) < minSummaryBytes {
		return 0
	}
	return cut
}

// minSummaryBytes is how long a summary may be at least; where there is less room
// for it, there is none.
const minSummaryBytes = 256

// summaryBytes is how long a summary may be: a quarter of the limit, and no more
// than is left beside the head.
func (d *draft) summaryBytes(limit Compaction) int {
	if limit.Bytes == 0 {
		return MaxTextBytes / 4
	}
	const around = 256 // what stands around the summary, and the answer to it
	return min(limit.Bytes/4, limit.Bytes-d.of(d.head, d.rounds).bytes-around)
}

// bytesBefore is how much JSON stands before the boundary, without the head. A
// summary is no longer than what it stands for, or a caller that sized the history
// to a model's window would have done so in vain (C-20.16).
func (d *draft) bytesBefore(cut int) int {
	return d.of(0, min(cut, d.head)).bytes + d.of(d.rounds, max(cut, d.rounds)).bytes
}

// before is the input of a compactor: what stands before the boundary, without
// the head.
func (d *draft) before(cut int) kernel.Canonical {
	var old draft
	for i := range cut {
		if i < d.head || i >= d.rounds {
			old.append(d.Messages[i], d.encoded[i])
		}
	}
	return kernel.Canonical{JSON: old.json()}
}

// summaryTaken is what the assistant says to a summary (C-13.10).
const summaryTaken = "Understood."

// replace puts a summary into the place of what stands before the boundary. What
// the model said there stays known, though it is not told: those who show the
// reply as it comes are told what it is added to.
func (d *draft) replace(cut int, text string) error {
	var next draft
	if err := next.add(entry{Role: model.User, Text: taint.Tainted(text, taint.OriginSummary)}); err != nil {
		return err
	}
	if err := next.add(entry{Role: model.Assistant, Text: taint.Plain(summaryTaken)}); err != nil {
		return err
	}
	next.summarised = len(next.Messages)
	next.Said = d.Said
	for i, e := range d.Messages {
		if i == d.head {
			next.head = len(next.Messages)
		}
		if i == d.rounds {
			next.rounds = len(next.Messages)
		}
		switch inHead := i >= d.head && i < d.rounds; {
		case i >= cut || inHead:
			next.append(e, d.encoded[i])
		case i >= d.rounds && e.Role == model.Assistant:
			said, _ := taint.TextOf(e.Text)
			next.Said = join(next.Said, said)
		}
	}
	if d.rounds == len(d.Messages) {
		next.rounds = len(next.Messages)
	}
	*d = next
	return nil
}
