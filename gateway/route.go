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
	"leases":                  {http.MethodGet: (*Gateway).leases},
	"conversations":           {http.MethodGet: (*Gateway).list, http.MethodPost: (*Gateway).start},
	"conversations/*":         {http.MethodGet: (*Gateway).status},
	"conversations/*/turns":   {http.MethodPost: (*Gateway).turn},
	"conversations/*/stop":    {http.MethodPost: (*Gateway).stop},
	"conversations/*/close":   {http.MethodPost: (*Gateway).close},
	"conversations/*/history": {http.MethodGet: (*Gateway).history},
	"conversations/*/events":  {http.MethodGet: (*Gateway).events},
	"conversations/*/waiting": {http.MethodGet: (*Gateway).waiting},
	"conversations/*/participants": {
		http.MethodGet: (*Gateway).participants, http.MethodPost: (*Gateway).addParticipant, http.MethodDelete: (*Gateway).removeParticipant,
	},
}

// Patterns lists the routes as [http.ServeMux] writes them, such as
// "POST /v1/conversations/{id}/turns". HEAD is not among the methods.
func Patterns() []string {
	var all []string
	for path, methods := range routes {
		for method := range methods {
			all = append(all, patternOf(method, path))
		}
	}
	slices.Sort(all)
	return all
}

// Pattern names the route that a request of the method and the path takes, if it
// is let through: one of [Patterns], or "" where there is none. HEAD is as GET.
func Pattern(method, path string) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	methods, key, _, ok := find(path)
	if _, known := methods[method]; !ok || !known {
		return ""
	}
	return patternOf(method, key)
}

func patternOf(method, key string) string {
	return method + " /v1/" + strings.Replace(key, "*", "{id}", 1)
}

// match finds the routes of a path and the id in it. It knows exactly these
// paths: nothing is cleaned, and nobody is redirected.
func match(path string) (m methods, id string, ok bool) {
	m, _, id, ok = find(path)
	return m, id, ok
}

// find does, with the key under which the routes are listed.
func find(path string) (m methods, key, id string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return nil, "", "", false
	}
	segments := strings.Split(rest, "/")
	if len(segments) > 1 {
		id, segments[1] = segments[1], "*"
		if id == "" {
			return nil, "", "", false
		}
	}
	key = strings.Join(segments, "/")
	m, ok = routes[key]
	return m, key, id, ok
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
