package client

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/journal"
	"github.com/parley-run/parley/kernel"
)

const (
	// maxAnswerBytes bounds the JSON of an answer.
	maxAnswerBytes = 16 << 20
	// answerWithin is how long a whole answer may take.
	answerWithin = 30 * time.Second
)

// Client is one server as seen by the holder of one token. Its methods may be
// called from any number of goroutines.
type Client struct {
	base  string // without a slash at the end
	token identity.Secret
	calls http.Client
	live  http.Client // for streams: it has no timeout
}

// New makes a client of the server at an http or https URL, such as
// "http://127.0.0.1:8080". The token is sent as a bearer token; without one the
// caller is nobody. A nil httpClient is http.DefaultClient; its Timeout does not
// bound streams. Redirects are not followed: a token belongs to one server. Who has
// tokens that expire gives none here, and an httpClient whose Transport adds them,
// as that of golang.org/x/oauth2 does; each stream that is opened asks it anew.
func New(baseURL, token string, httpClient *http.Client) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of a server is a URL like http://127.0.0.1:8080")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address of a server has neither a user, nor a query, nor a fragment")
	}
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	c := &Client{base: strings.TrimRight(u.String(), "/"), token: identity.NewSecret(token), calls: *httpClient}
	c.calls.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.live = c.calls
	c.live.Timeout = 0
	return c, nil
}

// Start starts a conversation and returns its id.
func (c *Client) Start(ctx context.Context) (id string, err error) {
	var answer struct {
		ID string `json:"id"`
	}
	err = c.post(ctx, "conversations", struct{}{}, &answer)
	return answer.ID, err
}

// StartShared starts a conversation in which others may take part, see
// [Client.AddParticipant] (C-33.1), and returns its id.
//
// Errors: conversation.ErrForbidden where the server does not let the caller.
func (c *Client) StartShared(ctx context.Context) (id string, err error) {
	var answer struct {
		ID string `json:"id"`
	}
	kind := struct {
		Shared bool `json:"shared"`
	}{true}
	err = c.post(ctx, "conversations", kind, &answer)
	return answer.ID, err
}

// Send says something and returns the message's id: the message's own, or a
// random one if it has none. It tries again by itself, as [Persist] does: under its
// id a message is delivered once, however often it is sent (T26, T27). The id is
// returned with an error too, since the message may have arrived. Where the server
// lets messages cut in, it ends the turn that runs (C-14.21).
//
// Errors: conversation.ErrNotFound, ErrClosed, ErrInvalidTurn, ErrQueueFull,
// ErrDelegationUnsupported.
func (c *Client) Send(ctx context.Context, id string, m conversation.Message) (messageID string, err error) {
	if m.ID == "" {
		m.ID = kernel.NewID()
	}
	turn := struct {
		Text      string `json:"text"`
		MessageID string `json:"messageId"`
		EditOf    int    `json:"editOf,omitzero"`
	}{m.Text, m.ID, m.EditOf}
	return m.ID, Persist(ctx, func(ctx context.Context) error {
		return c.post(ctx, of(id)+"/turns", turn, new(struct{}))
	})
}

// Stop ends a turn without saying anything, if it runs (C-46): its reply is
// recorded as interrupted, with what there was of it. To stop one that is over,
// or not begun, does nothing and is no error.
//
// Errors: conversation.ErrNotFound, ErrInvalidTurn, ErrQueueFull.
func (c *Client) Stop(ctx context.Context, id string, turn int) error {
	body := struct {
		Turn int `json:"turn"`
	}{turn}
	return c.post(ctx, of(id)+"/stop", body, new(struct{}))
}

// Close asks a conversation to end. Closing one that is over is no error.
//
// Errors: conversation.ErrNotFound, ErrQueueFull, ErrForbidden for who takes part
// in a shared one and does not manage it.
func (c *Client) Close(ctx context.Context, id string) error {
	return c.post(ctx, of(id)+"/close", struct{}{}, new(struct{}))
}

// Status reports how a conversation stands.
//
// Errors: conversation.ErrNotFound.
func (c *Client) Status(ctx context.Context, id string) (info conversation.Info, err error) {
	err = c.get(ctx, of(id), nil, &info)
	return info, err
}

// History reads a page of the transcript.
//
// Errors: conversation.ErrNotFound.
func (c *Client) History(ctx context.Context, id string, o conversation.HistoryOptions) (page conversation.Page, err error) {
	query := url.Values{}
	if o.Limit > 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.MaxScan > 0 {
		query.Set("maxScan", strconv.Itoa(o.MaxScan))
	}
	if o.Cursor != nil {
		query.Set("cursor", o.Cursor.String())
	}
	if o.Direction == journal.Backward {
		query.Set("direction", "backward")
	}
	err = c.get(ctx, of(id)+"/history", query, &page)
	return page, err
}

// List reads a page of the caller's conversations, newest activity first, from
// after the cursor of an earlier page on, "" for the first.
//
// Errors: conversation.ErrInvalidCursor.
func (c *Client) List(ctx context.Context, cursor string, limit int) (page conversation.Listing, err error) {
	query := url.Values{}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	err = c.get(ctx, "conversations", query, &page)
	return page, err
}

// of is the path of a conversation.
func of(id string) string { return "conversations/" + url.PathEscape(id) }

func (c *Client) post(ctx context.Context, path string, body, answer any) error {
	return c.change(ctx, http.MethodPost, path, body, answer)
}

// change sends a request with a body. Where the answer has none, answer is nil.
func (c *Client) change(ctx context.Context, method, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	r, err := c.request(ctx, method, path, nil, bytes.NewReader(data))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	return c.do(r, answer)
}

func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	r, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	return c.do(r, answer)
}

// request makes a request to a path under /v1.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, error) {
	return c.requestTo(ctx, method, c.base+"/v1/"+path, query, body)
}

// requestTo makes a request to an address of the server.
func (c *Client) requestTo(ctx context.Context, method, target string, query url.Values, body io.Reader) (*http.Request, error) {
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	if !c.token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	return r, nil
}

// do sends a request and reads its answer.
func (c *Client) do(r *http.Request, answer any) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), answerWithin, ErrSilent)
	defer cancel()
	data, err := c.answer(r.WithContext(ctx))
	if err != nil && context.Cause(ctx) == ErrSilent {
		return ErrSilent
	}
	if err != nil {
		return err
	}
	if answer == nil && len(data) == 0 {
		return nil
	}
	if answer == nil || len(data) > maxAnswerBytes || json.Unmarshal(data, answer) != nil {
		return ErrProtocol
	}
	return nil
}

// answer sends a request and returns the body of its answer, up to a byte more
// than an answer may have.
func (c *Client) answer(r *http.Request) ([]byte, error) {
	response, err := c.calls.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, errorOf(response)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	return data, nil
}
