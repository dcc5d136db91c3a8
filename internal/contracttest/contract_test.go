package contracttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// talk is a small contract with a stream.
const talk = `
openapi: 3.1.0
info: {title: talk, version: "1"}
paths:
  /talk/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string, pattern: "^[a-z]+$"}}]
    get:
      parameters: [{name: way, in: query, schema: {type: string, enum: [up, down]}}]
      responses:
        "200":
          description: said
          headers: {X-Kind: {required: true, schema: {enum: [a, b]}}}
          content:
            application/json: {schema: {$ref: "#/components/schemas/Word"}}
        "201":
          description: told
          content:
            text/event-stream:
              schema: {type: string}
              x-events:
                hello: {data: {$ref: "#/components/schemas/Word"}, first: true}
                word: {data: {$ref: "#/components/schemas/Word"}, id: true}
                bye: {data: {$ref: "#/components/schemas/Word"}, last: true}
components:
  responses:
    NotFound: {description: not there}
    Forbidden: {description: not yours}
    MethodNotAllowed: {description: not so}
    Preflight: {description: you may}
  schemas:
    Word:
      type: object
      required: [word]
      properties: {word: {enum: [yes, no]}, cursor: {type: string}}
      additionalProperties: false
`

func open(t *testing.T, text string) (*Contract, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "openapi.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(path)
}

// What keeps the contract passes, and each way to break it is told.
func TestCheck(t *testing.T) {
	c, err := open(t, talk)
	if err != nil {
		t.Fatal(err)
	}
	const hello = "event: hello\nretry: 5\ndata: {\"word\":\"yes\"}\n\n"
	for _, test := range []struct {
		method, target string
		status         int
		header         http.Header
		body, want     string
	}{
		{"GET", "/talk/ann?way=up", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{"word":"yes"}`, ""},
		{"HEAD", "/talk/ann?way=", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, ``, ""},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"c"}}, `{"word":"yes"}`, `header X-Kind is "c"`},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a", "b"}}, `{"word":"yes"}`, `is "a, b"`},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}}, `{"word":"yes"}`, "header X-Kind is missing"},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}, "X-New": {"1"}}, `{"word":"yes"}`, "header X-New is not"},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{"word":"perhaps"}`, "/word"},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{"word":"yes","x":1}`, "'x' not allowed"},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{}`, "missing property 'word'"},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{`, "no JSON"},
		{"GET", "/talk/ann", 200, http.Header{"Content-Type": {"text/html"}, "X-Kind": {"a"}}, `{"word":"yes"}`, `content type "text/html"`},
		{"GET", "/talk/ann?way=left", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{"word":"yes"}`, "is granted"},
		{"GET", "/talk/7", 200, http.Header{"Content-Type": {"application/json"}, "X-Kind": {"a"}}, `{"word":"yes"}`, "is granted"},
		{"GET", "/talk/ann", 418, nil, "", "418 is not in the document"},
		{"GET", "/talk", 200, nil, "", "200 is not in the document"},
		{"GET", "/talk", 404, nil, "", ""},
		{"GET", "/talk", 404, nil, "x", "a body"},
		{"PUT", "/talk/ann", 405, nil, "", ""},
		{"get", "/talk/ann", 405, nil, "", ""},
		{"PUT", "/talk/ann", 200, nil, "", "200 is not in the document"},
		{"OPTIONS", "/talk/ann", 204, nil, "", ""},
		{"OPTIONS", "/talk/ann", 403, nil, "", ""},
		{"GET", "/talk/ann", 201, stream, hello + ":\n\nevent: word\nid: 1\ndata: {\"word\":\"no\",\"cursor\":\"1\"}\n\nevent: bye\ndata: {\"word\":\"no\"}\n\n", ""},
		{"GET", "/talk/ann", 201, stream, hello + "event: wo", ""},
		{"GET", "/talk/ann", 201, stream, "event: bye\ndata: {\"word\":\"no\"}\n\n", `"bye" is the first`},
		{"GET", "/talk/ann", 201, stream, hello + "event: bye\ndata: {\"word\":\"no\"}\n\n" + hello, "behind the last"},
		{"GET", "/talk/ann", 201, stream, hello + "event: new\ndata: {}\n\n", `event "new" is not`},
		{"GET", "/talk/ann", 201, stream, hello + "event: word\nid: 1\ndata: {\"word\":\"no\",\"cursor\":\"2\"}\n\n", "not the cursor"},
		{"GET", "/talk/ann", 201, stream, hello + "event: word\ndata: {\"word\":\"no\",\"cursor\":\"2\"}\n\n", "not the cursor"},
		{"GET", "/talk/ann", 201, stream, "event: hello\nid: 1\ndata: {\"word\":\"yes\"}\n\n", "has an id"},
		{"GET", "/talk/ann", 201, stream, "event: hello\ndata: {\"word\":\"x\"}\n\n", "/word"},
		{"GET", "/talk/ann", 201, stream, "event: hello\ndata: {\"word\":\n\n", "no JSON"},
		{"GET", "/talk/ann", 201, stream, "data: {}\n\n", "is no event"},
		{"GET", "/talk/ann", 201, stream, "event: hello\r\ndata: {}\n\n", "is no event"},
	} {
		err := c.Check(Exchange{
			Request: httptest.NewRequest(test.method, test.target, nil), Status: test.status, Header: test.header, Answered: []byte(test.body),
		})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %s: %d %v %q: %v; want %q", test.method, test.target, test.status, test.header, test.body, err, test.want)
		}
	}
}

var stream = http.Header{"Content-Type": {"text/event-stream"}}

// Everything that was not seen is named, until it is.
func TestUnseen(t *testing.T) {
	c, err := open(t, talk)
	if err != nil {
		t.Fatal(err)
	}
	const word = "value /components/schemas/Word/properties/word "
	before := c.Unseen("/talk")
	for _, want := range []string{"GET /talk/{id} 200", "GET /talk/{id} 201", "elsewhere Preflight", word + "yes", word + "no", "member /components/schemas/Word cursor"} {
		if !slices.Contains(before, want) {
			t.Errorf("%q is not in %q", want, before)
		}
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Kind", "a")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"word":"yes"}`)
	}
	handler := c.Watch(http.HandlerFunc(answer), func(err error) { t.Error(err) })
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/talk/ann?way=down", nil))
	after := c.Unseen("/talk")
	if slices.Contains(after, "GET /talk/{id} 200") || slices.Contains(after, word+"yes") || !slices.Contains(after, word+"no") || len(after) != len(before)-5 {
		t.Errorf("after one exchange: %q; before it: %q", after, before)
	}
	if got := c.Operations(); !slices.Equal(got, []string{"GET /talk/{id}"}) {
		t.Errorf("operations are %q", got)
	}
}

// A document that is none, or that tools read in different ways, is refused.
func TestOpenRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no document":         "hello",
		"a mistake":           strings.Replace(talk, "description: said", "desciption: said", 1),
		"a reference's words": strings.Replace(talk, `schema: {$ref: "#/components/schemas/Word"}`, `schema: {description: x, $ref: "#/components/schemas/Word"}`, 1),
	} {
		if _, err := open(t, text); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is opened")
	}
}
