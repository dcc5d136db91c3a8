package browsertest

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// life is how long a page may last in all.
	life = time.Minute
	// patience is how long it may take until something is so.
	patience = 15 * time.Second
)

// Page is a tab of the browser.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	errors   []string // of its console
	expected []string // parts of those that are no surprise
}

// Open opens an address in a browser profile of its own, in a window of 1024 by
// 768 pixels, in light colours.
func Open(t testing.TB, browser context.Context, address string) *Page {
	t.Helper()
	return open(t, browser, address, chromedp.WithNewBrowserContext())
}

// Beside opens another tab in the same profile.
func (p *Page) Beside(address string) *Page {
	p.t.Helper()
	return open(p.t, p.ctx, address, chromedp.WithExistingBrowserContext(chromedp.FromContext(p.ctx).BrowserContextID))
}

func open(t testing.TB, parent context.Context, address string, option chromedp.ContextOption) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(parent, option)
	ctx, cancel := context.WithTimeout(ctx, life)
	p := &Page{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			p.hear(message)
		}
	})
	t.Cleanup(func() {
		end()
		cancel()
		listening.Wait()
		p.quiet()
	})
	p.Resize(1024, 768)
	p.Prefer("prefers-color-scheme", "light")
	p.Go(address)
	return p
}

// hear keeps what the console says that is an error.
func (p *Page) hear(message chromedp.ConsoleMessage) {
	if message.Type != chromedp.ConsoleError && !message.IsException() && message.Type != chromedp.ConsoleWarning {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, message.String())
}

// Expect says that the console may complain of this.
func (p *Page) Expect(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, part)
}

// quiet fails the test if the console has said anything unexpected.
func (p *Page) quiet() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.errors {
		known := false
		for _, part := range p.expected {
			known = known || strings.Contains(line, part)
		}
		if !known {
			p.t.Errorf("the console says: %s", line)
		}
	}
}

// Go opens another address in the page.
func (p *Page) Go(address string) {
	p.t.Helper()
	p.do("open "+address, chromedp.Navigate(address))
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	p.do("reload", chromedp.Reload())
}

// Click clicks what a selector of CSS finds first, with the mouse.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Press presses keys, one after another, wherever the focus is.
func (p *Page) Press(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.do("press keys", chromedp.KeyEvent(keys, options...))
}

// Enter presses the Enter key as a keyboard does: what a page prevents types
// nothing.
func (p *Page) Enter(modifiers ...chromedp.Modifier) {
	p.t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, Text: "\r"}
	for _, modifier := range modifiers {
		key.Modifiers |= int64(modifier)
	}
	for _, key.Type = range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, key); err != nil {
			p.t.Fatalf("press Enter: %v", err)
		}
	}
}

// Paste puts what the clipboard has where the focus is.
func (p *Page) Paste() {
	p.t.Helper()
	key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "v", Code: "KeyV", Commands: []string{"paste"}}
	if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, key); err != nil {
		p.t.Fatalf("paste: %v", err)
	}
}

// Resize gives the window another size, and returns when the page was painted in
// it.
func (p *Page) Resize(width, height int64) {
	p.t.Helper()
	p.do("resize", chromedp.EmulateViewport(width, height))
	p.Until(fmt.Sprintf("innerWidth === %d", width))
	p.Painted()
}

// Painted waits until what stands in the page now was painted.
func (p *Page) Painted() {
	p.t.Helper()
	p.Evaluate[bool](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// Prefer sets what the person prefers, such as prefers-color-scheme, and takes
// back what was preferred before.
func (p *Page) Prefer(feature, value string) {
	p.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatalf("prefer %s: %v", feature, err)
	}
}

func (p *Page) do(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, action); err != nil {
		p.t.Fatalf("%s: %v; the page shows:\n%s", what, err, p.Text())
	}
}

// Text is what the page shows.
func (p *Page) Text() string {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return text
}

// Evaluate runs a script in the page and returns what it gives, or what its
// promise comes to.
func (p *Page) Evaluate[T any](script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, func(params *runtime.EvaluateParams) { params.AwaitPromise = new(true) }))
	if err != nil {
		p.t.Fatalf("%.200s: %v; the page shows:\n%.2000s", script, err, p.Text())
	}
	return value
}

// Until waits until a condition holds, an expression of JavaScript; what it
// throws means that it does not hold yet.
func (p *Page) Until(condition string) {
	p.t.Helper()
	p.Evaluate[bool](`new Promise((done) => {
		const look = () => {
			try { if (` + condition + `) return done(true); } catch {}
			setTimeout(look, 20);
		};
		look();
	})`)
}

// Shot photographs the window into a file of PNG.
func (p *Page) Shot(file string) {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("photograph: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// Quote writes a text as JavaScript does.
func Quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
