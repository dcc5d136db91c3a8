package mcp

import (
	"encoding/json/v2"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-run/parley/taint"
	"github.com/parley-run/parley/tool"
)

// resultOf is what a tool answered as a model is told it: the texts, and the kind
// of what is no text. An error of the tool is its own way to say what went wrong.
func resultOf(got *sdk.CallToolResult, origin taint.Origin) tool.Result {
	result := tool.Result{Failed: got.IsError, Origin: origin}
	if got.NeedsInput() {
		result.Text, result.Failed = "[The tool asks for more than its arguments, which cannot be given here.]", true
		return result
	}
	var parts []string
	for _, content := range got.Content {
		parts = append(parts, textOf(content))
	}
	if len(parts) == 0 && got.StructuredContent != nil {
		if data, err := json.Marshal(got.StructuredContent, json.Deterministic(true)); err == nil {
			parts = append(parts, string(data))
		}
	}
	result.Text = strings.Join(parts, "\n")
	return result
}

// textOf is one part of an answer.
func textOf(content sdk.Content) string {
	switch content := content.(type) {
	case *sdk.TextContent:
		return content.Text
	case *sdk.ImageContent:
		return "[image]"
	case *sdk.AudioContent:
		return "[audio]"
	case *sdk.ResourceLink:
		return "[link to a resource]"
	case *sdk.EmbeddedResource:
		return "[resource]"
	}
	return "[something that is no text]"
}
