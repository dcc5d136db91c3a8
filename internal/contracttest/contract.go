// Package contracttest holds what goes over the wire against docs/openapi.yaml,
// in both directions: no answer has a status, header, member or value that the
// document does not name, and nothing stands in the document that no test has
// seen.
//
// Open the document with [Open], put [Contract.Watch] before a handler, or give
// exchanges to [Contract.Check]; then ask [Contract.Unseen] what is missing. The
// keywords of JSON Schema are judged by a library; what OpenAPI has no words for,
// the events of a stream and the answers to paths and methods that are not there,
// is judged here.
package contracttest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pb33f/jsonschema/v6"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
)

// Contract is the document, and what was seen of it. Its methods may be called
// from any number of goroutines.
type Contract struct {
	root     any // the document as JSON
	requests validator.Validator
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by pointer
	seen    map[string]bool
}

// resource is the name under which the compiler knows the document.
const resource = "contract.json"

// Open reads an OpenAPI 3.1 document, and refuses one that is none.
func Open(path string) (*Contract, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	requests, errs := validator.NewValidator(document, config.WithFormatAssertions(), config.WithoutSecurityValidation())
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", path, errs[0])
	}
	if ok, errs := requests.ValidateDocument(); !ok {
		return nil, fmt.Errorf("%s is no OpenAPI document: %v", path, errs)
	}
	asJSON := document.GetSpecInfo().GetSpecJSONBytes()
	if asJSON == nil {
		return nil, fmt.Errorf("%s: %w", path, document.GetSpecInfo().GetSpecJSONError())
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(*asJSON))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &Contract{
		root: root, requests: requests, compiler: jsonschema.NewCompiler(),
		schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{},
	}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(resource, root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, lint("", root)
}

// lint refuses what tools read in different ways: keywords beside a reference,
// which some of them pass over in silence.
func lint(at string, node any) error {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["$ref"]; ok && len(node) > 1 {
			return fmt.Errorf("%s: there are keywords beside a reference", at)
		}
		for name, inner := range node {
			if err := lint(at+"/"+name, inner); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range node {
			if err := lint(fmt.Sprint(at, "/", i), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// place is a node of the document with the pointer to it.
type place struct {
	pointer string
	node    any
}

// ok reports whether there is such a place.
func (p place) ok() bool { return p.node != nil }

// text is a string, "" where there is none.
func (p place) text() string {
	text, _ := p.node.(string)
	return text
}

// names are the members of an object, in order.
func (p place) names() []string {
	object, _ := p.node.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// at goes down from the root, over references.
func (c *Contract) at(names ...string) place { return c.under(place{node: c.root}, names...) }

// under goes down from a place, over references.
func (c *Contract) under(p place, names ...string) place {
	for _, name := range names {
		switch node := p.node.(type) {
		case map[string]any:
			p = place{p.pointer + "/" + escape.Replace(name), node[name]}
		case []any:
			var i int
			fmt.Sscan(name, &i)
			p = place{p.pointer + "/" + name, node[i]}
		default:
			return place{}
		}
		p = c.followed(p)
	}
	return p
}

// followed is the place that a reference names, or the place itself.
func (c *Contract) followed(p place) place {
	object, _ := p.node.(map[string]any)
	target, ok := object["$ref"].(string)
	if !ok {
		return p
	}
	return c.at(strings.Split(strings.TrimPrefix(target, "#/"), "/")...)
}

// valid holds a value against the schema at a place.
func (c *Contract) valid(p place, value any) error {
	c.mu.Lock()
	schema, ok := c.schemas[p.pointer]
	if !ok {
		var err error
		if schema, err = c.compiler.Compile(resource + "#" + p.pointer); err != nil {
			c.mu.Unlock()
			return err
		}
		c.schemas[p.pointer] = schema
	}
	c.mu.Unlock()
	return schema.Validate(value)
}

// Codes are all codes of errors.
func (c *Contract) Codes() []string {
	var codes []string
	all := c.at("components", "schemas", "Problem", "anyOf")
	for i := range all.node.([]any) {
		codes = append(codes, c.under(all, fmt.Sprint(i), "properties", "error", "const").text())
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Operations are the operations, as "GET /v1/conversations/{id}".
func (c *Contract) Operations() []string {
	var all []string
	for _, path := range c.at("paths").names() {
		for _, method := range c.at("paths", path).names() {
			if slices.Contains(methods, method) {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return all
}

// methods are those that an operation may have.
var methods = []string{"get", "put", "post", "delete", "patch"}
