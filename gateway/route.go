package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// route answers an admitted request. The error that it returns is answered by
// its caller.
type route func(g *Gateway, x *exchange) error

// methods are the routes of one path.
type methods map[string]route

// routes are all paths under /v1 (C-29), with * for the id of a conversation.
var routes = map[string]methods{
	"conversations":           {http.MethodGet: (*Gateway).list, http.MethodPost: (*Gateway).start},
	"conversations/*":         {http.MethodGet: (*Gateway).status},
	"conversations/*/turns":   {http.MethodPost: (*Gateway).turn},
	"conversations/*/stop":    {http.MethodPost: (*Gateway).stop},
	"conversations/*/close":   {http.MethodPost: (*Gateway).close},
	"conversations/*/history": {http.MethodGet: (*Gateway).history},
	"conversations/*/events":  {http.MethodGet: (*Gateway).events},
}

// match finds the routes of a path and the id in it. It knows exactly these
// paths: nothing is cleaned, and nobody is redirected.
func match(path string) (m methods, id string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return nil, "", false
	}
	segments := strings.Split(rest, "/")
	if len(segments) > 1 {
		id, segments[1] = segments[1], "*"
		if id == "" {
			return nil, "", false
		}
	}
	m, ok = routes[strings.Join(segments, "/")]
	return m, id, ok
}

// of returns the route of a method. HEAD is answered like GET, without a body.
func (m methods) of(method string) (route, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	r, ok := m[method]
	return r, ok
}

// allow is the Allow header of a 405.
func (m methods) allow() string {
	var names []string
	for name := range m {
		names = append(names, name)
		if name == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
