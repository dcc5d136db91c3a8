// Package taint marks text that is not ours.
//
// Wrap what a person, a tool, a summary or a notice says with [Tainted], and
// what we or the model say with [Plain]. The mark stays on the text through
// JSON, the log, a carry and effect inputs (C-8.1). At the prompt boundary
// every text passes one of three functions: [Instruction] for a system prompt
// or a tool description, [Assistant] for the model's earlier words, and [Fence]
// for everything in a user position, tool results included. What a stranger's
// server says of its tools becomes an instruction through [Stranger] alone.
//
// The package promises: tainted text never comes out of Instruction, Assistant
// or [TextOf], which is [ErrTaintedContent] instead; what comes out of Fence
// cannot close its fence (C-8.6); and no Text shows its content to fmt or slog.
package taint

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/parley-run/parley/fault"
)

// ErrTaintedContent says that tainted text was asked for where only plain text
// may stand (C-8.2).
var ErrTaintedContent = fault.New("TaintedContentError", "the text is tainted and may not be used here")

// Origin says where a tainted text comes from.
type Origin string

// The origins in use (C-8.9, C-10.13, C-45.5); a tool's is made by [ToolOrigin]
// or [MCPOrigin].
const (
	OriginUser    Origin = "conversation:user"
	OriginSummary Origin = "conversation:summary"
	OriginNotice  Origin = "parley:notice"
	OriginMemory  Origin = "parley:memory"

	// OriginUnknown stands in where no origin was given, so that a forgotten
	// origin never makes a text plain.
	OriginUnknown Origin = "unknown"
)

// ToolOrigin returns the origin of what a tool answers.
func ToolOrigin(name string) Origin { return Origin("tool:" + name) }

// MCPOrigin returns the origin of what a tool of an MCP server answers (C-8.9).
func MCPOrigin(server, tool string) Origin { return Origin("mcp:" + server + "/" + tool) }

// Text is a plain or a tainted string, always valid UTF-8. The zero Text is
// plain and empty. Texts are equal, by ==, if content and origin agree.
//
// A Text has no accessor for its content: read it with [TextOf], or hand it to
// the function of the position that it goes to.
type Text struct {
	value  string
	origin Origin // "" where plain
}

// Plain returns a text of our own or of the model. Bytes that are not UTF-8
// become U+FFFD.
func Plain(s string) Text { return Text{value: valid(s)} }

// Tainted returns a text that came from origin; an empty origin becomes
// [OriginUnknown]. Bytes that are not UTF-8 become U+FFFD.
func Tainted(s string, origin Origin) Text {
	return Text{value: valid(s), origin: known(origin)}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func known(o Origin) Origin {
	if o == "" {
		return OriginUnknown
	}
	return Origin(valid(string(o)))
}

// Origin returns where the text comes from, "" where it is plain.
func (t Text) Origin() Origin { return t.origin }

// IsTainted reports whether the text is not ours.
func (t Text) IsTainted() bool { return t.origin != "" }

// IsZero reports whether the text is plain and empty; encoding/json uses it
// for omitzero. An empty tainted text is not zero.
func (t Text) IsZero() bool { return t == Text{} }

// Format prints kind and length instead of the content, for every verb:
// texts have no place in errors and logs.
func (t Text) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.describe()) }

// LogValue hides the content from slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.describe()) }

func (t Text) describe() string {
	if t.IsTainted() {
		return fmt.Sprintf("[tainted text from %q, %d bytes]", string(t.origin), len(t.value))
	}
	return fmt.Sprintf("[text, %d bytes]", len(t.value))
}

// TextOf is the ordinary reader: it returns the content of a plain text, and
// [ErrTaintedContent] for a tainted one (C-8.2).
func TextOf(t Text) (string, error) {
	if t.IsTainted() {
		return "", ErrTaintedContent
	}
	return t.value, nil
}

// Reveal returns the content of a text that came from origin, for code that
// makes a longer or shorter text of it under the same origin. A text of any other
// origin, and a plain one, is [ErrTaintedContent].
func Reveal(t Text, origin Origin) (string, error) {
	if !t.IsTainted() || t.origin != origin {
		return "", ErrTaintedContent
	}
	return t.value, nil
}

// Instruction returns the content of a text that goes to an instruction
// position, which is a system prompt or a tool description; a tainted one is
// refused with [ErrTaintedContent] (C-8.3).
func Instruction(t Text) (string, error) {
	s, err := TextOf(t)
	if err != nil {
		return "", fmt.Errorf("instruction position: %w", err)
	}
	return s, nil
}

// Assistant returns the content of a text that goes into a message of role
// assistant. A tainted one is refused with [ErrTaintedContent], so that nobody
// can forge the model's earlier turns (C-8.5).
func Assistant(t Text) (string, error) {
	s, err := TextOf(t)
	if err != nil {
		return "", fmt.Errorf("assistant position: %w", err)
	}
	return s, nil
}
