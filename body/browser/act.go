package browser

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

const (
	navigateLimit = 30 * time.Second       // for a page to answer
	loadLimit     = 10 * time.Second       // for it to be loaded, after it has answered
	stirLimit     = 150 * time.Millisecond // for a click or a key to begin a load
	glance        = 20 * time.Millisecond  // between two looks at whether it has
)

// open shows an address in the page.
func (l *life) open(ctx context.Context, address string) (any, error) {
	p := l.page
	p.take()
	limit := time.AfterFunc(navigateLimit, func() {
		_, _ = cdp.Call(ctx, p.target, cdppage.StopLoading, cdp.Empty{})
	})
	shown, err := cdp.Call(ctx, p.target, cdppage.Navigate, cdppage.NavigateParams{URL: address})
	limit.Stop()
	if err != nil {
		return nil, err
	}
	page, err := p.settle(ctx, 0)
	if err != nil {
		return nil, err
	}
	page.Failed = shown.ErrorText
	p.mu.Lock()
	if p.answers == shown.LoaderID {
		page.Status = int(p.status)
	}
	p.mu.Unlock()
	return page, l.photograph(ctx)
}

// settle waits until the page has been loaded, after it had the time to begin
// that, and describes it.
func (p *page) settle(ctx context.Context, stir time.Duration) (Page, error) {
	begin := time.Now()
	for waited := time.Duration(0); waited < loadLimit; waited = time.Since(begin) {
		if !p.isLoading() && waited >= stir {
			break
		}
		if err := sleep(ctx, glance); err != nil {
			return Page{}, err
		}
	}
	address, title, err := p.describe(ctx)
	return Page{URL: address, Title: title, Loading: p.isLoading(), Notes: p.take()}, err
}

func (p *page) isLoading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loading
}

// describe reads the address and the title of the page, within bounds.
func (p *page) describe(ctx context.Context) (address, title string, err error) {
	history, err := cdp.Call(ctx, p.target, cdppage.GetNavigationHistory, cdp.Empty{})
	if err != nil || history.CurrentIndex < 0 || int(history.CurrentIndex) >= len(history.Entries) {
		return "", "", err
	}
	now := history.Entries[history.CurrentIndex]
	return clip(now.URL, MaxAddressBytes), clip(now.Title, 1000), nil
}

// errMoved says that a number is of no element of the page that is shown.
func errMoved(ref int) error {
	return refuse("there is no element %d on the page now: read the page again", ref)
}

// element finds an element by its number.
func (p *page) element(ref int) (cdp.BackendNodeID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := p.elements[ref]
	if !ok || p.numbered != p.document {
		return 0, errMoved(ref)
	}
	return id, nil
}

// click clicks the middle of an element with the mouse.
func (p *page) click(ctx context.Context, ref int) (any, error) {
	p.take()
	id, err := p.element(ref)
	if err != nil {
		return nil, err
	}
	if _, err := cdp.Call(ctx, p.target, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: id}); err != nil {
		return nil, refusedIfSaid(err, ref)
	}
	found, err := cdp.Call(ctx, p.target, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: id})
	if err != nil {
		return nil, refusedIfSaid(err, ref)
	}
	if len(found.Quads) == 0 || len(found.Quads[0]) != 8 {
		return nil, refuse("the element %d is not shown", ref)
	}
	quad := found.Quads[0]
	at := input.DispatchMouseEventParams{X: (quad[0] + quad[4]) / 2, Y: (quad[1] + quad[5]) / 2, Button: input.MouseButtonLeft, ClickCount: 1}
	for _, at.Type = range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMouseMoved, input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		if _, err := cdp.Call(ctx, p.target, input.DispatchMouseEvent, at); err != nil {
			return nil, err
		}
	}
	return p.settle(ctx, stirLimit)
}

// refusedIfSaid makes a refusal of what Chromium said before anything was done.
func refusedIfSaid(err error, ref int) error {
	if _, ok := errors.AsType[*cdproto.Error](err); ok {
		return errMoved(ref)
	}
	return err
}

// fill prepares a field for the text that is put in, or chooses an option, and says
// what it did.
const fill = `function(text) {
	if (this instanceof HTMLSelectElement) {
		const option = [...this.options].find((o) => o.label.trim() === text.trim() || o.value === text);
		if (!option) return "no option";
		this.value = option.value;
		for (const name of ["input", "change"]) this.dispatchEvent(new Event(name, { bubbles: true }));
		return "chosen";
	}
	this.focus();
	if (this.isContentEditable) { getSelection().selectAllChildren(this); return "ready"; }
	if (!(this instanceof HTMLInputElement || this instanceof HTMLTextAreaElement) || this.disabled || this.readOnly) return "no field";
	this.select();
	return "ready";
}`

// enter replaces the text of a field.
func (p *page) enter(ctx context.Context, in TypeInput) (any, error) {
	p.take()
	id, err := p.element(in.Ref)
	if err != nil {
		return nil, err
	}
	world, err := p.world(ctx)
	if err != nil {
		return nil, err
	}
	node, err := cdp.Call(ctx, p.target, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: id, ExecutionContextID: world})
	if err != nil {
		return nil, refusedIfSaid(err, in.Ref)
	}
	text, err := json.Marshal(in.Text)
	if err != nil {
		return nil, err
	}
	done, err := cdp.Call(ctx, p.target, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: fill, ObjectID: node.Object.ObjectID, ReturnByValue: new(true),
		Arguments: []*runtime.CallArgument{{Value: []byte(text)}},
	})
	if err != nil {
		return nil, err
	}
	var state string
	if done.ExceptionDetails != nil || json.Unmarshal(done.Result.Value, &state) != nil {
		return nil, refuse("the element %d takes no text", in.Ref)
	}
	switch state {
	case "no field":
		return nil, refuse("the element %d takes no text", in.Ref)
	case "no option":
		return nil, refuse("the list %d has no such option", in.Ref)
	case "ready":
		if in.Text == "" {
			err = p.strike(ctx, keys["Delete"])
		} else {
			_, err = cdp.Call(ctx, p.target, input.InsertText, input.InsertTextParams{Text: in.Text})
		}
	}
	if err == nil && in.Submit {
		err = p.strike(ctx, keys["Enter"])
	}
	if err != nil {
		return nil, err
	}
	return p.settle(ctx, stirLimit)
}

