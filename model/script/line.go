package script

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what a script can ask for.
const (
	maxNumber = 100_000_000
	maxTime   = 24 * time.Hour
)

// SyntaxError says what is wrong in a script, and where.
type SyntaxError struct {
	Name   string // as given to Parse
	Line   int    // from 1
	Column int    // from 1, in characters
	Text   string
}

// Error returns the place and the text in one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Text)
}

// line is one line of a script, with how far it has been read.
type line struct {
	script string
	index  int // from 1
	text   string
	next   int // where the reading goes on
	last   int // where what was read last began
}

const space = " \t\r"

// rest returns what is still to be read, "" at the end or before a comment.
func (l *line) rest() string {
	rest := strings.TrimLeft(l.text[l.next:], space)
	l.next = len(l.text) - len(rest)
	l.last = l.next
	if strings.HasPrefix(rest, "#") {
		return ""
	}
	return rest
}

// word reads to the next white space. It is "" at the end of the line.
func (l *line) word() string {
	word := l.rest()
	if i := strings.IndexAny(word, space); i >= 0 {
		word = word[:i]
	}
	l.next += len(word)
	return word
}

// quoted reads a text in the syntax of Go.
func (l *line) quoted() (string, error) {
	rest := l.rest()
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil || quoted[0] == '\'' {
		return "", l.errorf("want a quoted text, not %s", excerpt(rest))
	}
	l.next += len(quoted)
	text, err := strconv.Unquote(quoted)
	if err != nil || !utf8.ValidString(text) {
		return "", l.errorf("the text %s is not valid UTF-8", excerpt(quoted))
	}
	if text == "" {
		return "", l.errorf("the text is empty")
	}
	return text, nil
}

// optionalQuoted reads a quoted text, if there is one.
func (l *line) optionalQuoted() (string, error) {
	if l.rest() == "" {
		return "", nil
	}
	return l.quoted()
}

// number reads a number of things.
func (l *line) number() (int, error) {
	word := l.word()
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n > maxNumber {
		return 0, l.errorf("want a number from 0 to %d, not %s", maxNumber, excerpt(word))
	}
	return n, nil
}

// time reads a time such as 20ms.
func (l *line) time() (time.Duration, error) {
	word := l.word()
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 || d > maxTime {
		return 0, l.errorf("want a time such as 20ms, at most %v, not %s", maxTime, excerpt(word))
	}
	return d, nil
}

// optionalTime reads a time, if anything is left.
func (l *line) optionalTime() (time.Duration, error) {
	if l.rest() == "" {
		return 0, nil
	}
	return l.time()
}

// object reads one JSON object.
func (l *line) object() (jsontext.Value, error) {
	rest := l.rest()
	if !strings.HasPrefix(rest, "{") {
		return nil, l.errorf("want a JSON object, not %s", excerpt(rest))
	}
	dec := jsontext.NewDecoder(bytes.NewReader([]byte(rest)))
	value, err := dec.ReadValue()
	if err != nil {
		if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			l.last += int(syntactic.ByteOffset)
		}
		return nil, l.errorf("the JSON object is not well formed")
	}
	l.next += int(dec.InputOffset())
	return value.Clone(), nil
}

// end holds that nothing is left.
func (l *line) end() error {
	if rest := l.rest(); rest != "" {
		return l.errorf("%s is more than belongs here", excerpt(rest))
	}
	return nil
}

// errorf says what is wrong with what was read last.
func (l *line) errorf(format string, args ...any) error {
	return &SyntaxError{
		Name:   l.script,
		Line:   l.index,
		Column: utf8.RuneCountInString(l.text[:l.last]) + 1,
		Text:   fmt.Sprintf(format, args...),
	}
}

// excerpt quotes the beginning of a text for an error.
func excerpt(text string) string {
	const most = 24
	switch runes := []rune(head(text)); {
	case len(runes) == 0:
		return "the end of the line"
	case len(runes) > most:
		return strconv.Quote(string(runes[:most]) + "…")
	default:
		return strconv.Quote(string(runes))
	}
}

// head bounds the work on a long line.
func head(text string) string { return text[:min(len(text), 200)] }
