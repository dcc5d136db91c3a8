package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// maxTools is how many tools a model is offered. Vendors refuse more.
const maxTools = 128

// catalogue is what a model can call at one moment. It is offered with a request
// and held against the reply to it.
type catalogue struct {
	tools  []model.Tool
	listed map[string]item
}

// item is one tool of a catalogue.
type item struct {
	schema *tool.Schema // nil takes any object
	set    string       // whose it is, "" for a tool of the definition
	name   string       // what it is called in its set
}

// add lists a tool, unless its name is taken or the catalogue is full.
func (c *catalogue) add(offer model.Tool, as item) bool {
	if _, taken := c.listed[offer.Name]; taken || len(c.tools) >= maxTools {
		return false
	}
	c.tools = append(c.tools, offer)
	c.listed[offer.Name] = as
	return true
}

// shelf makes catalogues: the definition's own tools, which are always there,
// and what its sets offer at the time.
type shelf struct {
	own  catalogue
	sets []tool.Set
	log  *slog.Logger
	full sync.Once // said that there are too many
}

// newShelf holds the tools against what a model can be told (C-8.3).
func newShelf(d Definition) (*shelf, error) {
	s := &shelf{own: catalogue{listed: map[string]item{}}, sets: d.Toolsets, log: d.log()}
	if len(d.Tools) > maxTools {
		return nil, fmt.Errorf("an agent with more than %d tools", maxTools)
	}
	for _, t := range d.Tools {
		offer, schema, err := t.offer()
		if err != nil {
			return nil, err
		}
		if !s.own.add(offer, item{schema: schema}) {
			return nil, fmt.Errorf("two tools are named %q", offer.Name)
		}
	}
	names := map[string]bool{}
	for _, set := range d.Toolsets {
		name := set.Name()
		if !isSetName(name) {
			return nil, fmt.Errorf("name %q of a set of tools has other than 1 to %d letters, digits and '-'", word(name), maxSetName)
		}
		if _, taken := s.own.listed[name]; taken || names[name] {
			return nil, fmt.Errorf("two tools or sets of tools are named %q", name)
		}
		names[name] = true
	}
	return s, nil
}

// now is the catalogue of this moment. What a set offers that cannot be told to
// a model is left out.
func (s *shelf) now() catalogue {
	if len(s.sets) == 0 {
		return s.own
	}
	c := catalogue{tools: slices.Clone(s.own.tools), listed: maps.Clone(s.own.listed)}
	for _, set := range s.sets {
		for _, offer := range set.Offers() {
			description, err := taint.Instruction(offer.Description)
			if err != nil {
				s.log.Warn("a tool is not offered", "set", set.Name(), "error", err)
				continue
			}
			name := offerName(set.Name(), offer.Name)
			if _, taken := s.own.listed[name]; taken {
				name = digestName(set.Name(), offer.Name)
			}
			if _, err := taint.Stranger(name, maxWord); err != nil { // the two names together
				s.log.Warn("a tool is not offered", "set", set.Name(), "error", err)
				continue
			}
			c.add(model.Tool{Name: name, Description: description, Schema: rawSchema(offer.Schema)},
				item{schema: offer.Schema, set: set.Name(), name: offer.Name})
		}
	}
	if len(c.tools) == maxTools {
		s.full.Do(func() { s.log.Warn("no more tools can be offered", "most", maxTools) })
	}
	return c
}

// rawSchema is a schema as a model is told it.
func rawSchema(schema *tool.Schema) jsontext.Value {
	if schema == nil {
		return jsontext.Value(`{"type":"object"}`)
	}
	return schema.JSON()
}

// maxSetName leaves room for the names of the tools.
const maxSetName = 24

// isSetName reports whether sets may have the name. It has no '_', so that tools
// of two sets never meet under one name.
func isSetName(name string) bool {
	if name == "" || len(name) > maxSetName || word(name) != name {
		return false
	}
	return !slices.Contains([]byte(name), '_')
}

// offerName is the name under which a model meets a tool of a set. It follows from
// the two names alone, so that it stays whatever else comes and goes.
func offerName(set, name string) string {
	if plain := set + "_" + name; name != "" && word(plain) == plain {
		return plain
	}
	return digestName(set, name)
}

// digestName is the name for a tool whose own is no word, is too long or is taken.
func digestName(set, name string) string {
	sum := sha256.Sum256([]byte(set + "\n" + name))
	digest := "_" + hex.EncodeToString(sum[:4])
	plain := word(set + "_" + name)
	return plain[:min(len(plain), maxWord-len(digest))] + digest
}
