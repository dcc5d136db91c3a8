package gateway

import (
	"net/url"
	"strconv"

	"github.com/parley-run/parley/conversation"
)

// query is what stands behind the question mark of a request.
type query struct{ values url.Values }

// query reads it. A name that stands there twice could be read in two ways, and
// is refused.
func (x *exchange) query() (query, error) {
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return query{}, BadRequest("query-malformed")
	}
	for _, all := range values {
		if len(all) > 1 {
			return query{}, BadRequest("query-repeated")
		}
	}
	return query{values}, nil
}

// number reads a number and clamps it to 1 … most (C-17.14).
func (q query) number(name string, otherwise, most int) (int, error) {
	text := q.values.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, BadRequest(name + "-invalid")
	}
	return min(max(n, 1), most), nil
}

// cursor reads the cursor, nil where there is none.
func (q query) cursor() (*conversation.Cursor, error) {
	return parseCursor(q.values.Get("cursor"))
}

func parseCursor(text string) (*conversation.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	cursor, err := conversation.ParseCursor(text)
	if err != nil {
		return nil, err
	}
	return &cursor, nil
}
