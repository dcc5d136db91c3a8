package tool_test

import (
	"encoding/json/jsontext"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/tool"
)

const tree = `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"required":["root"],"additionalProperties":false,
	"$defs":{"node":{"type":"object","properties":{"name":{"type":"string","maxLength":8,"pattern":"^[a-z]+$"},
	"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}}}`

// Arguments are held against the schema, one that refers to itself included,
// and what does not fit is said.
func TestMisfit(t *testing.T) {
	for _, test := range []struct{ schema, args, want string }{
		{`{}`, `{"any":1}`, ""},
		{`{"type":"object"}`, `{}`, ""},
		{tree, `{"root":{"name":"a","children":[{"name":"b"},{"name":"c","children":[]}]}}`, ""},
		{tree, `{}`, `required: missing properties: ["root"]`},
		{tree, `{"root":{"name":"a","children":[{"name":"b"},{"name":7}]}}`, `has type "integer", want "string"`},
		{tree, `{"root":{"name":"toolongaword"}}`, "maxLength"},
		{tree, `{"root":{"name":"A"}}`, "does not match"},
		{tree, `{"root":{"name":"a"},"more":1}`, `unexpected additional properties ["more"]`},
		{`{"properties":{"n":{"enum":[1,2]}}}`, `{"n":3}`, "enum"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.org/a","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"type":"null"}}}`, `{"a":0}`, `want "null"`},
		{`{"properties":{"a":{"type":"number"}}}`, `{"a":1e999}`, "no JSON whose numbers"},
	} {
		schema, err := tool.NewSchema(jsontext.Value(test.schema))
		if err != nil {
			t.Errorf("NewSchema(%s) = %v", test.schema, err)
			continue
		}
		got := schema.Misfit(jsontext.Value(test.args))
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("Misfit(%s) under %s = %q, want %q", test.args, test.schema, got, test.want)
		}
	}
}

// What is said is one bounded line, whatever stands in arguments and schema, and
// the end of it, where the wish stands, is kept.
func TestMisfitIsBounded(t *testing.T) {
	schema, err := tool.NewSchema(jsontext.Value(`{"properties":{"a":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{strings.Repeat("ü\\n", 60_000), `\u001b[2J\u202e`, strings.Repeat("x", 249) + strings.Repeat("€", 200)} {
		got := schema.Misfit(jsontext.Value(`{"a":"` + value + `"}`))
		if len(got) > 512 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x1b\u202e") || !strings.HasSuffix(got, `want "integer"`) {
			t.Errorf("Misfit = %q, want one line of at most 512 bytes that ends with what was wanted", got)
		}
	}
}

// doubling is a schema of n definitions of which each leads to the next two times.
func doubling(n int, end string) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/d0"}],"$defs":{%s"d%d":%s}}`, defs.String(), n, end)
}

