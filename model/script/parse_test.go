package script_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/script"
)

// TestSyntaxErrorsNameThePlace gives every mistake the parser knows.
func TestSyntaxErrorsNameThePlace(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"say \"x\"", `1:1: say stands before the first rule`},
		{"then", `1:1: then stands before the first rule`},
		{"\n\n  sing \"x\"", `3:3: unknown word "sing" at the start of a line`},
		{"when", `1:5: when needs a condition; a rule without one begins with otherwise`},
		{"when # is", `1:6: when needs a condition; a rule without one begins with otherwise`},
		{"when was \"x\"", `1:6: unknown condition "was"; there are is, has, replies, system and tool`},
		{"when is x", `1:9: want a quoted text, not "x"`},
		{"when is 'x'", `1:9: want a quoted text, not "'x'"`},
		{"when is \"x", `1:9: want a quoted text, not "\"x"`},
		{"when is \"\"", `1:9: the text is empty`},
		{"when is", `1:8: want a quoted text, not the end of the line`},
		{"when has \"ü\" is \"\\xff\"", `1:17: the text "\"\\xff\"" is not valid UTF-8`},
		{"when replies many", `1:14: want a number from 0 to 100000000, not "many"`},
		{"when replies -1", `1:14: want a number from 0 to 100000000, not "-1"`},
		{"otherwise is \"x\"", `1:11: "is \"x\"" is more than belongs here`},
		{"otherwise\nwhen is \"x\"", `2:1: no rule is met after otherwise`},
		{"otherwise\notherwise", `2:1: no rule is met after otherwise`},
		{"otherwise\nthen now", `2:6: "now" is more than belongs here`},
		{"otherwise\nsay \"x\" \"y\"", `2:9: "\"y\"" is more than belongs here`},
		{"otherwise\nsay \"x\" 20ms", `2:9: "20ms" is more than belongs here`},
		{"otherwise\nwords \"x\" 20", `2:11: want a time such as 20ms, at most 24h0m0s, not "20"`},
		{"otherwise\nwait 25h", `2:6: want a time such as 20ms, at most 24h0m0s, not "25h"`},
		{"otherwise\nwait", `2:5: want a time such as 20ms, at most 24h0m0s, not the end of the line`},
		{"otherwise\nrepeat \"x\"", `2:8: want a number from 0 to 100000000, not "\"x\""`},
		{"otherwise\ncall", `2:5: want the name of a tool`},
		{"otherwise\ncall f", `2:7: want a JSON object, not the end of the line`},
		{"otherwise\ncall f [1]", `2:8: want a JSON object, not "[1]"`},
		{"otherwise\ncall f {\"a\": 1,}", `2:16: the JSON object is not well formed`},
		{"otherwise\ncall f {} {}", `2:11: "{}" is more than belongs here`},
		{"otherwise\nusage 1", `2:8: want a number from 0 to 100000000, not the end of the line`},
		{"otherwise\nfinish well", `2:8: unknown reason "well"; there are stop, calls, length and filtered`},
		{"otherwise\nend\nsay \"x\"", `3:1: say stands behind the end of the reply`},
		{"otherwise\nforever \"x\"\nfinish", `3:1: finish stands behind the end of the reply`},
		{
			"otherwise\nfail badly",
			`2:6: unknown failure "badly"; there are cut, malformed, refused, unavailable, rate-limited, overflow and timeout`,
		},
		{"otherwise\nfail cut after", `2:15: want a time such as 20ms, at most 24h0m0s, not the end of the line`},
		{"otherwise\nfail cut soon", `2:10: want a quoted text, not "soon"`},
		{"otherwise\nsay \"\xff\"", `2:6: this is not valid UTF-8`},
		{"otherwise\n" + "ooooooooooooooooooooooooooooo", `2:1: unknown word "oooooooooooooooooooooooo…" at the start of a line`},
	} {
		m, err := script.Parse("s", []byte(tt.script))
		if _, ok := errors.AsType[*script.SyntaxError](err); !ok || m != nil || err.Error() != "s:"+tt.want {
			t.Errorf("Parse(%q) = %v, %v, want nothing and s:%s", tt.script, m, err, tt.want)
		}
	}
}

// FuzzParse checks that no file makes the parser fail otherwise than with a
// place in the file, and that what it accepts plays within the contract.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		rules, "otherwise\nfail rate-limited after 1s \"x\"", "otherwise\nforever \"x\" 1s", "otherwise\ndeaf\nrepeat 9 \"🙂\"",
		"when is \"a\" has \"b\" replies 1 system \"c\" tool \"d\"\nthen\nthen\nresults", "otherwise\ncall f {\"a\":{}}#", "\"", "\r\n#",
	} {
		f.Add([]byte(seed), "Hello weather")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		m, err := script.Parse("s", data)
		if err != nil {
			bad, ok := errors.AsType[*script.SyntaxError](err)
			if !ok || bad.Line < 1 || bad.Column < 1 || !utf8.ValidString(bad.Text) {
				t.Errorf("Parse(%q) = %#v", data, err)
			}
			return
		}
		if text = strings.ToValidUTF8(text, ""); text == "" {
			return
		}
		synctest.Test(t, func(t *testing.T) { play(t, m, text) })
	})
}

// play reads a reply in part, and holds what it reads against the contract.
func play(t *testing.T, m model.Model, text string) {
	n := 0
	var last error
	finished := false
	for chunk, err := range m.Stream(t.Context(), request(said(text))) {
		if finished || last != nil {
			t.Fatalf("%+v, %v follows the end", chunk, err)
		}
		finished, last = chunk.Finish != nil, err
		if !utf8.ValidString(chunk.Text) {
			t.Fatalf("delta %q is not valid UTF-8", chunk.Text)
		}
		if chunk.Call != nil && !chunk.Call.Args.IsValid() {
			t.Fatalf("arguments %s are not valid", chunk.Call.Args)
		}
		if n++; n > 1000 {
			return
		}
	}
}
