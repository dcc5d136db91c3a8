package conversation

import (
	"context"

	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// blockEvents is how many events one range read of a history fetches (C-17.2).
const blockEvents = 256

// scan walks over the records of one conversation, in either direction and
// across generations. Each event that it looks at and each hop between
// generations costs one of its budget, so that the store operations of a walk
// are bounded whatever the place that it starts at (C-17.9).
//
// The place is a cursor: forward it goes on strictly after it, backward
// strictly before (C-17.12). Event 0 of a generation is never a record, so
// "<g>.0" is the beginning of a generation, and "<g>.<endOfGeneration>" its
// end.
type scan struct {
	store  journal.Store
	chain  string
	head   int // the newest generation that is known
	place  Cursor
	dir    journal.Direction
	budget int
	block  int // events of the first read; doubled from read to read, up to blockEvents
	view   *view

	probed    int  // one more than the newest generation behind which a newer was looked for
	continued bool // the end of the newest known generation was read: there is a newer

	done  bool // there is nothing more in this direction for now
	ended bool // forward: the end of the execution was passed
}

// start puts the scan at a cursor, nil for the end that its direction starts
// at. A generation beyond the head is the end of the conversation. Forward, a
// sequence beyond its generation's tip is taken back to the tip: what is
// appended later comes after it (C-17.8).
func (s *scan) start(ctx context.Context, from *Cursor) error {
	end := Cursor{Generation: s.head, Seq: endOfGeneration}
	switch {
	case from == nil && s.dir == journal.Forward:
		s.place = Cursor{}
	case from == nil || from.Generation > s.head:
		s.place = end
	default:
		s.place = *from
	}
	if from == nil || s.dir == journal.Backward {
		return nil
	}
	next, _, err := s.store.HeadOf(ctx, kernel.StreamOf(s.chain, s.place.Generation))
	s.place.Seq = min(s.place.Seq, max(next-1, 0))
	return err
}

// walk calls visit with each record until visit returns false, the budget is
// used up, or there is nothing more. The place is then behind the last event
// that counts as seen; after a visit that returned false, at its record.
func (s *scan) walk(ctx context.Context, visit func(Record) bool) error {
	for s.budget > 0 && !s.done {
		limit := min(s.block, s.budget)
		s.block = min(2*s.block, blockEvents)
		events, err := s.read(ctx, limit)
		if err != nil {
			return err
		}
		for _, event := range events {
			s.budget--
			s.place.Seq = event.Seq
			switch event.Kind {
			case kernel.KindEnded:
				s.ended = true
			case kernel.KindContinued:
				s.continued = true
			}
			record, ok := RecordOf(event)
			if !ok {
				continue
			}
			record.Cursor = s.place
			if !visit(s.view.show(ctx, record)) {
				return nil
			}
		}
		if len(events) < limit {
			if err := s.hop(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scan) read(ctx context.Context, limit int) ([]journal.Event, error) {
	stream := kernel.StreamOf(s.chain, s.place.Generation)
	if s.dir == journal.Backward {
		return s.store.ReadRange(ctx, stream, s.place.Seq-1, limit, journal.Backward)
	}
	return s.store.ReadRange(ctx, stream, s.place.Seq+1, limit, journal.Forward)
}

// hop goes to the next generation after a read has come to the end of this
// one. A generation whose events were reclaimed reads as empty and is passed
// like any other (C-17.16).
//
// The end of the newest known generation is its end for good only if a newer
// one exists. If that turns out now, the generation is read once more, since
// more may have been written to it after the read.
func (s *scan) hop(ctx context.Context) error {
	s.budget--
	switch {
	case s.dir == journal.Backward && s.place.Generation == 0:
		s.place, s.done = Cursor{}, true
	case s.dir == journal.Backward:
		s.place = Cursor{Generation: s.place.Generation - 1, Seq: endOfGeneration}
	case s.place.Generation < s.head:
		s.place = Cursor{Generation: s.place.Generation + 1}
	case s.probed == s.head+1 && !s.continued:
		s.done = true // whoever comes back to this end will read that it was continued
	default:
		s.probed, s.continued = s.head+1, false
		_, newer, err := s.store.HeadOf(ctx, kernel.StreamOf(s.chain, s.head+1))
		if err != nil {
			return err
		}
		if newer {
			s.head++
		} else {
			s.done = true
		}
	}
	return nil
}
