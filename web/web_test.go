package web_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-run/parley/web"
)

// C-32.4: the page is what it says, may load only from its own server, cannot be
// framed, and is asked for again when it has changed.
func TestPage(t *testing.T) {
	handler := web.Handler()
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml",
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		h := w.Header()
		if w.Code != 200 || w.Body.Len() == 0 || h.Get("Content-Type") != kind || !web.Has(path) {
			t.Errorf("GET %s: %d, %d bytes of %q; want 200 and %q", path, w.Code, w.Body.Len(), h.Get("Content-Type"), kind)
		}
		policy := h.Get("Content-Security-Policy")
		for _, rule := range []string{
			"default-src 'none';", "script-src 'self';", "style-src 'self';", "img-src 'self';", "connect-src 'self';", "frame-ancestors 'none'",
			"base-uri 'none';", "form-action 'none';", "require-trusted-types-for 'script'",
		} {
			if !strings.Contains(policy, rule) {
				t.Errorf("GET %s: the policy has no %s", path, rule)
			}
		}
		if strings.Contains(policy, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("GET %s: %v", path, h)
		}
		again := httptest.NewRequest("GET", path, nil)
		again.Header.Set("If-None-Match", h.Get("ETag"))
		w = httptest.NewRecorder()
		if handler.ServeHTTP(w, again); w.Code != 304 {
			t.Errorf("GET %s with its ETag: %d, want 304", path, w.Code)
		}
	}
	for _, path := range []string{"/index.html", "/page/", "/page/page.js", "/../web.go", "//", ""} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		if handler.ServeHTTP(w, r); w.Code != 404 || web.Has(path) {
			t.Errorf("GET %q: %d, want 404", path, w.Code)
		}
	}
}

// get is what is served at a path.
func get(t *testing.T, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code != 200 {
		t.Fatalf("GET %s: %d", path, w.Code)
	}
	return w.Body.String()
}

// loaded matches what the page and its modules load.
var loaded = regexp.MustCompile(`(?:src=|href=|from )"([^"]*)"`)

// The policy lets no script or style in the page itself work, so there is none;
// nothing is loaded from elsewhere; every module is asked for at once and not one
// after another; and all of it together is less than 100 KB.
func TestPageHoldsNoScript(t *testing.T) {
	html := get(t, "/")
	if found := regexp.MustCompile(`(?i)<script>|<style|\son\w+=|\sstyle=|https?://|javascript:`).FindString(html); found != "" {
		t.Errorf("the page holds %q", found)
	}
	size := len(html)
	for _, link := range loaded.FindAllStringSubmatch(html, -1) {
		file := get(t, link[1])
		size += len(file)
		for _, module := range loaded.FindAllStringSubmatch(file, -1) {
			if !strings.Contains(html, `href="`+module[1]+`"`) {
				t.Errorf("%s loads %s, which the page does not ask for at once", link[1], module[1])
			}
		}
		if strings.Contains(file, "HTML =") && link[1] != "/entry.js" {
			t.Errorf("%s makes HTML; only /entry.js may, of what the server has sanitised", link[1])
		}
	}
	if size > 100_000 {
		t.Errorf("the page is %d bytes in all, want less than 100 KB", size)
	}
	t.Logf("%d bytes", size)
}
