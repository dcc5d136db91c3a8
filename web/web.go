// Package web is what Parley shows in a browser: one page, embedded, of plain
// HTML, CSS and modules of JavaScript, in which one talks with the agent.
//
// Mount [Handler] at the paths that it [Has], beside the API under /v1 and the
// sessions at /session that the page asks. [Markdown] makes the HTML of answers
// that it shows. It promises that nothing which is shown comes from elsewhere than
// from the server, that no script but its own runs, and that no other page can
// frame it.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var files embed.FS

// kinds are the types of the files, by the ends of their names.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// policy lets the page load what is the server's own and ask its server, and
// nothing else. One place of it, and no other, may take a text for markup: that
// which shows what Markdown has made.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

// file is one that is served.
type file struct {
	data       []byte
	kind, etag string
}

// served are the files by the path at which each is: its name, but for the first,
// which is at the root.
var served = func() map[string]file {
	all := map[string]file{}
	entries, err := files.ReadDir("page")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		data, err := files.ReadFile("page/" + entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		at := "/" + strings.TrimSuffix(entry.Name(), "index.html")
		all[at] = file{data, kinds[path.Ext(entry.Name())], `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return all
}()

// Has reports whether there is something at the path.
func Has(path string) bool {
	_, ok := served[path]
	return ok
}

// Handler serves the page. Who is let through to it may read it: it holds no
// secret. Methods are the caller's to judge.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Type", f.kind)
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-cache") // kept, and asked for again each time
		header.Set("ETag", f.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data))
	})
}
