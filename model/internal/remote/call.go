package remote

import (
	"encoding/json/v2"
	"errors"
	"fmt"

	"charm.land/fantasy"

	"github.com/parley-run/parley/model"
)

// callOf puts a request into fantasy's terms.
func callOf(req model.Request, maxOutput int) (fantasy.Call, error) {
	var call fantasy.Call
	if req.System != "" {
		call.Prompt = append(call.Prompt, fantasy.Message{
			Role: fantasy.MessageRoleSystem, Content: []fantasy.MessagePart{fantasy.TextPart{Text: req.System}},
		})
	}
	for _, msg := range req.Messages {
		call.Prompt = append(call.Prompt, messagesOf(msg)...)
	}
	for _, tool := range req.Tools {
		var schema map[string]any
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			return fantasy.Call{}, fmt.Errorf("%w: the schema of tool %q: %w", model.ErrRefused, tool.Name, err)
		}
		call.Tools = append(call.Tools, fantasy.FunctionTool{
			Name: tool.Name, Description: tool.Description, InputSchema: schema,
		})
	}
	if req.MaxOutputTokens > 0 {
		maxOutput = req.MaxOutputTokens
	}
	if maxOutput > 0 {
		limit := int64(maxOutput)
		call.MaxOutputTokens = &limit
	}
	return call, nil
}

// messagesOf returns a message as one of fantasy's, or as two where results
// and a text stand side by side.
func messagesOf(msg model.Message) []fantasy.Message {
	var messages []fantasy.Message
	var results, parts []fantasy.MessagePart
	for _, result := range msg.Results {
		var output fantasy.ToolResultOutputContent = fantasy.ToolResultOutputContentText{Text: result.Text}
		if result.Failed {
			output = fantasy.ToolResultOutputContentError{Error: errors.New(result.Text)}
		}
		results = append(results, fantasy.ToolResultPart{ToolCallID: result.CallID, Output: output})
	}
	if len(results) > 0 {
		messages = append(messages, fantasy.Message{Role: fantasy.MessageRoleTool, Content: results})
	}
	if msg.Text != "" {
		parts = append(parts, fantasy.TextPart{Text: msg.Text})
	}
	for _, call := range msg.Calls {
		parts = append(parts, fantasy.ToolCallPart{ToolCallID: call.ID, ToolName: call.Name, Input: string(call.Args)})
	}
	if len(parts) > 0 {
		role := fantasy.MessageRoleUser
		if msg.Role == model.Assistant {
			role = fantasy.MessageRoleAssistant
		}
		messages = append(messages, fantasy.Message{Role: role, Content: parts})
	}
	return messages
}
