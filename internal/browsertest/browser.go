// Package browsertest is what tests in a real browser share: a Chromium that ends
// with its test, and pages of it that a test looks at, types into and photographs.
//
// Begin with [Start], then [Open]. A page whose console says anything that is an
// error fails its test.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// Need returns the path of Chromium. Without one on the PATH the test is skipped,
// or fails where CI says so.
func Need(t testing.TB) (program string) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" { // in CI what is missing fails
		t.Fatal("no chromium on the PATH")
	}
	t.Skip("no chromium on the PATH")
	return ""
}

// Start starts Chromium, for all pages until the test ends, where [Need] finds one.
// More options stand behind its own.
func Start(t testing.TB, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	program := Need(t)
	// None of these pages is ever looked at in the browser's own window, whose menus
	// cost each profile a process and a second.
	const without = "Translate,BlinkGenPropertyTrees,PreloadTopChromeWebUI,WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup,WebUIOmniboxSimplification"
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-features", without), chromedp.Flag("no-sandbox", os.Geteuid() == 0), chromedp.Flag("ignore-certificate-errors", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end %s: %v", program, err)
		}
	})
	return ctx
}
