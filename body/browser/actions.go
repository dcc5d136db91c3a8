package browser

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/body"
)

// The actions of the browser. Each but [Close] starts Chromium if it does not run.
const (
	Open        = "open"         // OpenInput → Page
	Read        = "read"         // no input → Text
	Click       = "click"        // ClickInput → Page
	Type        = "type"         // TypeInput → Page
	Press       = "press"        // PressInput → Page
	Wait        = "wait"         // WaitInput → Waited
	Screenshot  = "screenshot"   // no input → Picture
	Evaluate    = "evaluate"     // EvaluateInput → Value
	RecordStart = "record_start" // no input → Recording
	RecordStop  = "record_stop"  // no input → Recording
	Close       = "close"        // no input → Closed; it ends the life, and so the claim
)

// The bounds of inputs and results.
const (
	MaxAddressBytes    = 8 << 10  // of an address
	MaxTextBytes       = 64 << 10 // of what is read, typed, or evaluated, and of its value
	MaxWait            = 30 * time.Second
	MaxScreenshotBytes = 1 << 20 // of a picture, in base64
)

// OpenInput says what to open.
type OpenInput struct {
	URL string `json:"url" jsonschema:"an http or https address"`
}

// Page says what the page is after an effect. All text of it is the page's.
type Page struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Status  int    `json:"status,omitzero"`  // of the answer that the page is, if there was one
	Failed  string `json:"failed,omitzero"`  // why there was none, such as net::ERR_NAME_NOT_RESOLVED
	Loading bool   `json:"loading,omitzero"` // it was still being loaded when the wait for it ended
	Notes
}

// Text is the page as a screen reader would read it, one element a line. Those
// that can be acted on have a number in brackets, which [ClickInput] and
// [TypeInput] take until the page is another or is read again. Frames are not
// read.
type Text struct {
	URL       string `json:"url"`
	Title     string `json:"title"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"` // there was more than MaxTextBytes
	Notes
}

// ClickInput names what is clicked.
type ClickInput struct {
	Ref int `json:"ref" jsonschema:"the number of the element, from the newest text of the page"`
}

// TypeInput replaces the text of a field, or chooses from a list of options.
type TypeInput struct {
	Ref    int    `json:"ref" jsonschema:"the number of the field, from the newest text of the page"`
	Text   string `json:"text" jsonschema:"what is to stand in the field; for a list, the option as it is shown"`
	Submit bool   `json:"submit,omitzero" jsonschema:"press Enter afterwards"`
}

// PressInput names a key: one of Enter, Tab, Escape, Backspace, Delete, Space,
// ArrowUp, ArrowDown, ArrowLeft, ArrowRight, PageUp, PageDown, Home and End, or one
// character.
type PressInput struct {
	Key string `json:"key" jsonschema:"Enter, Tab, Escape, Backspace, Delete, Space, ArrowUp, ArrowDown, ArrowLeft, ArrowRight, PageUp, PageDown, Home, End, or one character"`
}

// WaitInput waits for a text, at most the seconds, or for the seconds alone. At
// most 30 seconds; 10 if they are left out.
type WaitInput struct {
	Text    string  `json:"text,omitzero" jsonschema:"a text that is to appear on the page"`
	Seconds float64 `json:"seconds,omitzero" jsonschema:"how long at most, up to 30"`
}

// Waited says what came of a wait.
type Waited struct {
	Page
	Found bool `json:"found"` // the text appeared
}

// Picture is a picture of what the window shows.
type Picture struct {
	URL       string `json:"url"`
	MediaType string `json:"media_type"` // image/jpeg
	Data      []byte `json:"data"`       // base64
}

// EvaluateInput is a script. It runs as the page's own. It may await, and a
// promise is only waited for where it does.
type EvaluateInput struct {
	Expression string `json:"expression" jsonschema:"JavaScript that runs in the page, as in a console: await a promise to get what it comes to; variables stay until the page is another"`
}

// Value is what a script came to.
type Value struct {
	Value     jsontext.Value `json:"value,omitzero"`     // JSON; left out if there is none
	Exception string         `json:"exception,omitzero"` // that it threw
	Truncated bool           `json:"truncated,omitzero"` // Value is a JSON string, the start of one that was too long
	Notes
}

// Recording is the recording of a life.
type Recording struct {
	Folder string `json:"folder"` // within the directory of the browser
	Frames int    `json:"frames"` // JPEG files so far
	Full   bool   `json:"full,omitzero"`
}