// key is a key of the keyboard.
type key struct {
	name string
	code int64
	text string
}

var keys = map[string]key{
	"Enter": {"Enter", 13, "\r"}, "Tab": {"Tab", 9, ""}, "Escape": {"Escape", 27, ""},
	"Backspace": {"Backspace", 8, ""}, "Delete": {"Delete", 46, ""}, "Space": {" ", 32, " "},
	"ArrowUp": {"ArrowUp", 38, ""}, "ArrowDown": {"ArrowDown", 40, ""}, "ArrowLeft": {"ArrowLeft", 37, ""}, "ArrowRight": {"ArrowRight", 39, ""},
	"PageUp": {"PageUp", 33, ""}, "PageDown": {"PageDown", 34, ""}, "Home": {"Home", 36, ""}, "End": {"End", 35, ""},
}

func findKey(name string) (key, error) {
	if k, ok := keys[name]; ok {
		return k, nil
	}
	if r, size := utf8.DecodeRuneInString(name); size == len(name) && r >= ' ' && r != utf8.RuneError {
		return key{name: name, text: name}, nil
	}
	return key{}, refuse("there is no key %q", clip(name, 64))
}

// strike presses a key and lets it go.
func (p *page) strike(ctx context.Context, k key) error {
	event := input.DispatchKeyEventParams{Key: k.name, Code: k.name, WindowsVirtualKeyCode: k.code, Text: k.text}
	for _, event.Type = range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		if _, err := cdp.Call(ctx, p.target, input.DispatchKeyEvent, event); err != nil {
			return err
		}
	}
	return nil
}

func (p *page) press(ctx context.Context, k key) (any, error) {
	p.take()
	if err := p.strike(ctx, k); err != nil {
		return nil, err
	}
	return p.settle(ctx, stirLimit)
}

// wait waits for a text, or until its limit.
func (p *page) wait(ctx context.Context, text string, limit time.Duration) (any, error) {
	p.take()
	found := false
	for until := time.Now().Add(limit); !found && time.Now().Before(until); {
		if text != "" {
			var err error
			if found, err = p.shows(ctx, text); err != nil {
				return nil, err
			}
		}
		if !found {
			if err := sleep(ctx, min(5*glance, max(0, time.Until(until)))); err != nil {
				return nil, err
			}
		}
	}
	page, err := p.settle(ctx, 0)
	return Waited{page, found}, err
}

// shows reports whether a text stands on the page. A page that is just changing
// shows nothing.
func (p *page) shows(ctx context.Context, text string) (bool, error) {
	quoted, err := json.Marshal(text)
	if err != nil {
		return false, err
	}
	var shown bool
	err = p.ask(ctx, `!!document.body && document.body.innerText.includes(`+string(quoted)+`)`, &shown)
	if _, said := errors.AsType[*cdproto.Error](err); said {
		return false, nil
	}
	return shown, err
}

// ask evaluates an expression of ours in an isolated world.
func (p *page) ask(ctx context.Context, expression string, into any) error {
	world, err := p.world(ctx)
	if err != nil {
		return err
	}
	done, err := cdp.Call(ctx, p.target, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: world, ReturnByValue: new(true)})
	if err != nil || done.ExceptionDetails != nil || done.Result == nil {
		return err
	}
	return json.Unmarshal(done.Result.Value, into)
}

// evaluate runs a script as the page's own.
func (p *page) evaluate(ctx context.Context, expression string) (any, error) {
	p.take()
	done, err := cdp.Call(ctx, p.target, runtime.Evaluate, runtime.EvaluateParams{
		Expression: expression, ReturnByValue: new(true), AwaitPromise: new(true), ReplMode: new(true), UserGesture: new(true),
	})
	if said, ok := errors.AsType[*cdproto.Error](err); ok {
		return Value{Exception: clip(said.Message, maxNoteBytes), Notes: p.take()}, nil // such as a page that it left
	}
	if err != nil {
		return nil, err
	}
	v := Value{Notes: p.take()}
	switch {
	case done.ExceptionDetails != nil:
		v.Exception = clip(exception(done.ExceptionDetails), MaxTextBytes)
	case done.Result.UnserializableValue != "":
		v.Value, err = json.Marshal(string(done.Result.UnserializableValue))
	case len(done.Result.Value) > MaxTextBytes:
		v.Truncated = true
		v.Value, err = json.Marshal(clip(string(done.Result.Value), MaxTextBytes))
	default:
		v.Value = jsontext.Value(done.Result.Value)
	}
	return v, err
}

// exception says what a script threw.
func exception(e *runtime.ExceptionDetails) string {
	if e.Exception != nil && e.Exception.Description != "" {
		return e.Exception.Description
	}
	if e.Exception != nil && len(e.Exception.Value) > 0 {
		return e.Text + " " + string(e.Exception.Value)
	}
	return e.Text
}
