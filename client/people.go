package client

import (
	"context"
	"net/http"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// Who says as whom the server knows the holder of the token. It asks /session, which
// is the server's and not the gateway's.
//
// Errors: [ErrUnauthorized].
func (c *Client) Who(ctx context.Context) (identity.Identity, error) {
	var answer struct {
		Identity identity.Identity `json:"identity"`
	}
	r, err := c.requestTo(ctx, http.MethodGet, c.base+"/session", nil, nil)
	if err == nil {
		err = c.do(r, &answer)
	}
	return answer.Identity, err
}

// Participants lists who takes part in a conversation (C-33.12).
//
// Errors: conversation.ErrNotFound.
func (c *Client) Participants(ctx context.Context, id string) (people conversation.Participants, err error) {
	err = c.get(ctx, of(id)+"/participants", nil, &people)
	return people, err
}

// AddParticipant lets somebody take part in a shared conversation, from their next
// request on. Adding one who does changes nothing.
//
// Errors: conversation.ErrNotFound, ErrForbidden, ErrInvalidParticipant,
// ErrTooManyParticipants.
func (c *Client) AddParticipant(ctx context.Context, id string, who identity.Identity) error {
	return c.change(ctx, http.MethodPost, of(id)+"/participants", who, nil)
}

// RemoveParticipant ends somebody's part in a shared conversation: their next
// request is refused, and their open streams bring nothing more. Removing one who
// takes no part changes nothing.
//
// Errors: conversation.ErrNotFound, ErrForbidden, ErrInvalidParticipant,
// ErrOwnerStays.
func (c *Client) RemoveParticipant(ctx context.Context, id string, who identity.Identity) error {
	return c.change(ctx, http.MethodDelete, of(id)+"/participants", who, nil)
}

// Waiting lists the messages that wait in a conversation, in the order in which
// they will be taken up. They have a text only where they are the caller's.
//
// Errors: conversation.ErrNotFound.
func (c *Client) Waiting(ctx context.Context, id string) ([]conversation.Waiting, error) {
	var answer struct {
		Waiting []conversation.Waiting `json:"waiting"`
	}
	err := c.get(ctx, of(id)+"/waiting", nil, &answer)
	return answer.Waiting, err
}
