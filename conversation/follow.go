package conversation

import (
	"context"
	"iter"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// PollInterval is how late an entry comes whose notification was lost (C-18.3).
const PollInterval = time.Second

// tailBytes is how much text fills a page of a Tail. Half of what a history may
// have, so that with the last record, which may be a quarter of it, a reader that
// stalls in the middle of a page holds less than 1 MiB (C-32.10).
const tailBytes = pageBytes / 2

// Follow yields the entries of a conversation in order from after a cursor on,
// nil for its beginning, and waits for more, across rotations (C-18). The
// sequence ends without an error when the conversation is over and all of it
// was delivered; any error, that of a done ctx included, ends it too. To
// resume, follow from the cursor of the last entry.
//
// The caller is judged once, at the beginning, and in a shared conversation again
// for each entry (C-37.10).
//
// Errors: [ErrNotFound].
func (c *Client) Follow(ctx context.Context, caller *identity.Principal, id string, from *Cursor) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		tail, err := c.Tail(ctx, caller, id, from)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer tail.Close()
		for {
			news, err := tail.Read(ctx)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, record := range news.Entries {
				if err := tail.Permit(ctx); err != nil {
					yield(Record{}, err)
					return
				}
				if !yield(record, nil) {
					return
				}
			}
			if news.Over {
				return
			}
			if err := tail.wait(ctx, news); err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}

// Tail follows a conversation for a reader that has other things to wait for
// too, as a stream has: read all there is with [Tail.Read], then wait until
// [Tail.Hint] receives or [PollInterval] has passed, and read again. It belongs
// to one goroutine, and starts none. [Tail.Close] frees what it holds.
type Tail struct {
	scan    *scan
	access  access
	over    bool // the conversation has ended; what is left is to read
	release context.CancelFunc
	hint    <-chan struct{}
	hinted  int // the generation that was subscribed to last; -1 before the first
}

// News is what a read of a Tail brings.
type News struct {
	Entries []Record
	More    bool // read again at once
	Over    bool // the conversation has ended, and everything is delivered
}

// Tail begins to follow a conversation from after a cursor on, nil for its
// beginning. The caller is judged once, here.
//
// Errors: [ErrNotFound].
func (c *Client) Tail(ctx context.Context, caller *identity.Principal, id string, from *Cursor) (*Tail, error) {
	info, a, err := c.query(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	s := c.scan(info, a, journal.Forward, 0)
	if err := s.start(ctx, from); err != nil {
		return nil, err
	}
	if from != nil && s.place != *from { // at a tip, which may be an end that was written since
		if info, a, err = c.query(ctx, caller, id); err != nil {
			return nil, err
		}
	}
	// The query came before the first read: if it saw the end, a read that finds
	// nothing more has delivered all.
	return &Tail{scan: s, access: a, over: info.State.Over(), release: func() {}, hinted: -1}, nil
}

// Close frees the subscription behind [Tail.Hint].
func (t *Tail) Close() { t.release() }

// Read returns what there is after the last read, one page of it at most. ctx
// must live as long as the Tail: the subscription ends with it.
func (t *Tail) Read(ctx context.Context) (News, error) {
	t.dropClosed()
	t.scan.budget, t.scan.done = DefaultMaxScan, false
	t.scan.view = t.access.view()
	page, err := t.scan.page(ctx, DefaultPage, tailBytes)
	if err != nil {
		return News{}, err
	}
	t.over = t.over || t.scan.ended
	news := News{Entries: page.Entries, More: !page.Done, Over: page.Done && t.over}
	if page.Done && !t.over && t.hinted != t.scan.place.Generation {
		t.subscribe(ctx)
		news.More = true // for what was written before the subscription began
	}
	return news, nil
}

// Permit reports whether the caller still takes part in a shared conversation; it
// is to be asked right before each entry is handed on (C-37.10).
//
// Errors: [ErrNotFound].
func (t *Tail) Permit(ctx context.Context) error {
	a := t.access
	if !a.shared || a.owns(a.caller) {
		return nil
	}
	roster, err := a.client.roster(ctx, t.scan.chain)
	if err == nil && !rosterHas(roster, a.caller.Identity) {
		return ErrNotFound
	}
	return err
}

// Hint receives when there may be more to read. It may change with each Read,
// and is nil while only the poll interval is left to go by.
func (t *Tail) Hint() <-chan struct{} { return t.hint }

// subscribe moves the subscription to the generation that is read now. It is
// nothing but a hint (C-18.2): where it fails, the poll goes on alone.
func (t *Tail) subscribe(ctx context.Context) {
	t.release()
	ctx, t.release = context.WithCancel(ctx)
	t.hinted = t.scan.place.Generation
	t.hint, _ = t.scan.store.Subscribe(ctx, kernel.StreamOf(t.scan.chain, t.hinted))
}

// dropClosed lets go of a subscription that the store has ended, which would
// hint for ever.
func (t *Tail) dropClosed() {
	select {
	case _, open := <-t.hint:
		if !open {
			t.hint = nil
		}
	default:
	}
}

// wait returns when it is time to read again.
func (t *Tail) wait(ctx context.Context, last News) error {
	if last.More {
		return nil
	}
	poll := time.NewTimer(PollInterval)
	defer poll.Stop()
	select {
	case <-t.hint:
	case <-poll.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
