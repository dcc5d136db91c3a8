package conversation

import (
	"context"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

const (
	titleChars = 80  // of the first accepted text (C-29.13)
	titleScan  = 512 // events at the beginning of a conversation that are searched for it

	// maxListCursor bounds the cursor of a list before it is decoded.
	maxListCursor = 1 << 10
)

// Listing is a page of the caller's conversations, newest activity first.
type Listing struct {
	Conversations []Listed `json:"conversations"`
	Next          string   `json:"nextCursor"`
	Done          bool     `json:"done"`
}

// Listed is one conversation in a list. Title and turns are read from its log
// and kept nowhere else (C-1.5).
type Listed struct {
	Info
	Title   string    `json:"title"`   // "" before the first accepted text
	Updated time.Time `json:"updated"` // when it started, or was last written to
}

// List lists the conversations that the caller owns or takes part in, from after an opaque
// cursor of an earlier page on ("" for the first), at most limit of them:
// DefaultPage if 0, MaxPage at most (C-29.13). Nobody has a list.
//
// Errors: [ErrInvalidCursor], [ErrNotFound] for a caller who can own nothing.
func (c *Client) List(ctx context.Context, caller *identity.Principal, cursor string, limit int) (Listing, error) {
	if !c.able(caller) {
		return Listing{}, ErrNotFound
	}
	after, err := listPosition(cursor)
	if err != nil {
		return Listing{}, err
	}
	if caller == nil {
		return Listing{Done: true}, nil
	}
	limit = min(orDefault(limit, DefaultPage), MaxPage)
	rows, err := c.runtime.Owned(ctx, caller.Identity, c.flow, after, limit)
	if err != nil {
		return Listing{}, err
	}
	page := Listing{Next: cursor, Done: len(rows) < limit}
	for _, row := range rows {
		page.Next = base64.RawURLEncoding.EncodeToString([]byte(row.Position))
		listed, err := c.listed(ctx, caller, row)
		if err == ErrNotFound {
			continue // an execution of the flow that is no conversation, started past the client
		}
		if err != nil {
			return Listing{}, err
		}
		page.Conversations = append(page.Conversations, listed)
	}
	return page, nil
}

// listed fills in what the directory does not hold.
func (c *Client) listed(ctx context.Context, caller *identity.Principal, row kernel.Listed) (Listed, error) {
	info, a, err := c.query(ctx, caller, row.ID)
	if err != nil {
		return Listed{}, err
	}
	turns, err := c.turns(ctx, info)
	if err != nil {
		return Listed{}, err
	}
	title, err := c.title(ctx, info, a)
	return Listed{
		Info:  Info{ID: row.ID, State: stateOf(info.State), Turns: turns, Shared: a.shared},
		Title: title, Updated: row.Activity,
	}, err
}

// title is the beginning of the first accepted text that the caller may see.
func (c *Client) title(ctx context.Context, info kernel.Info, a access) (string, error) {
	s := c.scan(info, a, journal.Forward, titleScan)
	s.block = 16
	title := ""
	err := s.walk(ctx, func(r Record) bool {
		if r.Role == RoleUser && r.Status == StatusAccepted {
			title = firstChars(r.Text, titleChars)
		}
		return title == ""
	})
	return title, err
}

// firstChars cuts a text after n characters.
func firstChars(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// listPosition opens the cursor of a list: a position in the directory.
// Whatever position it is, it shows nothing of the lists of others, since each
// caller's list is a space of its own.
func listPosition(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	if len(cursor) > maxListCursor {
		return "", ErrInvalidCursor
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	position := string(raw)
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != cursor ||
		!utf8.ValidString(position) || strings.Count(position, "\x00") != 1 {
		return "", ErrInvalidCursor
	}
	return position, nil
}
