// Package web is what Parley shows in a browser: one small page, which opens a
// session with the code of a link, says who is there, and logs out.
//
// Mount [Handler] at the paths that it [Has]. It promises that nothing which is
// shown comes from elsewhere than from the binary, that no script but its own
// runs, and that no other page can frame it.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"
)

//go:embed page
var files embed.FS

// paths are where the files are served, and what they are.
var paths = map[string]struct{ name, kind string }{
	"/":         {"page/index.html", "text/html; charset=utf-8"},
	"/page.js":  {"page/page.js", "text/javascript; charset=utf-8"},
	"/page.css": {"page/page.css", "text/css; charset=utf-8"},
}

// policy lets the page load its script and its style and ask its own server, and
// nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Has reports whether there is something at the path.
func Has(path string) bool {
	_, ok := paths[path]
	return ok
}

// Handler serves the page. Who is let through to it may read it: it holds no
// secret. Methods are the caller's to judge.
func Handler() http.Handler {
	type file struct {
		data       []byte
		kind, etag string
	}
	all := map[string]file{}
	for at, f := range paths {
		data, err := files.ReadFile(f.name)
		if err != nil {
			panic(fmt.Sprintf("web: %s is not embedded", f.name))
		}
		sum := sha256.Sum256(data)
		all[at] = file{data, f.kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := all[r.URL.Path]
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
