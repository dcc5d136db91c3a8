package gateway

import "github.com/parley-run/parley/conversation"

// rendered is an entry for a client that shows HTML: whole answers of the model
// have it beside their text (C-30.13). What a person said has none, ever, nor has
// an entry that the reader is not cleared for, which has no text (C-37.3).
type rendered struct {
	conversation.Record
	HTML string `json:"html,omitzero"`
}

// render makes it of an entry.
func (g *Gateway) render(record conversation.Record) rendered {
	r := rendered{Record: record}
	if g.config.HTML != nil && record.Role == conversation.RoleAssistant && record.Status == conversation.StatusComplete {
		r.HTML = g.config.HTML(record.Text)
	}
	return r
}

// renders reads whether a client asks for HTML.
func (q query) renders() (bool, error) {
	switch q.values.Get("render") {
	case "":
		return false, nil
	case "html":
		return true, nil
	}
	return false, BadRequest("render-invalid")
}
