package gateway

import (
	"net/http"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/journal"
)

// start is POST /v1/conversations. The server mints the id (C-29.1). Others may
// take part in a conversation only where the body says so (C-29.14).
func (g *Gateway) start(x *exchange) error {
	kind, err := decodeOptional[struct {
		Shared bool `json:"shared"`
	}](x.body)
	if err != nil {
		return err
	}
	start := g.client.Start
	if kind.Shared {
		start = g.client.StartShared
	}
	id, err := start(x.r.Context(), x.caller, "")
	if err != nil {
		return err
	}
	return x.answer(http.StatusCreated, struct {
		ID string `json:"id"`
	}{id})
}

// list is GET /v1/conversations (C-29.13).
func (g *Gateway) list(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	limit, err := q.number("limit", conversation.DefaultPage, conversation.MaxPage)
	if err != nil {
		return err
	}
	page, err := g.client.List(x.r.Context(), x.caller, q.values.Get("cursor"), limit)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, page)
}

// status is GET /v1/conversations/{id} (C-29.2).
func (g *Gateway) status(x *exchange) error {
	info, err := g.client.Status(x.r.Context(), x.caller, x.id)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, info)
}

// turn is POST /v1/conversations/{id}/turns (C-29.3).
func (g *Gateway) turn(x *exchange) error {
	turn, err := decode[struct {
		Text      string `json:"text"`
		MessageID string `json:"messageId"`
		EditOf    *int   `json:"editOf"`
	}](x.body)
	if err != nil {
		return err
	}
	message := conversation.Message{Text: turn.Text, ID: turn.MessageID}
	if turn.EditOf != nil {
		if message.EditOf = *turn.EditOf; message.EditOf == 0 { // which to the client says that it is no edit
			return BadRequest(string(conversation.EditOfBad))
		}
	}
	messageID, err := g.client.SendTurn(x.r.Context(), x.caller, x.id, message)
	if err != nil {
		return err
	}
	return x.answer(http.StatusAccepted, struct {
		MessageID string `json:"messageId"`
	}{messageID})
}

// stop is POST /v1/conversations/{id}/stop (C-46.6). To name no turn is no way
// to stop whichever runs: the answer that a person meant may be over, and the
// next one begun.
func (g *Gateway) stop(x *exchange) error {
	order, err := decode[struct {
		Turn int `json:"turn"`
	}](x.body)
	if err != nil {
		return err
	}
	if err := g.client.Stop(x.r.Context(), x.caller, x.id, order.Turn); err != nil {
		return err
	}
	return x.answer(http.StatusAccepted, struct{}{})
}

// close is POST /v1/conversations/{id}/close (C-29.4).
func (g *Gateway) close(x *exchange) error {
	if _, err := decodeOptional[struct{}](x.body); err != nil {
		return err
	}
	if err := g.client.Close(x.r.Context(), x.caller, x.id); err != nil {
		return err
	}
	return x.answer(http.StatusAccepted, struct{}{})
}

// history is GET /v1/conversations/{id}/history (C-29.5).
func (g *Gateway) history(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	options := conversation.HistoryOptions{}
	if options.Limit, err = q.number("limit", conversation.DefaultPage, conversation.MaxPage); err != nil {
		return err
	}
	if options.MaxScan, err = q.number("maxScan", conversation.DefaultMaxScan, conversation.DefaultMaxScan); err != nil {
		return err
	}
	switch q.values.Get("direction") {
	case "", "forward":
	case "backward":
		options.Direction = journal.Backward
	default:
		return BadRequest("direction-invalid")
	}
	if options.Cursor, err = q.cursor(); err != nil {
		return err
	}
	renders, err := q.renders()
	if err != nil {
		return err
	}
	page, err := g.client.History(x.r.Context(), x.caller, x.id, options)
	if err != nil {
		return err
	}
	if !renders {
		return x.answer(http.StatusOK, page)
	}
	entries := make([]rendered, len(page.Entries))
	for i, record := range page.Entries {
		entries[i] = g.render(record)
	}
	return x.answer(http.StatusOK, struct {
		conversation.Page
		Entries []rendered `json:"entries"`
	}{page, entries})
}
