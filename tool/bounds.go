package tool

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// What holding arguments against a schema may cost. The library follows a schema
// wherever it leads: one that refers to itself would overflow the stack, which
// ends the process, and a few hundred bytes can ask for more steps than there is
// time. So the same way is walked before, with a purse: every step costs, the
// more the deeper and the larger what stands there, because an error repeats it
// at every level.
const (
	purse      = 64 << 20
	stepCost   = 64
	entryCost  = 8    // of each name or type that one schema lists
	maxSteps   = 256  // one within another
	maxPattern = 2048 // instructions of a compiled regular expression
)

// bounds is a schema in the form in which the library has understood it, and what
// its regular expressions cost for each byte.
type bounds struct {
	root     any
	patterns map[string]int
}

var errEndless = errors.New("the schema refers to itself without an end, or costs too much to apply")

// newBounds walks the whole schema once.
func newBounds(schema *jsonschema.Schema) (bounds, error) {
	data, err := schema.MarshalJSON()
	if err != nil {
		return bounds{}, fmt.Errorf("the schema cannot be read: %w", err)
	}
	b := bounds{patterns: map[string]int{}}
	if err := json.Unmarshal(data, &b.root); err != nil {
		return bounds{}, fmt.Errorf("the schema cannot be read: %w", err)
	}
	w := &walk{bounds: b, left: purse}
	if err := w.survey(b.root, true); err != nil {
		return bounds{}, err
	}
	return b, nil
}

// allow reports whether the instance can be held against the schema.
func (b bounds) allow(instance any) bool {
	return (&walk{bounds: b, left: purse}).step(b.root, instance, 1)
}

// walk is one walk along a schema.
type walk struct {
	bounds
	left int
}

// survey looks at every schema within: at what it may not have, at what it refers
// to, and at what it costs where the instance is nothing. That finds each circle
// that does not go down in the instance.
func (w *walk) survey(schema any, root bool) error {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$id"} {
		if _, ok := m[key]; ok && !(root && key == "$id") {
			return fmt.Errorf("the schema uses %s", key)
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		if _, ok := w.find(ref); !ok {
			return errors.New("the schema refers to something outside of itself")
		}
	}
	if err := w.compile(m); err != nil {
		return err
	}
	if !w.step(m, nil, 1) {
		return errEndless
	}
	for key, value := range m {
		for sub := range within(key, value) {
			if err := w.survey(sub, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile learns what the regular expressions of one schema cost. Go's need time
// in proportion to expression and text, whatever they say.
func (w *walk) compile(m map[string]any) error {
	expressions, _ := m["patternProperties"].(map[string]any)
	for expression := range expressions {
		if err := w.learn(expression); err != nil {
			return err
		}
	}
	if expression, ok := m["pattern"].(string); ok {
		return w.learn(expression)
	}
	return nil
}

func (w *walk) learn(expression string) error {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return errors.New("the schema has a regular expression that is none of Go's")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxPattern {
		return errors.New("the schema has a regular expression that is too large")
	}
	w.patterns[expression] = len(program.Inst)
	return nil
}

// step pays for one schema at one place of the instance, and for all that follows
// from it. It reports whether the purse held.
func (w *walk) step(schema, instance any, depth int) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		return true // true or false
	}
	w.left -= (stepCost + size(instance) + size(m["enum"]) + size(m["const"]) + entryCost*entries(m, instance)) * depth
	w.left -= w.matching(m, instance)
	if w.left < 0 || depth > maxSteps {
		return false
	}
	for key, value := range m {
		for sub, place := range w.onward(key, value, instance) {
			if !w.step(sub, place, depth+1) {
				return false
			}
		}
	}
	return true
}

// entries is how many names and types of one schema the library goes through for
// an instance, whatever is in that.
func entries(m map[string]any, instance any) int {
	types, _ := m["type"].([]any)
	n := len(types)
	if _, ok := instance.(map[string]any); !ok {
		return n
	}
	required, _ := m["required"].([]any)
	n += len(required)
	for _, key := range []string{"properties", "dependentRequired", "dependentSchemas", "dependencies"} {
		listed, _ := m[key].(map[string]any)
		n += len(listed)
		for _, others := range listed {
			names, _ := others.([]any)
			n += len(names)
		}
	}
	return n
}

// matching is what the regular expressions of one schema cost.
func (w *walk) matching(m map[string]any, instance any) (cost int) {
	switch instance := instance.(type) {
	case string:
		if expression, ok := m["pattern"].(string); ok {
			cost = w.patterns[expression] * len(instance)
		}
	case map[string]any:
		expressions, _ := m["patternProperties"].(map[string]any)
		for expression := range expressions {
			for name := range instance {
				cost += w.patterns[expression] * (1 + len(name))
			}
		}
	}
	return cost
}

// onward yields the schemas to which a keyword leads, each with the place of the
// instance that is held against it: at least those that the library visits.
func (w *walk) onward(key string, value, instance any) iter.Seq2[any, any] {
	list, _ := instance.([]any)
	object, _ := instance.(map[string]any)
	return func(yield func(schema, place any) bool) {
		switch key {
		case "$ref":
			ref, _ := value.(string)
			target, _ := w.find(ref)
			yield(target, instance)
		case "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies":
			for sub := range within(key, value) {
				if !yield(sub, instance) {
					return
				}
			}
		case "items", "prefixItems", "additionalItems", "contains", "unevaluatedItems":
			for sub := range within(key, value) {
				for _, item := range list {
					if !yield(sub, item) {
						return
					}
				}
			}
		case "properties":
			properties, _ := value.(map[string]any)
			for name, sub := range properties {
				if member, ok := object[name]; ok && !yield(sub, member) {
					return
				}
			}
		case "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames":
			for sub := range within(key, value) {
				for name, member := range object {
					if key == "propertyNames" {
						member = name
					}
					if !yield(sub, member) {
						return
					}
				}
			}
		}
	}
}

// within yields the schemas that stand in the value of a keyword.
func within(key string, value any) iter.Seq[any] {
	return func(yield func(any) bool) {
		switch key {
		case "not", "if", "then", "else", "additionalItems", "contains", "unevaluatedItems",
			"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema":
			yield(value)
		case "allOf", "anyOf", "oneOf", "prefixItems", "items":
			list, ok := value.([]any)
			if !ok {
				list = []any{value}
			}
			for _, sub := range list {
				if !yield(sub) {
					return
				}
			}
		case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
			named, _ := value.(map[string]any)
			for _, sub := range named {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// find returns what a reference within the schema points to.
func (b bounds) find(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, false
	}
	at := b.root
	for i, token := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch in := at.(type) {
		case map[string]any:
			at, ok = in[token]
		case []any:
			n, err := strconv.Atoi(token)
			if ok = err == nil && 0 <= n && n < len(in); ok {
				at = in[n]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return at, true
}

// size is about how many bytes a value takes where it is printed.
func size(value any) int {
	n := 0
	switch value := value.(type) {
	case nil:
	case string:
		n = len(value)
	case []any:
		for _, item := range value {
			n += 2 + size(item)
		}
	case map[string]any:
		for name, member := range value {
			n += 2 + len(name) + size(member)
		}
	default:
		n = 8
	}
	return n
}
