package gateway

import (
	"bytes"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// tape is a response that remembers.
type tape struct {
	mu       sync.Mutex
	header   http.Header
	code     int
	body     bytes.Buffer
	flushed  int
	onFlush  func(*tape)
	writeErr error
}

func (t *tape) Header() http.Header {
	if t.header == nil {
		t.header = http.Header{}
	}
	return t.header
}

func (t *tape) WriteHeader(code int) { t.code = code }

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writeErr != nil {
		return 0, t.writeErr
	}
	return t.body.Write(p)
}

func (t *tape) FlushError() error {
	t.mu.Lock()
	t.flushed++
	hook := t.onFlush
	t.mu.Unlock()
	if hook != nil {
		hook(t)
	}
	return nil
}

func (t *tape) SetWriteDeadline(time.Time) error {
	return nil
}

func (t *tape) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.body.String()
}

// events are the names of the events on the tape, comments as ":".
func (t *tape) events() []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:event: (\w+)|(:))$`).FindAllStringSubmatch(t.text(), -1) {
		names = append(names, m[1]+m[2])
	}
	return names
}
