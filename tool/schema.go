package tool

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of a schema. Its author may mean ill.
const (
	MaxSchemaBytes = 32 << 10
	maxSchemaDepth = 48
)

// Schema is a JSON Schema of arguments, ready for use: of draft 7 or 2020-12,
// and complete in itself.
type Schema struct {
	raw      jsontext.Value
	resolved *jsonschema.Resolved
	bounds   bounds
}

// SchemaOf is the schema of arguments that are a T. The tag jsonschema of a field
// describes it.
func SchemaOf[T any]() (*Schema, error) {
	described, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	raw, err := described.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return NewSchema(raw)
}

// NewSchema reads a schema. It refuses one that is larger or deeper than a
// schema of arguments has reason to be, that is of another dialect, that refers
// to anything outside of itself, that uses $id within, $anchor or $dynamicRef, or
// against which nothing could be held in bounded time.
func NewSchema(raw jsontext.Value) (_ *Schema, err error) {
	if len(raw) > MaxSchemaBytes {
		return nil, fmt.Errorf("the schema is larger than %d bytes", MaxSchemaBytes)
	}
	if err := shallow(raw); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil { // in the library, over a schema that nobody thought of
			err = errors.New("the schema cannot be read")
		}
	}()
	var parsed jsonschema.Schema
	if err := parsed.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	switch parsed.Schema {
	case "", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2020-12/schema":
	default:
		return nil, errors.New("the schema is neither of draft 7 nor of 2020-12")
	}
	limits, err := newBounds(&parsed)
	if err != nil {
		return nil, err
	}
	resolved, err := parsed.Resolve(nil) // loads nothing
	if err != nil {
		return nil, fmt.Errorf("the schema does not resolve: %w", err)
	}
	return &Schema{raw: raw.Clone(), resolved: resolved, bounds: limits}, nil
}

// shallow makes sure that the schema is one JSON object of a bounded depth.
func shallow(raw jsontext.Value) error {
	if raw.Kind() != '{' || !raw.IsValid() {
		return errors.New("the schema is no JSON object")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		if _, err := dec.ReadToken(); err == io.EOF {
			return nil
		} else if err != nil {
			return errors.New("the schema is no JSON object")
		}
		if dec.StackDepth() > maxSchemaDepth {
			return fmt.Errorf("the schema is deeper than %d", maxSchemaDepth)
		}
	}
}

// JSON is the schema as it was written. Nobody may change it.
func (s *Schema) JSON() jsontext.Value { return s.raw }

// Misfit says what does not fit in the arguments, "" where all does. It is one
// line of at most 512 bytes, in which words of the schema and of the arguments
// may stand: it is tainted, and has no place in errors and logs.
func (s *Schema) Misfit(args jsontext.Value) (misfit string) {
	const unchecked = "they cannot be held against the schema of the tool: there is too much in them"
	var instance any
	if json.Unmarshal(args, &instance) != nil {
		return "they are no JSON whose numbers can be taken"
	}
	if !s.bounds.allow(instance) {
		return unchecked
	}
	defer func() {
		if r := recover(); r != nil {
			misfit = unchecked
		}
	}()
	if err := s.resolved.Validate(instance); err != nil {
		return remark(err)
	}
	return ""
}

// remark makes one bounded line of what the library says. The middle of a long
// one goes, because the value comes first and what was wanted last.
func remark(err error) string {
	const side = 250
	text := err.Error()
	for {
		rest, ok := strings.CutPrefix(text, "validating root: ")
		if !ok {
			break
		}
		text = rest
	}
	if len(text) > 2*side {
		text = text[:side] + " … " + text[len(text)-side:]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError: // a cut code point
			return -1
		case unicode.IsPrint(r):
			return r
		}
		return ' '
	}, text)
}
