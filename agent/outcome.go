package agent

import (
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/taint"
)

// Said is the recorded outcome of a model call: a reply, a failure by its code,
// or an interruption. A call that was cut after it had begun to speak has the text
// that was shown.
type Said struct {
	Text   string             `json:"text,omitzero"`
	Calls  []Call             `json:"calls,omitempty"`
	Reason model.FinishReason `json:"reason,omitzero"`
	Usage  model.Usage        `json:"usage,omitzero"`
	Failed string             `json:"failed,omitzero"` // a code, see package fault

	Interrupted bool `json:"interrupted,omitzero"` // from outside; Text is what was said until then
}

// Did is the recorded outcome of a tool call: what the model is told of it.
type Did struct {
	Text   taint.Text `json:"text"`
	Failed bool       `json:"failed,omitzero"`
}

// What the model is told where a tool has said nothing. These texts are ours,
// and plain.
const (
	tellFailed  = "The tool failed. It gave no reason that can be told here."
	tellTimeout = "The tool was stopped: it did not answer in time."
	tellUnknown = "It is not known what came of this call. It was begun and then cut off, so it may have taken " +
		"effect in full, in part or not at all. Assume none of these and do not simply repeat it: find out, or " +
		"tell the person that the outcome is unknown."
	tellAbsent  = "This call was not run: the tool is not there now. It may come back later."
	tellNoTool  = "This call was not run: there is no tool of this name."
	tellBadArgs = "This call was not run: its arguments are not a JSON object of a size and depth that can be taken."

	// A misfit follows, in which words of others may stand.
	tellMisfit = "This call was not run. Its arguments do not fit the schema of the tool: "
)

// told is a failed outcome in our own words.
func told(text string) Did { return Did{Text: taint.Plain(text), Failed: true} }
