package contracttest

import (
	"bytes"
	"io"
	"net/http"
)

// Watch puts the contract before a handler: report is told of each exchange that
// does not keep it, before the exchange is over. An answer that its handler cuts
// off with a panic is not looked at.
func (c *Contract) Watch(next http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked bytes.Buffer
		watched := r.Clone(r.Context())
		if r.Body != nil {
			watched.Body = &heard{r.Body, &asked}
		}
		seen := &answer{ResponseWriter: w}
		next.ServeHTTP(seen, watched)
		e := Exchange{Request: r, Asked: asked.Bytes(), Status: seen.status, Header: seen.header, Answered: seen.body.Bytes()}
		if e.Status == 0 {
			e.Status, e.Header = http.StatusOK, w.Header()
		}
		if err := c.Check(e); err != nil {
			report(err)
		}
	})
}

// heard is the body of a request, and what was read of it.
type heard struct {
	io.ReadCloser
	text *bytes.Buffer
}

// Read reads on.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.text.Write(p[:n])
	return n, err
}

// answer is an answer on its way, and a copy of it.
type answer struct {
	http.ResponseWriter
	status int
	header http.Header
	body   bytes.Buffer
}

// Unwrap gives the way to flushes and deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader writes the head.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status, a.header = status, a.Header().Clone()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes on.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status, a.header = http.StatusOK, a.Header().Clone()
	}
	n, err := a.ResponseWriter.Write(p)
	a.body.Write(p[:n])
	return n, err
}