// Closed says that Chromium has ended.
type Closed struct {
	Closed bool `json:"closed"`
}

// action is an action with its input, which was checked.
type action = func(ctx context.Context, l *life) (any, error)

// parse reads an action and its input. Otherwise: body.ErrRefused.
func parse(name string, input jsontext.Value) (action, error) {
	switch name {
	case Open:
		return with(input, func(in OpenInput) (action, error) {
			address, err := checkAddress(in.URL)
			return func(ctx context.Context, l *life) (any, error) { return l.open(ctx, address) }, err
		})
	case Read:
		return bare(input, func(ctx context.Context, l *life) (any, error) { return l.page.read(ctx) })
	case Click:
		return with(input, func(in ClickInput) (action, error) {
			return func(ctx context.Context, l *life) (any, error) { return l.page.click(ctx, in.Ref) }, nil
		})
	case Type:
		return with(input, func(in TypeInput) (action, error) {
			return func(ctx context.Context, l *life) (any, error) { return l.page.enter(ctx, in) }, checkText(in.Text)
		})
	case Press:
		return with(input, func(in PressInput) (action, error) {
			pressed, err := findKey(in.Key)
			return func(ctx context.Context, l *life) (any, error) { return l.page.press(ctx, pressed) }, err
		})
	case Wait:
		return with(input, func(in WaitInput) (action, error) {
			limit, err := checkWait(in)
			return func(ctx context.Context, l *life) (any, error) { return l.page.wait(ctx, in.Text, limit) }, err
		})
	case Screenshot:
		return bare(input, func(ctx context.Context, l *life) (any, error) { return l.screenshot(ctx) })
	case Evaluate:
		return with(input, func(in EvaluateInput) (action, error) {
			return func(ctx context.Context, l *life) (any, error) { return l.page.evaluate(ctx, in.Expression) }, checkText(in.Expression)
		})
	case RecordStart:
		return bare(input, func(ctx context.Context, l *life) (any, error) { return l.recordStart(ctx) })
	case RecordStop:
		return bare(input, func(ctx context.Context, l *life) (any, error) { return l.recordStop(ctx) })
	case Close:
		return bare(input, nil) // the adapter's own
	}
	return nil, refuse("there is no action %q", clip(name, 64))
}

// refuse makes a refusal, with nothing done.
func refuse(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", body.ErrRefused, fmt.Sprintf(format, arguments...))
}

// with reads an input strictly, and makes an action of it.
func with[T any](input jsontext.Value, then func(T) (action, error)) (action, error) {
	var in T
	if len(input) > 4*MaxTextBytes {
		return nil, refuse("the input has more than %d bytes", 4*MaxTextBytes)
	}
	if err := json.Unmarshal(input, &in, json.RejectUnknownMembers(true)); err != nil {
		if where, ok := errors.AsType[*json.SemanticError](err); ok && where.JSONPointer != "" {
			return nil, refuse("the input is not as described, at %q", where.JSONPointer)
		}
		return nil, refuse("the input is not as described")
	}
	return then(in)
}

// bare is an action without an input.
func bare(input jsontext.Value, do action) (action, error) {
	if len(input) == 0 {
		return do, nil
	}
	return with(input, func(struct{}) (action, error) { return do, nil })
}

// checkAddress accepts an address of the web, and nothing of the browser's own or
// of the disk.
func checkAddress(text string) (string, error) {
	if len(text) > MaxAddressBytes {
		return "", refuse("the address has more than %d bytes", MaxAddressBytes)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return "", refuse("the address cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", refuse("only addresses that begin with http:// or https:// can be opened")
	case u.Host == "" || u.User != nil:
		return "", refuse("the address needs a host, and takes no user and no password")
	}
	return u.String(), nil
}

func checkText(text string) error {
	switch {
	case len(text) > MaxTextBytes:
		return refuse("the text has more than %d bytes", MaxTextBytes)
	case !utf8.ValidString(text):
		return refuse("the text is not valid UTF-8")
	}
	return nil
}

func checkWait(in WaitInput) (time.Duration, error) {
	switch {
	case in.Text == "" && in.Seconds == 0:
		return 0, refuse("a wait needs a text or a number of seconds")
	case in.Seconds < 0 || in.Seconds > MaxWait.Seconds():
		return 0, refuse("a wait has 0 to %g seconds", MaxWait.Seconds())
	case in.Seconds == 0:
		return 10 * time.Second, checkText(in.Text)
	}
	return time.Duration(in.Seconds * float64(time.Second)), checkText(in.Text)
}
