package contracttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pb33f/jsonschema/v6"
)

// Exchange is a request and its answer.
type Exchange struct {
	Request *http.Request // its Body is not looked at
	Asked   []byte        // the body of the request

	Status   int
	Header   http.Header
	Answered []byte // the body of the answer
}

// protocol are headers of HTTP itself, which no document lists.
var protocol = []string{"Connection", "Content-Length", "Content-Type", "Date", "Transfer-Encoding"}

// Check holds an exchange against the document, and returns everything that is
// wrong with it. A request has to fit only where it was granted.
func (c *Contract) Check(e Exchange) error {
	answer := c.answer(e)
	name := fmt.Sprintf("%s %s: %d", e.Request.Method, e.Request.URL.Path, e.Status)
	if !answer.ok() {
		return fmt.Errorf("%s is not in the document", name)
	}
	errs := c.headers(answer, e.Header)
	errs = append(errs, c.body(answer, e))
	if e.Status < 300 && e.Request.Method != http.MethodOptions {
		errs = append(errs, c.request(e))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// answer finds what the document says of the answer.
func (c *Contract) answer(e Exchange) place {
	method := e.Request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path, ok := c.match(e.Request.URL.Path)
	operation := c.at("paths", path, strings.ToLower(method))
	switch {
	case ok && operation.ok() && method == strings.ToUpper(method):
		c.see(method + " " + path + " " + strconv.Itoa(e.Status))
		return c.under(operation, "responses", strconv.Itoa(e.Status))
	case e.Status == http.StatusForbidden:
		return c.elsewhere("Forbidden")
	case !ok && e.Status == http.StatusNotFound:
		return c.elsewhere("NotFound")
	case ok && method == http.MethodOptions && e.Status == http.StatusNoContent:
		return c.elsewhere("Preflight")
	case ok && e.Status == http.StatusMethodNotAllowed:
		return c.elsewhere("MethodNotAllowed")
	}
	return place{}
}

// elsewhere is an answer that is no operation's.
func (c *Contract) elsewhere(name string) place {
	c.see("elsewhere " + name)
	return c.at("components", "responses", name)
}

// match finds the path of the document that a request's path is.
func (c *Contract) match(path string) (template string, ok bool) {
	given := strings.Split(path, "/")
	for _, template := range c.at("paths").names() {
		if slices.EqualFunc(strings.Split(template, "/"), given, func(name, part string) bool {
			return name == part || strings.HasPrefix(name, "{") && part != ""
		}) {
			return template, true
		}
	}
	return "", false
}

// headers holds the headers of an answer against those that it may and must
// have.
func (c *Contract) headers(answer place, got http.Header) (errs []error) {
	listed := c.under(answer, "headers")
	for name, values := range got {
		header := c.under(listed, name)
		if !header.ok() {
			header = c.under(listed, strings.Replace(name, "Www", "WWW", 1))
		}
		switch {
		case slices.Contains(protocol, name):
		case !header.ok():
			errs = append(errs, fmt.Errorf("the header %s is not in the document", name))
		default:
			c.see("header " + header.pointer)
			value := strings.Join(values, ", ") // one that is there twice is a list
			if err := c.valid(c.under(header, "schema"), value); err != nil {
				errs = append(errs, fmt.Errorf("the header %s is %q: %w", name, value, err))
			}
		}
	}
	for _, name := range listed.names() {
		if c.under(listed, name, "required").node == true && got.Get(name) == "" {
			errs = append(errs, fmt.Errorf("the header %s is missing", name))
		}
	}
	return errs
}

// body holds the body of an answer against its schema.
func (c *Contract) body(answer place, e Exchange) error {
	content := c.under(answer, "content")
	contentType := e.Header.Get("Content-Type")
	if !content.ok() {
		if contentType != "" || len(e.Answered) > 0 {
			return fmt.Errorf("a body of type %q, where the document has none", contentType)
		}
		return nil
	}
	media := c.under(content, contentType)
	if !media.ok() {
		return fmt.Errorf("the content type %q is not in the document", contentType)
	}
	if e.Request.Method == http.MethodHead {
		return nil // it has a body in a recorder, and none on a wire
	}
	if events := c.under(media, "x-events"); events.ok() {
		return c.events(events, e.Answered)
	}
	var value any = string(e.Answered)
	if mediaType, _, _ := mime.ParseMediaType(contentType); mediaType == "application/json" {
		var err error
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(e.Answered)); err != nil {
			return fmt.Errorf("the body is no JSON: %w", err)
		}
	}
	return c.fits(c.under(media, "schema"), value)
}

// fits holds a value against a schema, and remembers what was seen of it.
func (c *Contract) fits(schema place, value any) error {
	if err := c.valid(schema, value); err != nil {
		return err
	}
	c.mark(schema, value)
	return nil
}

// request holds a request that was granted against the document. A parameter
// that is empty is none, and a cursor beside the header that stands over it is
// not looked at (C-30.4).
func (c *Contract) request(e Exchange) error {
	r := e.Request.Clone(e.Request.Context())
	query := r.URL.Query()
	for name := range query {
		if query.Get(name) == "" {
			query.Del(name)
		}
	}
	if r.Header.Get("Last-Event-ID") == "" {
		r.Header.Del("Last-Event-ID")
	} else {
		query.Del("cursor")
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		r.Header.Set("Content-Type", mediaType)
	}
	r.URL = &url.URL{Scheme: "http", Host: "127.0.0.1:7275", Path: r.URL.Path, RawQuery: query.Encode()}
	r.Body, r.ContentLength = http.NoBody, 0
	if len(e.Asked) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(e.Asked)), int64(len(e.Asked))
	}
	if ok, errs := c.requests.ValidateHttpRequestSync(r); !ok {
		return fmt.Errorf("a request that does not fit is granted: %v", errs)
	}
	path, _ := c.match(r.URL.Path)
	parameters := c.at("paths", path, strings.ToLower(r.Method), "parameters")
	all, _ := parameters.node.([]any)
	for i := range all {
		parameter := c.under(parameters, strconv.Itoa(i))
		c.mark(c.under(parameter, "schema"), query.Get(c.under(parameter, "name").text()))
	}
	return nil
}
