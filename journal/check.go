package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxNameBytes is the largest length of a stream's name, of an event's kind,
// and of the space, key and sort of a row. A name that grows with somebody
// else's input belongs hashed.
const MaxNameBytes = 1 << 10

// Check reports what is wrong with a batch before anything is looked up: the
// part of [Store.Append] that every store has in common. Names and data must be
// UTF-8 without NUL bytes, which every database can hold.
//
// Errors: [ErrTooLarge]; others mean that a programmer broke a promise.
func Check(batch []Append) error {
	for i, part := range batch {
		if err := part.check(); err != nil {
			return err
		}
		for _, earlier := range batch[:i] {
			if earlier.Stream == part.Stream {
				return fmt.Errorf("journal: a batch names stream %q twice", part.Stream)
			}
		}
	}
	return nil
}

func (a Append) check() error {
	if err := checkName("stream", a.Stream); err != nil {
		return err
	}
	if a.Stream == "" {
		return errors.New("journal: an append names no stream")
	}
	if a.Expect < AtEnd {
		return fmt.Errorf("journal: stream %q: expectation %d", a.Stream, a.Expect)
	}
	for _, event := range a.Events {
		if err := event.check(); err != nil {
			return err
		}
	}
	for _, row := range a.Rows {
		if err := row.check(); err != nil {
			return err
		}
	}
	return nil
}

func (e Event) check() error {
	if err := checkName("kind", e.Kind); err != nil {
		return err
	}
	if e.Kind == "" {
		return errors.New("journal: an event has no kind")
	}
	if size := len(e.ID) + len(e.Data); size > MaxEventBytes {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	if !isText(e.ID) || !isTextBytes(e.Data) {
		return fmt.Errorf("journal: event of kind %q is not UTF-8 without NUL", e.Kind)
	}
	return nil
}

func (r Row) check() error {
	for _, name := range []struct{ what, text string }{
		{"space", r.Space},
		{"key", r.Key},
		{"sort", r.Sort},
	} {
		if err := checkName(name.what, name.text); err != nil {
			return err
		}
	}
	if r.Key == "" {
		return errors.New("journal: a row has no key")
	}
	if len(r.Data) > MaxEventBytes {
		return fmt.Errorf("%w: a row of %d bytes", ErrTooLarge, len(r.Data))
	}
	if !isTextBytes(r.Data) {
		return errors.New("journal: a row is not UTF-8 without NUL")
	}
	return nil
}

func checkName(what, name string) error {
	if len(name) > MaxNameBytes {
		return fmt.Errorf("%w: a %s of %d bytes", ErrTooLarge, what, len(name))
	}
	if !isText(name) {
		return fmt.Errorf("journal: %s is not UTF-8 without NUL", what)
	}
	return nil
}

func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

func isTextBytes(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}
