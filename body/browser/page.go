package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

const (
	maxNotes     = 20  // of a kind that an effect reports
	maxNoteBytes = 500 // of each
)

// page is the one page of a life: a tab, and the connection to its Chromium.
type page struct {
	target    *chromedp.Target
	chromium  *chromedp.Browser
	ctx       context.Context // ends with the connection
	cancel    context.CancelFunc
	listening sync.WaitGroup

	mu        sync.Mutex
	loading   bool
	document  cdp.LoaderID // that is shown
	answers   cdp.LoaderID // the document that status belongs to
	status    int64
	notes     Notes
	elements  map[int]cdp.BackendNodeID // by their numbers in the newest text
	numbered  cdp.LoaderID              // the document of that text
	recording *recording                // nil: none
}

// Notes are what happened while an effect was carried out, in the words of the
// page where it has any: at most 20 of a kind, each of at most 500 bytes.
type Notes struct {
	Dialogs []string `json:"dialogs,omitempty"` // that were dismissed
	Windows []string `json:"windows,omitempty"` // addresses of windows that were closed
	Refused []string `json:"refused,omitempty"` // what may not be reached, and why
}

// appendNote adds a note to a list, once and within its bounds.
func appendNote(to []string, note string) []string {
	note = clip(note, maxNoteBytes)
	if len(to) >= maxNotes || slices.Contains(to, note) {
		return to
	}
	return append(to, note)
}

// clip cuts a text to a number of bytes, and makes it valid UTF-8.
func clip(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// allocator hands chromedp a Chromium that runs.
type allocator struct{ process *process }

// Allocate implements [chromedp.Allocator].
func (a allocator) Allocate(ctx context.Context, options ...chromedp.BrowserOption) (*chromedp.Browser, error) {
	return chromedp.NewBrowserTransport(ctx, plain{a.process.pipe}, options...)
}

// plain is a connection that nothing can be set on: it is in use already, by whoever
// ends the process.
type plain struct{ chromedp.Transport }

// Attaches implements [chromedp.Attacher]: the process is ours to end.
func (allocator) Attaches() bool { return true }

// Wait implements [chromedp.Allocator].
func (allocator) Wait() {}

// openPage connects to Chromium and opens its one page.
func openPage(ctx context.Context, process *process) (*page, error) {
	p := &page{}
	silent := func(string, ...any) {} // it would log what pages say
	// The first call binds the connection to its context, so that has no deadline.
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	cut := context.AfterFunc(ctx, p.cancel)
	defer cut()
	within, _ := chromedp.NewAllocatorContext(p.ctx, allocator{process})
	within, _ = chromedp.NewContext(within, chromedp.WithLogf(silent), chromedp.WithErrorf(silent), chromedp.WithDebugf(silent),
		chromedp.WithListener(p.event))
	err := chromedp.Do(within)
	if err == nil {
		c := chromedp.FromContext(within)
		p.mu.Lock()
		p.target, p.chromium = c.Target, c.Browser
		p.mu.Unlock()
		err = p.furnish(ctx, within)
	}
	if err != nil {
		p.cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("open a page: %w", err)
	}
	return p, nil
}

// furnish sets the page up before it shows anything.
func (p *page) furnish(ctx, within context.Context) error {
	// chromedp keeps a copy of the document. A hostile page could make it as large
	// as it likes, and nothing here needs it.
	for _, c := range []cdp.Command[cdp.Empty, cdp.Empty]{css.Disable, dom.Disable} {
		if _, err := cdp.Call(ctx, p.target, c, cdp.Empty{}); err != nil {
			return err
		}
	}
	if _, err := cdp.Call(ctx, p.target, target.SetAutoAttach, target.SetAutoAttachParams{}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, p.target, accessibility.Enable, cdp.Empty{}); err != nil {
		return err
	}
	deny := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny}
	if _, err := cdp.Call(ctx, p.chromium, browser.SetDownloadBehavior, deny); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, p.target, cdppage.SetInterceptFileChooserDialog, cdppage.SetInterceptFileChooserDialogParams{Enabled: true}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, p.chromium, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true}); err != nil {
		return err
	}
	dialogs := cdp.Events(p.ctx, p.target, cdppage.JavascriptDialogOpening)
	p.listening.Go(func() {
		for e, err := range dialogs {
			if err != nil {
				return
			}
			p.dismiss(e)
		}
	})
	created := cdp.Events(p.ctx, p.chromium, target.TargetCreated)
	p.listening.Go(func() {
		for e, err := range created {
			if err != nil {
				return
			}
			p.closeOther(e.TargetInfo)
		}
	})
	return nil
}

// close ends the connection, and waits for what listens on it.
func (p *page) close() {
	p.cancel()
	p.listening.Wait()
	p.mu.Lock()
	r := p.recording
	p.recording = nil
	p.mu.Unlock()
	if r != nil {
		r.close()
	}
}

// hear adds to the notes.
func (p *page) hear(add func(*Notes)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	add(&p.notes)
}

// take returns the notes so far, and forgets them.
func (p *page) take() Notes {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.notes
	p.notes = Notes{}
	return n
}

// dismiss closes a dialog. One that asks whether to leave the page lets it be
// left.
func (p *page) dismiss(e cdppage.EventJavascriptDialogOpening) {
	leaving := e.Type == cdppage.DialogTypeBeforeunload
	if !leaving {
		p.hear(func(n *Notes) { n.Dialogs = appendNote(n.Dialogs, fmt.Sprintf("%s: %s", e.Type, e.Message)) })
	}
	_, _ = cdp.Call(p.ctx, p.target, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: leaving})
}

// closeOther closes a page that is not the one.
func (p *page) closeOther(info *target.Info) {
	if info.Type == "page" && info.TargetID != p.target.TargetID {
		_, _ = cdp.Call(p.ctx, p.chromium, target.CloseTarget, target.CloseTargetParams{TargetID: info.TargetID})
	}
}

// event follows what the page does. It is called in the order of the events, and
// must not wait.
func (p *page) event(e any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	main := func(frame cdp.FrameID) bool { return p.target == nil || string(frame) == string(p.target.TargetID) }
	switch e := e.(type) {
	case *cdppage.EventFrameStartedLoading:
		p.loading = p.loading || main(e.FrameID)
	case *cdppage.EventFrameStoppedLoading:
		p.loading = p.loading && !main(e.FrameID)
	case *cdppage.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			p.document = e.Frame.LoaderID
		}
	case *cdppage.EventWindowOpen:
		p.notes.Windows = appendNote(p.notes.Windows, e.URL)
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument && main(e.FrameID) {
			p.answers, p.status = e.LoaderID, e.Response.Status
		}
	}
}

// world makes an isolated world in the page: scripts of ours see its document
// there, and nothing that its own scripts have changed.
func (p *page) world(ctx context.Context) (runtime.ExecutionContextID, error) {
	made, err := cdp.Call(ctx, p.target, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: cdp.FrameID(p.target.TargetID), WorldName: "parley"})
	return made.ExecutionContextID, err
}
