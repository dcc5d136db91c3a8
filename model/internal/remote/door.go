package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
)

// Bounds of what is read of an answer.
const (
	maxReplyBytes = 64 << 20 // a reply of 100,000 tokens, each in an event of its own
	maxLineBytes  = 4 << 20  // an event whose one delta is a whole call
	maxErrorBytes = 64 << 10
)

// Door is the HTTP client that is given to fantasy. What passes through it is
// ours: the vendors' clients read keys, addresses and headers from the
// environment, and none of it gets out; the key is put in here, so that no
// error of theirs can hold it.
type Door struct {
	client http.Client
	key    Key
}

// Key is an API key, and how it stands in a request.
type Key struct {
	Header string // such as Authorization
	Prefix string // of the header's value, such as "Bearer "
	Secret identity.Secret
}

// NewDoor returns a door over client, or over a new one where it is nil. A key
// without secret is left out of the requests.
func NewDoor(client *http.Client, key Key) *Door {
	d := &Door{key: key}
	if client != nil {
		d.client = *client
	}
	// What users wrote goes to the address in the configuration, and nowhere else.
	d.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return d
}

// Do sends a request. Its errors are those of package model.
func (d *Door) Do(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header = http.Header{}
	for _, name := range []string{"Accept", "Anthropic-Version", "Content-Type"} {
		if values := req.Header.Values(name); len(values) > 0 {
			out.Header[name] = values
		}
	}
	out.Header.Set("User-Agent", "parley")
	if !d.key.Secret.IsZero() {
		out.Header.Set(d.key.Header, d.key.Prefix+d.key.Secret.Reveal())
	}
	res, err := d.client.Do(out)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err // without the address
		}
		return nil, fmt.Errorf("%w: %w", model.ErrUnavailable, err)
	}
	res.Request = req // without the key
	if res.StatusCode >= http.StatusBadRequest {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxErrorBytes), res.Body}
		return res, nil
	}
	if err := refuse(res); err != nil {
		res.Body.Close()
		return nil, err
	}
	res.Body = newMender(&stream{ReadCloser: res.Body})
	return res, nil
}

// refuse reports an answer that is neither an error nor a stream.
func refuse(res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: it answers with status %d", model.ErrMalformed, res.StatusCode)
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "application/json", "text/html":
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxVendorText))
		return fmt.Errorf("%w: it answers %s and no stream: %s", model.ErrMalformed, kind, text)
	}
	return nil
}

// stream is the body of an answer, bounded, with errors of ours.
type stream struct {
	io.ReadCloser
	total, line int // bytes read, and those of them behind the last line feed
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.total += n
	s.line += n
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		s.line = n - i - 1
	}
	switch {
	case s.total > maxReplyBytes:
		return 0, fmt.Errorf("%w: the reply is larger than %d bytes", model.ErrMalformed, maxReplyBytes)
	case s.line > maxLineBytes:
		return 0, fmt.Errorf("%w: a line of the reply is larger than %d bytes", model.ErrMalformed, maxLineBytes)
	case err != nil && err != io.EOF:
		return n, fmt.Errorf("%w: %w", model.ErrCut, err)
	}
	return n, err
}

// hide takes the key out of a text.
func (d *Door) hide(text string) string {
	if d.key.Secret.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, d.key.Secret.Reveal(), d.key.Secret.String())
}

// Check holds what a configuration names against what can be used: the model,
// the base URL of the service, and the key.
func Check(name, base string, key identity.Secret) error {
	if strings.TrimSpace(name) == "" {
		return errors.New("the model has no name")
	}
	at, err := url.Parse(base)
	switch {
	case err != nil, at.Host == "", at.Scheme != "http" && at.Scheme != "https":
		return errors.New("the base URL is not an http or https address")
	case at.User != nil, at.RawQuery != "", at.Fragment != "":
		return errors.New("the base URL holds more than host and path; the key has a place of its own")
	}
	for _, c := range []byte(key.Reveal()) {
		if c <= ' ' || c >= 0x7f {
			return errors.New("the API key holds a character that no key has")
		}
	}
	return nil
}
