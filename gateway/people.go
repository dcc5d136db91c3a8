package gateway

import (
	"net/http"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
)

// participants is GET /v1/conversations/{id}/participants (C-29.14).
func (g *Gateway) participants(x *exchange) error {
	people, err := g.client.Participants(x.r.Context(), x.caller, x.id)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, people)
}

// addParticipant is POST /v1/conversations/{id}/participants (C-29.14).
func (g *Gateway) addParticipant(x *exchange) error {
	who, err := decodePerson(x.body)
	if err != nil {
		return err
	}
	if err := g.client.AddParticipant(x.r.Context(), x.caller, x.id, who); err != nil {
		return err
	}
	return x.nothing()
}

// removeParticipant is DELETE /v1/conversations/{id}/participants (C-29.14). It
// has a body, since an identity has three parts, and an address would stand in the
// logs of whatever is between.
func (g *Gateway) removeParticipant(x *exchange) error {
	who, err := decodePerson(x.body)
	if err != nil {
		return err
	}
	if err := g.client.RemoveParticipant(x.r.Context(), x.caller, x.id, who); err != nil {
		return err
	}
	return x.nothing()
}

// decodePerson reads a body as an identity. One that nobody can have is refused
// also where it is to be removed: who has written {"name": "bob"} would think that
// bob is gone.
func decodePerson(body []byte) (identity.Identity, error) {
	who, err := decode[identity.Identity](body)
	if err == nil && who.Validate() != nil {
		err = conversation.ErrInvalidParticipant
	}
	return who, err
}

// waiting is GET /v1/conversations/{id}/waiting: whose messages wait, in the order
// in which they will be taken, with the texts of the caller's own.
func (g *Gateway) waiting(x *exchange) error {
	waiting, err := g.client.Waiting(x.r.Context(), x.caller, x.id)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, struct {
		Waiting []conversation.Waiting `json:"waiting"`
	}{waiting})
}
