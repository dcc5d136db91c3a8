package taint_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/taint"
)

func TestTextKinds(t *testing.T) {
	tests := map[string]struct {
		text    taint.Text
		tainted bool
		origin  taint.Origin
	}{
		"zero":                  {taint.Text{}, false, ""},
		"plain":                 {taint.Plain("hello"), false, ""},
		"of a user":             {taint.Tainted("hello", taint.OriginUser), true, "conversation:user"},
		"summary":               {taint.Tainted("hello", taint.OriginSummary), true, "conversation:summary"},
		"notice":                {taint.Tainted("hello", taint.OriginNotice), true, "parley:notice"},
		"tool":                  {taint.Tainted("hello", taint.ToolOrigin("clock")), true, "tool:clock"},
		"tool without a name":   {taint.Tainted("hello", taint.ToolOrigin("")), true, "tool:"},
		"origin forgotten":      {taint.Tainted("hello", ""), true, taint.OriginUnknown},
		"empty is tainted too":  {taint.Tainted("", taint.OriginUser), true, "conversation:user"},
		"a tool named like one": {taint.Tainted("x", taint.ToolOrigin("conversation:user")), true, "tool:conversation:user"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.text.IsTainted(); got != tt.tainted {
				t.Errorf("IsTainted() = %t, want %t", got, tt.tainted)
			}
			if got := tt.text.Origin(); got != tt.origin {
				t.Errorf("Origin() = %q, want %q", got, tt.origin)
			}
		})
	}
	if !(taint.Text{}).IsZero() || !taint.Plain("").IsZero() || taint.Tainted("", taint.OriginUser).IsZero() {
		t.Error("only the plain empty text is zero")
	}
}

// C-8.2 to C-8.5: one row for each position.
func TestPositions(t *testing.T) {
	positions := map[string]func(taint.Text) (string, error){
		"ordinary reader": taint.TextOf,
		"instruction":     taint.Instruction,
		"assistant":       taint.Assistant,
	}
	origins := []taint.Origin{taint.OriginUser, taint.OriginSummary, taint.OriginNotice, taint.ToolOrigin("mcp"), ""}
	for name, read := range positions {
		t.Run(name, func(t *testing.T) {
			if got, err := read(taint.Plain("be kind")); got != "be kind" || err != nil {
				t.Errorf("of plain text = %q, %v, want it", got, err)
			}
			for _, origin := range origins {
				for _, content := range []string{"obey me", ""} {
					got, err := read(taint.Tainted(content, origin))
					if got != "" || !errors.Is(err, taint.ErrTaintedContent) {
						t.Errorf("of text from %q = %q, %v, want ErrTaintedContent", origin, got, err)
					}
					if err != nil && strings.Contains(err.Error(), "obey") {
						t.Errorf("the error %v repeats the text", err)
					}
				}
			}
		})
	}
}

// The error table: ErrTaintedContent keeps its name through a log.
func TestErrorCode(t *testing.T) {
	_, err := taint.Instruction(taint.Tainted("x", taint.OriginUser))
	if got := fault.CodeOf(err); got != "TaintedContentError" {
		t.Errorf("CodeOf(%v) = %q, want TaintedContentError", err, got)
	}
}

func TestTextIsValidUTF8(t *testing.T) {
	if got, _ := taint.TextOf(taint.Plain("a\xff\xfeb")); got != "a\uFFFDb" {
		t.Errorf("TextOf(Plain) = %q, want the bad bytes replaced", got)
	}
	if taint.Tainted("a\xff", "tool:\xff") != taint.Tainted("a\uFFFD", "tool:\uFFFD") {
		t.Error("Tainted keeps bytes that are not UTF-8")
	}
}

// Nothing of a text appears in what fmt and slog print.
func TestTextsNeverPrint(t *testing.T) {
	for name, value := range map[string]any{
		"plain":         taint.Plain("hunter2"),
		"tainted":       taint.Tainted("hunter2", taint.OriginUser),
		"pointer":       new(taint.Tainted("hunter2", taint.OriginUser)),
		"in a struct":   struct{ T taint.Text }{taint.Plain("hunter2")},
		"whole value":   taint.Value[string]{Origin: taint.OriginUser, Value: "hunter2"},
		"value pointer": &taint.Value[string]{Value: "hunter2"},
	} {
		for _, verb := range "vsdxqtTUc" {
			for _, flag := range []string{"", "+", "#"} {
				format := "%" + flag + string(verb)
				got := fmt.Sprintf(format, value)
				if strings.Contains(got, "hunter2") || strings.Contains(got, fmt.Sprintf("%x", "hunter2")) {
					t.Errorf("Sprintf(%q, %s) = %s", format, name, got)
				}
			}
		}
		var buf bytes.Buffer
		slog.New(slog.NewTextHandler(&buf, nil)).Info("hello", "value", value)
		if strings.Contains(buf.String(), "hunter2") {
			t.Errorf("%s in a log line: %s", name, buf.String())
		}
	}
	if got := fmt.Sprint(taint.Tainted("abc", taint.OriginUser)); got != `[tainted text from "conversation:user", 3 bytes]` {
		t.Errorf("Sprint = %s", got)
	}
	if got := fmt.Sprint(taint.Plain("abc")); got != "[text, 3 bytes]" {
		t.Errorf("Sprint = %s", got)
	}
}
