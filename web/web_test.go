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
		"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8",
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		h := w.Header()
		if w.Code != 200 || w.Body.Len() == 0 || h.Get("Content-Type") != kind || !web.Has(path) {
			t.Errorf("GET %s: %d, %d bytes of %q; want 200 and %q", path, w.Code, w.Body.Len(), h.Get("Content-Type"), kind)
		}
		policy := h.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none';", "script-src 'self';", "connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none';"} {
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

// The policy lets no script or style in the page itself work, so there is none;
// and nothing is loaded from elsewhere.
func TestPageHoldsNoScript(t *testing.T) {
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	html := w.Body.String()
	if found := regexp.MustCompile(`(?i)<script>|<style|\son\w+=|\sstyle=|https?://|javascript:`).FindString(html); found != "" {
		t.Errorf("the page holds %q", found)
	}
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if !web.Has(link[1]) {
			t.Errorf("the page loads %q, which is not there", link[1])
		}
	}
}
