package eliza

import (
	"cmp"
	"encoding/json/v2"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// ClockTool is the name of the tool that ELIZA calls, with no arguments, when
// she is asked for the time of day and the request offers it.
const ClockTool = "clock"

// maxTimeRunes bounds what ELIZA repeats of a clock's answer.
const maxTimeRunes = 120

func offersClock(tools []model.Tool) bool {
	return slices.ContainsFunc(tools, func(tool model.Tool) bool { return tool.Name == ClockTool })
}

// tellTime puts the results of a call into a sentence.
func tellTime(results []model.Result) string {
	for _, result := range results {
		if result.Name != ClockTool && len(results) > 1 {
			continue
		}
		text, ok := timeIn(taint.Unfence(result.Text))
		if result.Failed || !ok {
			return "I looked at the clock, and it would not tell me. Is the hour so important?"
		}
		return "By the clock it is " + text + ". Does that make it late for you, or early?"
	}
	return "Something came back, though not from my clock. Shall we go on without it?"
}

// timeIn reads a clock's answer: a plain text or a JSON string, or a JSON
// object with a member "time" or "now". A time of RFC 3339 is put into words.
func timeIn(text string) (string, bool) {
	text = strings.TrimSpace(text)
	var object struct {
		Time string `json:"time"`
		Now  string `json:"now"`
	}
	var plain string
	switch {
	case json.Unmarshal([]byte(text), &plain) == nil:
		text = plain
	case json.Unmarshal([]byte(text), &object) == nil:
		text = cmp.Or(object.Time, object.Now)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Format("15:04 (MST) on Monday, 2 January 2006"), true
	}
	plainLine := text != "" && utf8.RuneCountInString(text) <= maxTimeRunes && !strings.ContainsFunc(text, unicode.IsControl)
	return strings.TrimRight(text, "."), plainLine
}
