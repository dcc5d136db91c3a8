package conversation

import (
	"context"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

// Limits of a history page (C-17.2, C-17.14).
const (
	DefaultPage    = 50
	MaxPage        = 200
	DefaultMaxScan = 2000
)

// pageBytes is how much text fills a page before its limit does, so that a page
// of long replies stays of a size that can be sent.
const pageBytes = 1 << 20

// HistoryOptions says which page of a history to read.
type HistoryOptions struct {
	Limit     int               // entries: DefaultPage if 0, at most MaxPage
	Cursor    *Cursor           // entries strictly after it, or before it; nil: from the end that Direction starts at
	Direction journal.Direction // Forward, or Backward for the newest first (C-17.4)
	MaxScan   int               // events to look at: DefaultMaxScan if 0
}

// Page is a piece of a history. It may be short, even empty, before it is Done
// (C-17.3): go on from Next then.
type Page struct {
	Entries []Record `json:"entries"`
	Next    Cursor   `json:"nextCursor"`
	Done    bool     `json:"done"` // there is nothing more in this direction; forward, for now
}

// History reads a page of the transcript, across generations (C-17). A closed
// conversation can be read by those who could read it before (C-26.3).
//
// Errors: [ErrNotFound].
func (c *Client) History(ctx context.Context, caller *identity.Principal, id string, options HistoryOptions) (Page, error) {
	info, a, err := c.query(ctx, caller, id)
	if err != nil {
		return Page{}, err
	}
	s := c.scan(info, a, options.Direction, orDefault(options.MaxScan, DefaultMaxScan))
	if err := s.start(ctx, options.Cursor); err != nil {
		return Page{}, err
	}
	return s.page(ctx, min(orDefault(options.Limit, DefaultPage), MaxPage), pageBytes)
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// scan makes a scan of a conversation that was queried, as the caller sees it.
func (c *Client) scan(info kernel.Info, a access, dir journal.Direction, budget int) *scan {
	return &scan{
		store: c.runtime.Store(), chain: info.ID, head: info.Generation,
		dir: dir, budget: budget, block: blockEvents, view: a.view(),
	}
}

// page walks until it has limit records, or so much text.
func (s *scan) page(ctx context.Context, limit, most int) (Page, error) {
	var page Page
	size := 0
	err := s.walk(ctx, func(r Record) bool {
		page.Entries = append(page.Entries, r)
		size += len(r.Text)
		return len(page.Entries) < limit && size < most
	})
	if err != nil {
		return Page{}, err
	}
	page.Next, page.Done = s.place, s.done
	return page, nil
}

// query judges the caller, lets the runtime judge too, and finds the head
// (C-22.4, C-22.5).
func (c *Client) query(ctx context.Context, caller *identity.Principal, id string) (kernel.Info, access, error) {
	a, err := c.authorize(ctx, caller, id)
	if err != nil {
		return kernel.Info{}, access{}, err
	}
	info, err := c.runtime.Query(ctx, a.by(), id)
	return info, a, uniform(err)
}
