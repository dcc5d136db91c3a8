package screen

import (
	"context"
	"errors"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-run/parley/client"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
)

// pageSize is how many entries are read at a time.
const pageSize = 50

// world carries wishes out, each on a goroutine of its own, and tells what came of
// them. It is used by one goroutine.
type world struct {
	ctx     context.Context // of the whole chat: a state machine's wishes have none of their own
	server  *client.Client
	tell    func(tea.Msg)
	crash   func() // gives the terminal back
	working sync.WaitGroup
	forget  context.CancelFunc // ends what the present visit does; nil before the first
	visit   context.Context
}

// watch tells when the server goes away and when it comes back.
func (w *world) watch(changes <-chan bool) {
	w.do(func() {
		for {
			select {
			case is := <-changes:
				w.tell(away(is))
			case <-w.ctx.Done():
				return
			}
		}
	})
}

// do works on something. A panic gives the terminal back before it ends the process.
func (w *world) do(work func()) {
	w.working.Go(func() {
		defer func() {
			if reason := recover(); reason != nil {
				w.crash()
				panic(reason)
			}
		}()
		work()
	})
}

// carryOut begins to carry a wish out.
func (w *world) carryOut(wanted wish) {
	switch wanted := wanted.(type) {
	case open:
		if w.forget != nil {
			w.forget()
		}
		w.visit, w.forget = context.WithCancel(w.ctx)
		visit := w.visit
		w.do(func() { w.tell(w.open(visit, wanted)) })
	case older:
		visit := w.visit
		w.do(func() {
			page, err := w.page(visit, wanted.id, &wanted.before)
			w.tell(read{visit: wanted.visit, entries: page.Entries, before: page.Next, done: page.Done, err: err})
		})
	case follow:
		visit := w.visit
		w.do(func() { w.follow(visit, wanted) })
	case list:
		w.do(func() {
			news := listed{after: wanted.after}
			news.err = persist(w.ctx, func(ctx context.Context) (err error) {
				news.page, err = w.server.List(ctx, wanted.after, 0)
				return err
			})
			w.tell(news)
		})
	case start:
		w.do(func() {
			begin := w.server.Start
			if wanted.shared {
				begin = w.server.StartShared
			}
			id, err := begin(w.ctx)
			w.tell(started{id: id, err: err})
		})
	case people:
		w.do(func() {
			news := met{visit: wanted.visit}
			news.people, news.err = w.server.Participants(w.ctx, wanted.id)
			w.tell(news)
		})
	case change:
		w.do(func() {
			ask := w.server.AddParticipant
			if wanted.remove {
				ask = w.server.RemoveParticipant
			}
			w.tell(changed{visit: wanted.visit, who: wanted.who, remove: wanted.remove, err: ask(w.ctx, wanted.id, wanted.who)})
		})
	case line:
		w.do(func() {
			news := lined{visit: wanted.visit, heard: wanted.heard}
			news.waiting, news.err = w.server.Waiting(w.ctx, wanted.id)
			w.tell(news)
		})
	case post:
		w.do(func() {
			_, err := w.server.Send(w.ctx, wanted.id, wanted.message)
			w.tell(posted{err: err})
		})
	case halt:
		w.do(func() {
			w.tell(halted{err: persist(w.ctx, func(ctx context.Context) error {
				return w.server.Stop(ctx, wanted.id, wanted.turn)
			})})
		})
	}
}

// persist asks until the server has an answer, however long it is away: who is told of
// none would have to ask again by hand, and does not know when.
func persist(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := client.Persist(ctx, ask)
		_, answered := errors.AsType[*client.Error](err)
		if err == nil || answered || ctx.Err() != nil || !client.Passes(err) {
			return err
		}
	}
}

// open reads what is shown of a conversation first.
func (w *world) open(ctx context.Context, wanted open) opened {
	news := opened{visit: wanted.visit}
	news.err = persist(ctx, func(ctx context.Context) (err error) {
		news.info, err = w.server.Status(ctx, wanted.id)
		return err
	})
	if news.err == nil && news.info.Shared {
		news.persons, news.err = w.persons(ctx, wanted.id)
	}
	if news.err == nil {
		var page conversation.Page
		page, news.err = w.page(ctx, wanted.id, nil)
		news.entries, news.before, news.done = page.Entries, page.Next, page.Done
	}
	return news
}

// persons reads who can write in a shared conversation, the person among them.
func (w *world) persons(ctx context.Context, id string) (p persons, err error) {
	p.shared = true
	err = persist(ctx, func(ctx context.Context) error {
		me, err := w.server.Who(ctx)
		if err != nil {
			return err
		}
		people, err := w.server.Participants(ctx, id)
		p.me, p.manages = me, people.Manages
		return err
	})
	return p, err
}

// page reads entries backward until there are some, or no more: a page may be empty
// before it is the last one (C-17.3).
func (w *world) page(ctx context.Context, id string, before *conversation.Cursor) (page conversation.Page, err error) {
	options := conversation.HistoryOptions{Limit: pageSize, Cursor: before, Direction: journal.Backward}
	for {
		err = persist(ctx, func(ctx context.Context) (err error) {
			page, err = w.server.History(ctx, id, options)
			return err
		})
		if err != nil || page.Done || len(page.Entries) > 0 {
			return page, err
		}
		next := page.Next
		options.Cursor = &next
	}
}

// follow tells what happens in a conversation, until it is left.
func (w *world) follow(ctx context.Context, wanted follow) {
	for event, err := range w.server.Follow(ctx, wanted.id, wanted.from) {
		if ctx.Err() != nil {
			return
		}
		w.tell(happened{visit: wanted.visit, event: event, err: err})
	}
}
