package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// Bounds of what a server says of its tools.
const (
	maxTools       = 64
	maxPages       = 16  // of the list of its tools
	maxToolName    = 128 // bytes
	maxDescription = 2 << 10
	maxTold        = 128 << 10 // bytes that all tools together take in a request
	maxFrame       = 4 << 20   // of one message of a server
)

// session is a connection with the tools that were listed last.
type session struct {
	conn   *connection
	offers []tool.Offer // by name
	told   int          // bytes that they take in a request
}

// add takes in a tool, and reports whether there was room for it. The first of a
// name counts.
func (s *session) add(offer tool.Offer, bytes int) bool {
	if slices.ContainsFunc(s.offers, func(o tool.Offer) bool { return o.Name == offer.Name }) {
		return true
	}
	if len(s.offers) == maxTools || s.told+bytes > maxTold {
		return false
	}
	s.told += bytes
	s.offers = append(s.offers, offer)
	return true
}

func (s *session) has(name string) bool {
	_, ok := slices.BinarySearchFunc(s.offers, name, func(o tool.Offer, name string) int { return cmp.Compare(o.Name, name) })
	return ok
}

// list asks the server for its tools. The first that can be offered are.
func (s *Server) list(ctx context.Context, c *connection) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	current := &session{conn: c}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		var page *sdk.ListToolsResult
		err := c.ask(ctx, func(ctx context.Context, client *sdk.ClientSession) (err error) {
			page, err = client.ListTools(ctx, params)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list its tools: %w", err)
		}
		if !s.take(current, page.Tools) || page.NextCursor == "" {
			break
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	slices.SortFunc(current.offers, func(a, b tool.Offer) int { return cmp.Compare(a.Name, b.Name) })
	return current, nil
}

// take adds what can be offered of a page, and reports whether there may be more.
func (s *Server) take(current *session, page []*sdk.Tool) bool {
	for _, listed := range page {
		offer, err := offerOf(listed)
		if err != nil {
			s.refused(listed.Name, err)
			continue
		}
		if !current.add(offer, len(offer.Name)+len(listed.Description)+len(offer.Schema.JSON())) {
			s.refused("", errRoom)
			return false
		}
	}
	return true
}

// errRoom says that a server has more tools than a model is to be bothered with.
var errRoom = fmt.Errorf("it is one of more than %d tools, or they take more than %d KiB together", maxTools, maxTold>>10)

// refused says once that a tool is not offered, and why.
func (s *Server) refused(name string, err error) {
	const most = 256 // of a server that makes up names
	name = printable(name, 64)
	key := name + "\n" + err.Error()
	if s.warned[key] || len(s.warned) >= most {
		return
	}
	s.warned[key] = true
	s.log.Warn("a tool of an MCP server is not offered", "tool", name, "error", err)
}

// offerOf is a tool of a stranger's server as a model may be told of it. All of
// it stands in an instruction position, the words of its schema too (C-8.3); what
// a server says of itself beside its tools is told to nobody.
func offerOf(listed *sdk.Tool) (tool.Offer, error) {
	if _, err := taint.Stranger(listed.Name, maxToolName); err != nil || listed.Name == "" {
		return tool.Offer{}, errors.New("its name is empty, too long, or not all of it can be seen")
	}
	description, err := taint.Stranger(listed.Description, maxDescription)
	if err != nil {
		return tool.Offer{}, fmt.Errorf("description: %w", err)
	}
	schema, err := schemaOf(listed.InputSchema)
	if err != nil {
		return tool.Offer{}, err
	}
	return tool.Offer{Name: listed.Name, Description: description, Schema: schema}, nil
}

// schemaOf reads the schema of the arguments, as it came.
func schemaOf(listed any) (*tool.Schema, error) {
	members, ok := listed.(map[string]any)
	if !ok || members["type"] != "object" {
		return nil, errors.New("its schema is none of an object")
	}
	raw, err := json.Marshal(members, json.Deterministic(true)) // a request that stays the same is cached by its service
	if err != nil {
		return nil, errors.New("its schema cannot be read")
	}
	schema, err := tool.NewSchema(raw)
	if err != nil {
		return nil, err
	}
	if _, err := taint.Stranger(string(raw), len(raw)); err != nil { // its texts together
		return nil, fmt.Errorf("its schema: %w", err)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := dec.ReadToken()
		if err == io.EOF {
			return schema, nil
		}
		if err != nil {
			return nil, errors.New("its schema cannot be read")
		}
		if token.Kind() != '"' {
			continue
		}
		if _, err := taint.Stranger(strings.Clone(token.String()), tool.MaxSchemaBytes); err != nil {
			return nil, fmt.Errorf("a text in its schema: %w", err)
		}
	}
}
