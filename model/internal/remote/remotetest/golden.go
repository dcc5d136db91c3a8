package remotetest

import (
	"bytes"
	"encoding/json/jsontext"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
)

var update = flag.Bool("update", false, "renew the recorded requests under testdata")

// Golden holds what a vendor sends for one request with everything in it
// against the file.
func Golden(t *testing.T, d Dialect, file string) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		s := d.serve(t, Config{}, func(w http.ResponseWriter, req *http.Request) {
			got = written(t, req)
			send(w, d.Begin, d.End(model.FinishStop))
		})
		if _, err := model.Collect(s.model.Stream(t.Context(), everything()), nil); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: -want +got\n%s", file, diff)
		}
	})
}

// written is a request as text: its headers in order, and its body indented.
func written(t *testing.T, req *http.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", req.Method, req.URL.Path)
	var names []string
	for name := range req.Header {
		if name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(req.Header.Get(name), key, "KEY"))
	}
	data, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
	}
	body := jsontext.Value(bytes.TrimSpace(data))
	if err := body.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Errorf("the body is not JSON: %v", err)
	}
	return b.String() + "\n" + string(body) + "\n"
}

func everything() model.Request {
	return model.Request{
		System: "You are patient.",
		Messages: []model.Message{
			{Role: model.User, Text: "What is the weather?"},
			{Role: model.Assistant, Text: "Let me look.", Calls: []model.Call{
				{ID: "call-1", Name: "weather", Args: jsontext.Value(`{"city":"Oslo","days":2}`)},
				{ID: "call-2", Name: "clock", Args: jsontext.Value(`{}`)},
			}},
			{Role: model.User, Results: []model.Result{
				{CallID: "call-1", Name: "weather", Text: "rain"},
				{CallID: "call-2", Name: "clock", Text: "no clock here", Failed: true},
			}},
			{Role: model.Assistant, Calls: []model.Call{{ID: "call-3", Name: "clock", Args: jsontext.Value(`{}`)}}},
			{Role: model.User, Results: []model.Result{{CallID: "call-3", Name: "clock", Text: "noon"}}, Text: "Never mind. 🙂 <b>"},
			{Role: model.Assistant, Text: "Very well."},
			{Role: model.User, Text: "And tomorrow?"},
		},
		Tools: []model.Tool{
			{Name: "weather", Description: "Tells the weather.", Schema: jsontext.Value(`{
				"type": "object",
				"properties": {"city": {"$ref": "#/$defs/city"}, "days": {"type": "integer", "maximum": 7}},
				"required": ["city"], "additionalProperties": false,
				"$defs": {"city": {"type": "string", "maxLength": 80}}
			}`)},
			{Name: "clock", Description: "Tells the time.", Schema: jsontext.Value(`{"type":"object","properties":{}}`)},
		},
		MaxOutputTokens: 1234,
	}
}

// Address returns where the model that open makes sends its request, without
// sending it anywhere.
func Address(t *testing.T, d Dialect, open func(Config) (model.Model, error)) string {
	t.Helper()
	var address string
	m, err := open(Config{APIKey: identity.NewSecret(key), HTTPClient: &http.Client{
		Transport: roundTrip(func(req *http.Request) *http.Response {
			address = req.URL.String()
			return &http.Response{
				StatusCode: http.StatusOK,
				Header:     http.Header{"Content-Type": {"text/event-stream"}},
				Body:       io.NopCloser(strings.NewReader(d.Begin + d.End(model.FinishStop))),
				Request:    req,
			}
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Collect(m.Stream(t.Context(), request()), nil); err != nil {
		t.Error(err)
	}
	return address
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req), nil }