// A schema that nothing could be held against, in bounded time and on a bounded
// stack, is refused when it is read.
func TestNewSchemaRefuses(t *testing.T) {
	for name, test := range map[string]struct{ schema, want string }{
		"no JSON":               {`{"type":`, "no JSON object"},
		"no object":             {`true`, "no JSON object"},
		"a name twice":          {`{"type":"object","type":"string"}`, "no JSON object"},
		"too large":             {`{"description":"` + strings.Repeat("a", 32<<10) + `"}`, "larger than"},
		"too deep":              {strings.Repeat(`{"not":`, 60) + `{}` + strings.Repeat(`}`, 60), "deeper than"},
		"no type":               {`{"type":7}`, "cannot be read"},
		"another dialect":       {`{"$schema":"http://json-schema.org/draft-04/schema#"}`, "neither of draft 7"},
		"remote":                {`{"properties":{"a":{"$ref":"https://example.org/s.json"}}}`, "outside of itself"},
		"a file":                {`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "outside of itself"},
		"dangling":              {`{"$ref":"#/$defs/none"}`, "outside of itself"},
		"remote by an id":       {`{"properties":{"a":{"$id":"https://example.org/","$ref":"#/x"}}}`, "uses $id"},
		"dynamic":               {`{"$dynamicAnchor":"a","properties":{"a":{"$dynamicRef":"#a"}}}`, "uses $dynamicAnchor"},
		"circle":                {`{"$ref":"#"}`, "without an end"},
		"circle of two":         {`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"not":{"$ref":"#/$defs/c"}},"c":{"if":{"$ref":"#/$defs/b"}}}}`, "without an end"},
		"circle in other case":  {`{"AllOf":[{"$REF":"#"}]}`, "without an end"},
		"circle never visited":  {`{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, "without an end"},
		"doubling":              {doubling(40, `{"type":"object"}`), "costs too much"},
		"backtracking":          {`{"pattern":"(a)\\1"}`, "none of Go's"},
		"large expression":      {`{"pattern":"` + strings.Repeat("(.{0,900})", 20) + `"}`, "too large"},
		"large name expression": {`{"patternProperties":{"` + strings.Repeat("(.{0,900})", 20) + `":true}}`, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := tool.NewSchema(jsontext.Value(test.schema))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("NewSchema = %v, want %q", err, test.want)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("NewSchema took %v", took)
			}
		})
	}
}

// A schema that is harmless alone, and not with these arguments: they are
// refused, at once, and not held against it.
func TestMisfitCostsTooMuch(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)
	const of = `{"properties":{"a":{"items":`
	list := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	named := func(n int, member string) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `"n%d":%s,`, i, member)
		}
		return strings.TrimSuffix(all.String(), ",")
	}
	empty := `{"a":[` + list(`{}`, 4_000) + `]}`
	for name, test := range map[string]struct{ schema, args string }{
		"each level doubles":     {`{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, deep},
		"each level's error too": {`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"additionalProperties":{"$ref":"#"},"required":["b"]}]}`, deep},
		"many large branches":    {`{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 1500) + `{"type":"string"}]}`, `{"a":"` + strings.Repeat("x", 200_000) + `"}`},
		"many names to miss":     {of + `{"not":{"required":[` + list(`"name"`, 3500) + `]}}}}}`, empty},
		"many names to look for": {of + `{"properties":{` + named(2500, `{}`) + `}}}}}`, empty},
		"many names to depend":   {of + `{"dependentRequired":{` + named(2000, `["x"]`) + `}}}}}`, empty},
		"one name of many":       {of + `{"dependentRequired":{"x":[` + list(`"x"`, 7000) + `]}}}}}`, `{"a":[` + list(`{"x":1}`, 2_000) + `]}`},
		"many types":             {of + `{"not":{"type":[` + list(`"string"`, 3000) + `]}}}}}`, `{"a":[` + list(`1`, 6_000) + `]}`},
		"a large expression":     {`{"properties":{"a":{"pattern":"(.{0,900}){0,1}$"}}}`, `{"a":"` + strings.Repeat("x", 250_000) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := tool.NewSchema(jsontext.Value(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if got := schema.Misfit(jsontext.Value(test.args)); !strings.Contains(got, "too much in them") {
				t.Errorf("Misfit = %q, want them refused as too much", got)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("Misfit took %v", took)
			}
		})
	}
}

// FuzzSchema holds anything against anything: it may be refused, but it ends.
func FuzzSchema(f *testing.F) {
	for _, schema := range []string{tree, doubling(3, "true"), `{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"items":{"$ref":"#"}}}}`, `{"dependencies":{"a":["b"],"c":{"$ref":"#"}}}`} {
		f.Add(schema, `{"root":{"name":"a"},"a":[[[]]],"c":{}}`)
	}
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := tool.NewSchema(jsontext.Value(schema))
		if err != nil {
			return
		}
		if len(s.Misfit(jsontext.Value(args))) > 512 {
			t.Error("a misfit of more than 512 bytes")
		}
	})
}
