package contracttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// see remembers that something of the document was met.
func (c *Contract) see(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what] = true
}

// mark remembers which values of the schema at a place a valid value shows.
func (c *Contract) mark(schema place, value any) {
	for _, one := range c.values(schema) {
		if one == value {
			c.see(valueOf(schema, one))
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if property := c.under(schema, "properties", name); property.ok() {
				c.see("member " + schema.pointer + " " + name)
				c.mark(property, inner)
			}
		}
	case []any:
		for _, inner := range value {
			c.mark(c.under(schema, "items"), inner)
		}
	}
	for _, branch := range c.branches(schema) {
		if c.valid(branch, value) == nil {
			c.mark(branch, value)
		}
	}
}

// values are the values that a schema lists.
func (c *Contract) values(schema place) []any {
	values, _ := c.under(schema, "enum").node.([]any)
	if one := c.under(schema, "const"); one.ok() {
		values = append(slices.Clone(values), one.node)
	}
	return values
}

func valueOf(schema place, value any) string {
	return fmt.Sprintf("value %s %v", schema.pointer, value)
}

// branches are the schemas of which a value fits one.
func (c *Contract) branches(schema place) (all []place) {
	for _, keyword := range []string{"oneOf", "anyOf"} {
		list, _ := c.under(schema, keyword).node.([]any)
		for i := range list {
			all = append(all, c.under(schema, keyword, strconv.Itoa(i)))
		}
	}
	return all
}

// Unseen is what the document says of the paths that begin with a prefix, and no
// exchange has shown: an operation's status, a header, an event, a member, and
// a value that is listed.
func (c *Contract) Unseen(prefix string) []string {
	all := map[string]bool{}
	for _, operation := range c.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		op := c.at("paths", path, strings.ToLower(method))
		for _, status := range c.under(op, "responses").names() {
			all[operation+" "+status] = true
			c.collect(all, c.under(op, "responses", status))
		}
		parameters, _ := c.under(op, "parameters").node.([]any)
		for i := range parameters {
			c.collectSchema(all, c.under(op, "parameters", strconv.Itoa(i), "schema"))
		}
	}
	for _, name := range []string{"Forbidden", "NotFound", "Preflight", "MethodNotAllowed"} {
		all["elsewhere "+name] = true
		c.collect(all, c.at("components", "responses", name))
	}
	var unseen []string
	c.mu.Lock()
	defer c.mu.Unlock()
	for what := range all {
		if !c.seen[what] {
			unseen = append(unseen, what)
		}
	}
	slices.Sort(unseen)
	return unseen
}

// collect gathers what an answer may show.
func (c *Contract) collect(all map[string]bool, answer place) {
	for _, name := range c.under(answer, "headers").names() {
		all["header "+c.under(answer, "headers", name).pointer] = true
	}
	for _, mediaType := range c.under(answer, "content").names() {
		media := c.under(answer, "content", mediaType)
		c.collectSchema(all, c.under(media, "schema"))
		events := c.under(media, "x-events")
		for _, name := range events.names() {
			all["event "+c.under(events, name).pointer] = true
			c.collectSchema(all, c.under(events, name, "data"))
		}
	}
}

// collectSchema gathers what a value may show. No schema of the document
// contains itself.
func (c *Contract) collectSchema(all map[string]bool, schema place) {
	for _, value := range c.values(schema) {
		all[valueOf(schema, value)] = true
	}
	for _, name := range c.under(schema, "properties").names() {
		all["member "+schema.pointer+" "+name] = true
		c.collectSchema(all, c.under(schema, "properties", name))
	}
	if items := c.under(schema, "items"); items.ok() {
		c.collectSchema(all, items)
	}
	for _, branch := range c.branches(schema) {
		c.collectSchema(all, branch)
	}
}
